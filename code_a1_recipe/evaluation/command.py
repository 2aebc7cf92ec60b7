"""``code-a1 eval``: its sub-commands, each in a file of its own."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from .results import Results, ResultsError, comparison_table, results_table

DONE, REFUSED = 0, 2

COMMANDS: dict[str, tuple[str, str, str]] = {
    "code": (".code_eval", "main", "a Code LLM: avg@n and pass@k on HumanEval+, MBPP+ or any file with tests"),
    "test": (".test_eval", "main", "a Test LLM: pass@k, coverage and mutation kill on functions with references"),
    "run": (".checkpoint_validation", "main", "both policies of a run's checkpoint, as its own validation does"),
    "compare": (".command", "compare", "two finished evaluations, by paired bootstrap"),
    "table": (".command", "table", "finished evaluations once more as Markdown, CSV and HTML"),
    "mutants": (".mutation_kill", "main", "how many mutants of its references a file's own tests kill"),
    "agreement": (".evalplus_agreement", "main", "our judge beside EvalPlus's own, on the same programs"),
}
"""Module, function, and what it evaluates. Imported when asked for."""


def main(arguments: Sequence[str]) -> int:
    """Exit status of the sub-command; 2 when there is none of that name."""
    words = list(arguments)
    if words and words[0] in COMMANDS:
        module, function, _ = COMMANDS[words[0]]
        return int(getattr(importlib.import_module(module, __package__), function)(words[1:]))
    lines = "\n".join(f"  {name:10} {what}" for name, (_, _, what) in COMMANDS.items())
    usage = f"usage: code-a1 eval COMMAND ... [--help]\n\nEvaluates models. Commands:\n{lines}\n"
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(usage)
        return DONE if words else REFUSED
    sys.stderr.write(f"error: unknown evaluation {words[0]!r}; known: {', '.join(COMMANDS)}\n")
    return REFUSED


def compare(arguments: Sequence[str]) -> int:
    """Exit status: 0 shown, 2 refused."""
    parser = argparse.ArgumentParser(
        prog="code-a1 eval compare",
        description="Figures of two evaluations and their difference with a 95 % interval, paired by question.",
        epilog="example:\n  code-a1 eval compare out/base out/trained --output out/difference",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("first", type=Path, help="--output of the first evaluation")
    parser.add_argument("second", type=Path, help="of the second; the difference is second minus first")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="also write comparison.md, .csv and .html there")
    options = parser.parse_args(arguments)
    try:
        shown = comparison_table(Results.load(options.first), Results.load(options.second))
        if options.output:
            shown.write(options.output, "comparison")
    except (ResultsError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    sys.stdout.write(shown.markdown())
    return DONE


def table(arguments: Sequence[str]) -> int:
    """Exit status: 0 shown, 2 refused."""
    parser = argparse.ArgumentParser(prog="code-a1 eval table", description="Shows the tables of finished evaluations.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="--output of an evaluation")
    parser.add_argument("--format", choices=("markdown", "csv", "html"), default="markdown")
    options = parser.parse_args(arguments)
    try:
        for folder in options.folders:
            found = results_table(Results.load(folder))
            sys.stdout.write(getattr(found, options.format)() + "\n")
    except ResultsError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    return DONE

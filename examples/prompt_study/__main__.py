"""Compare wordings of a prompt on a real model: does it do what it is asked, and is it right?

    python -m examples.prompt_study test questions.parquet --model MODEL --output out chat_v2 mine.txt --limit 100
    python -m examples.prompt_study code questions.parquet --model MODEL --output out chat_v2 mine.txt --limit 100

For each wording `code-a1 eval` samples and judges one response a question, in out/WORDING, where a repeated command
resumes; then a Markdown table is printed. `test`: the Test LLM is shown the reference and writes K asserts. `code`: the
Code LLM writes a program.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.data.reader import read_questions
from code_a1_recipe.stats.tables import table_of
from reward_fns import ExtractionFailure, extract_suite

Row = dict[str, Any]
SAMPLING = ("--max-tokens", "512", "--max-prompt-tokens", "2048", "--top-p", "1.0")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.prompt_study", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("role", choices=("test", "code"))
    parser.add_argument("questions", type=Path)
    parser.add_argument("wordings", nargs="+", help="pairs of prompts by name, or .txt templates")
    parser.add_argument("--model", required=True, help="a Hugging Face folder or hub id")
    parser.add_argument("--output", required=True, type=Path, help="folder; one below it for each wording")
    parser.add_argument("--limit", type=int, default=100, help="questions")
    parser.add_argument("--cases", type=int, default=8, help="K, asserts a suite")
    parser.add_argument("--mutants", type=int, default=20, help="a question, at most")
    parser.add_argument("--temperature", default="1.0", help="0 is greedy")
    parser.add_argument("--engine", action="append", default=[], metavar="KEY=VALUE", help="such as dtype=bfloat16")
    options = parser.parse_args()
    questions = {one.id: one for one in read_questions(options.questions).questions[: options.limit]}
    rows = []
    for wording in options.wordings:
        folder = options.output / Path(wording).stem
        _evaluate(options, wording, folder)
        responses, verdicts = (_rows(folder / f"{name}.jsonl") for name in ("responses", "verdicts"))
        if options.role == "code":
            figures = _program_figures(verdicts)
        else:
            figures = _suite_figures(questions, responses, verdicts, options.cases)
        tokens = sum(row["response_tokens"] for row in responses) / len(responses)
        rows.append({"wording": Path(wording).stem, **figures, "tokens": f"{tokens:.0f}"})
    sys.stdout.write(table_of(f"{options.model}, {len(questions)} questions", rows).markdown())


def _evaluate(options: argparse.Namespace, wording: str, folder: Path) -> None:
    command = [sys.executable, "-m", "code_a1_recipe", "eval", options.role, str(options.questions)]
    command += ["--model", options.model, "--prompt", wording, "--limit", str(options.limit), "--output", str(folder)]
    command += [*SAMPLING, "--temperature", options.temperature]
    command += [word for one in options.engine for word in ("--engine", one)]
    if options.role == "test":
        command += ["--tests", str(options.cases), "--no-coverage", "--max-mutants", str(options.mutants)]
        command += ["--mutants-folder", str(options.output / "mutants")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _program_figures(verdicts: Sequence[Row]) -> dict[str, str]:
    extracted = sum(not row["reason"].startswith("no program") for row in verdicts)
    passed = sum(bool(row["passed"]) for row in verdicts)
    return {"programs": _percent(extracted, len(verdicts)), "correct": _percent(passed, len(verdicts))}


def _suite_figures(
    questions: dict[str, Question], responses: Sequence[Row], verdicts: Sequence[Row], cases: int
) -> dict[str, str]:
    """Shares of suites, of all asserts asked for, and of mutants."""
    suites = {row["session"]: extract_suite(row["text"], max_asserts=cases) for row in responses}
    found = {key: () if isinstance(suite, ExtractionFailure) else suite for key, suite in suites.items()}
    results = [row["result"] for row in verdicts if row["result"]]
    asserts, right = sum(map(len, found.values())), sum(sum(result["right"]) for result in results)
    mutants = [killers for result in results for killers in result["kills"]]
    as_asked = [
        len(suite) == cases and all(_calls(text, names_of(questions[key])) for text in suite)
        for key, suite in found.items()
    ]
    return {
        "with asserts": _percent(sum(map(bool, found.values())), len(found)),
        "K asserts that call the function": _percent(sum(as_asked), len(found)),
        "asserts a suite": f"{asserts / len(found):.1f}",
        "correct, of those written": _percent(right, asserts),
        "correct, of n x K": _percent(right, cases * len(found)),
        "mutants killed": _percent(sum(map(any, mutants)), len(mutants)),
    }


def names_of(question: Question) -> set[str]:
    """Names that a test of the question may call."""
    body = ast.parse(question.reference).body
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return set(question.entry_points) or {node.name for node in body if isinstance(node, kinds)}


def _calls(text: str, names: set[str]) -> bool:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(one, ast.Name) and one.id in names for one in called)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    main()

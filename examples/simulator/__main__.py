"""``python -m examples.simulator``: seconds of a training step by layout, mode and number of GPUs. Loads no torch."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from code_a1_recipe.stats.tables import table_with_head

from ..arguments import positive
from .blocks import SimulationError, changed
from .calibration import calibrate
from .check import check, check_rows, summary
from .layouts import LAYOUTS, compare, rows
from .rates import BASES, SHIPPED, Rates, rates_from, read_rates
from .recorded import read_run
from .simulator import MODES

DONE, REFUSED, INTERRUPTED = 0, 2, 130
DEFAULT_RATES = "paper_1.5b"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 2 refused, 130 interrupted."""
    options = _parser().parse_intermixed_args(arguments)
    try:
        _require_used(options)
        if options.calibrate:
            _calibrate(options)
        elif options.check:
            _check(options)
        else:
            _predict(options)
    except SimulationError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return INTERRUPTED
    return DONE


def _require_used(options: argparse.Namespace) -> None:
    """Raises SimulationError for an option that would change nothing, or whose value cannot be meant."""
    if options.output is not None and not options.calibrate:
        raise SimulationError(
            f"--output is where --calibrate writes its rates, got {str(options.output)!r} without it; "
            "add --calibrate RUN ..., or leave --output out (tables go to the terminal)"
        )
    if options.cores is not None and not (options.calibrate or options.check):
        raise SimulationError(
            f"--cores is of the host that the runs of --calibrate or --check were made on, got {options.cores:g} "
            "without either; to predict for another host write machine.host_cores=N"
        )
    if options.cores is not None and not 1 <= options.cores < math.inf:
        raise SimulationError(
            f"--cores must be a finite number of at least 1, got {options.cores:g}; "
            "leave it out where the runs were made on this host"
        )
    if options.code_gpus is not None and options.layout == "colocated":
        raise SimulationError(
            f"--code-gpus is a split of layout separate, got {options.code_gpus} with --layout colocated, where both "
            "policies have all GPUs; leave one of the two out"
        )


def _gpus_and_changes(words: Sequence[str]) -> tuple[list[int], list[str]]:
    """What stood behind --gpus, which also takes the ``key=value`` words that follow its numbers."""
    numbers = [word for word in words if "=" not in word]
    for number in numbers:
        if not number.isdecimal() or int(number) < 1:
            raise SimulationError(
                f"--gpus must be integers of at least 1, got {number!r}; a file of rates stands before it"
            )
    if words and not numbers:
        raise SimulationError(f"--gpus must have a number of GPUs, got only {' '.join(words)}; write --gpus N")
    return [int(number) for number in numbers], [word for word in words if "=" in word]


def _predict(options: argparse.Namespace) -> None:
    numbers, changes = _gpus_and_changes(options.gpus)
    words = [*options.words, *changes]
    name = words.pop(0) if words and "=" not in words[0] else DEFAULT_RATES
    raw = read_rates(name)
    key, separator, values = options.sweep.partition("=")
    if options.sweep and not (key and separator and values):
        raise SimulationError(f"--sweep must be KEY=VALUE,VALUE,..., got {options.sweep!r}")
    settings = [f"{key}={value}" for value in values.split(",")] if options.sweep else []
    for setting in settings or [""]:
        rates = rates_from(changed(raw, [*words, setting] if setting else words, default="workload"))
        for gpus in numbers or [rates.machine.gpus]:
            comparison = compare(
                rates,
                gpus=gpus,
                layouts=_chosen(options.layout, LAYOUTS),
                modes=_chosen(options.mode, MODES),
                code_gpus=options.code_gpus,
            )
            sys.stdout.write(
                f"{_heading(name, rates, gpus, setting)}\n\n{table_with_head(rows(comparison)).markdown()}\n"
            )
            sys.stdout.flush()


def _heading(name: str, rates: Rates, gpus: int, setting: str) -> str:
    """What the table rests on: above all, whether anybody measured it."""
    shape = rates.workload
    sizes = f"Q {shape.questions}, C {shape.num_candidates}, S {shape.num_suites}"
    place = "no GPU" if rates.machine.servers_on_host else f"{gpus} GPUs"
    lengths = ", ".join(
        f"{policy} mean {one.mean:g} sigma {one.sigma:g} cap {one.cap} endless {one.endless_frac:.1%}"
        for policy, one in (("programs", shape.program_tokens), ("suites", shape.suite_tokens))
    )
    changes = f" {setting};" if setting else ""
    return (
        f"{name}:{changes} {place}; {sizes}; tokens: {lengths}\n"
        f"Rates are {rates.basis.upper()} ({BASES[rates.basis]}): {rates.source}"
    )


def _chosen(word: str, known: tuple[str, ...]) -> tuple[str, ...]:
    return known if word == "both" else (word,)


def _calibrate(options: argparse.Namespace) -> None:
    if options.output is None:
        raise SimulationError("--calibrate needs --output FILE.yaml, where the rates are written")
    rates = calibrate([read_run(folder) for folder in options.calibrate], cores=options.cores)
    text = yaml.safe_dump(_rounded(rates.plain()), sort_keys=False)
    try:
        options.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SimulationError(f"{options.output} cannot be written: {error}") from error
    sys.stdout.write(f"{options.output}: {rates.source}\n")


def _rounded(value: object) -> object:
    """Numbers with four digits: more would claim what no measurement shows."""
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _check(options: argparse.Namespace) -> None:
    checked = []
    for one in check([read_run(folder) for folder in options.check], cores=options.cores):
        checked.append(one)
        sys.stderr.write(f"{one.run.name}: step {one.step_error:+.1%}, episodes {one.episodes_error:+.1%}\n")
    sys.stdout.write(f"{table_with_head(check_rows(checked)).markdown()}\n{summary(checked)}\n")


def _parser() -> argparse.ArgumentParser:
    shipped = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.yaml")))
    parser = argparse.ArgumentParser(
        prog="python -m examples.simulator",
        description="Predicts the seconds of a training step by layout, mode and number of GPUs.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="layouts: colocated, both policies on all GPUs; separate, each on its own (the best split is found)\n"
        "modes: streaming, a program goes on to its suites and its judge by itself; barrier, all programs first,\n"
        "then all suites, then all verdicts\n\n"
        f"shipped rates: {shipped}. Keys are those of these files, of the block workload where none is named:\n"
        "  python -m examples.simulator paper_1.5b questions=128 program_tokens.sigma=1.0 code.server.demand=0.7 "
        "--gpus 8 16",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="RATES | KEY=VALUE",
        help=f"a YAML file or the name of a shipped one (default {DEFAULT_RATES}), then changes to it",
    )
    parser.add_argument("--gpus", nargs="+", default=[], metavar="N", help="numbers of GPUs (default: the file's)")
    parser.add_argument(
        "--code-gpus", type=positive, metavar="N", help="GPUs of the Code LLM in layout separate (default: the best)"
    )
    parser.add_argument("--layout", default="both", choices=[*LAYOUTS, "both"])
    parser.add_argument("--mode", default="both", choices=[*MODES, "both"])
    parser.add_argument("--sweep", default="", metavar="KEY=VALUE,VALUE,...", help="one table for each value of a key")
    work = parser.add_mutually_exclusive_group()
    work.add_argument("--calibrate", nargs="+", type=Path, metavar="RUN", help="fit the rates to run folders")
    work.add_argument(
        "--check", nargs="+", type=Path, metavar="RUN", help="predict each run with rates from the others"
    )
    parser.add_argument("--output", type=Path, metavar="FILE.yaml", help="where --calibrate writes")
    parser.add_argument("--cores", type=float, help="cores of the host that runs were made on (default: this one's)")
    return parser


if __name__ == "__main__":
    sys.exit(main())

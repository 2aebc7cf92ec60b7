"""``python -m code_a1_recipe.micro make | show | measure``."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from .assets import ensure_assets
from .builder import MicroAssetsError
from .mistakes import Mistake
from .operations import answer_or_none
from .settings import VARIANTS, MicroSettings
from .world import MicroQuestion, assert_text, make_split


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, or 1 when the assets cannot be made."""
    parser = _parser()
    parsed = parser.parse_args(arguments)
    try:
        settings = MicroSettings(seed=parsed.seed, variant=getattr(parsed, "variant", ""))
    except ValueError as error:
        parser.error(str(error))
    if parsed.command == "show":
        split = make_split(
            seed=settings.seed, num_train=1, num_heldout=settings.num_heldout, num_hard=settings.num_hard
        )
        questions = split.hard if parsed.hard else split.heldout
        print("\n\n".join(describe(question) for question in questions[: parsed.num]))
        return 0
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        assets = ensure_assets(parsed.cache_dir, settings=settings)
    except MicroAssetsError as error:
        print(error, file=sys.stderr)
        return 1
    if parsed.command == "make":
        for field in dataclasses.fields(assets):
            print(f"{field.name}: {getattr(assets, field.name)}")
        return 0
    # Imported here: it brings torch and the sandbox, which the other commands do without.
    from .measure import measure_code, measure_tests

    questions = make_split(seed=settings.seed, num_train=1, num_heldout=settings.num_heldout).heldout
    for measured in (measure_code(assets, questions), measure_tests(assets, questions)):
        for name, value in dataclasses.asdict(measured).items():
            print(f"{type(measured).__name__}.{name}: {value:.3f}")
    return 0


def describe(question: MicroQuestion) -> str:
    """A question, its reference and hidden tests, and each typical mistake with what catches it."""
    lines = [f"[{question.id}] {question.prompt}", question.reference, "hidden tests:"]
    lines += [f"    {test}" for test in question.hidden_tests]
    lines.append("typical mistakes, and what catches them:")
    lines += [f"    {mistake.name}: {_catch(question, mistake)}" for mistake in question.mistakes]
    return "\n".join(lines)


def _catch(question: MicroQuestion, mistake: Mistake) -> str:
    """The first hidden test that ``mistake`` fails; there always is one."""
    for x in question.hidden_inputs:
        right, wrong = question.operation.answer(x), answer_or_none(mistake.operation, x)
        if right != wrong:
            says = "raises an error" if wrong is None else f"answers {wrong}"
            return f"{assert_text(x, right)}  (it {says})"
    raise AssertionError(f"no hidden test of {question.id} catches {mistake.name!r}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="code-a1 micro", description="The shipped questions and tiny models: made, shown, measured."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="make the questions and both models, or say where they are")
    show = commands.add_parser("show", help="print questions, their typical mistakes and what catches them")
    measure = commands.add_parser("measure", help="sample both models and judge what they write")
    for command in (make, show, measure):
        command.add_argument("--seed", type=int, default=MicroSettings().seed, help="of the questions (and models)")
    for command in (make, measure):
        command.add_argument("--cache-dir", type=Path, help="default: $CODE_A1_CACHE or ~/.cache/code-a1")
    make.add_argument("--variant", choices=sorted(VARIANTS), default="", help="other models in place of the base's")
    show.add_argument("--hard", action="store_true", help="of the harder split")
    show.add_argument("--num", type=_up_to_100, default=5, metavar="1..100", help="questions to show (default 5)")
    return parser


def _up_to_100(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"must be an integer in [1, 100], got {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())

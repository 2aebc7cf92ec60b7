"""The command line of ``code-a1 data prepare``."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

from sandbox.confine import OPTIONAL_FEATURES
from sandbox.tiers import LOCAL_TIERS

from ..adapters import ADAPTERS
from ..argument_types import column, positive
from ..questions import COLUMNS

_DESCRIPTION = """\
Public problem sets -> a checked training set in this project's columns. Repeated after a stop, it goes on.

Reads KodCode-V1, MBPP, HumanEval, LeetCodeDataset, TACO, APPS, UnLeakedTestBench or any set whose columns you name,
runs every reference solution on its own tests in the sandbox, removes rows that overlap with evaluation sets or repeat
one another, and writes OUTPUT (parquet) with a data card and a list of what was left out and why. A bad row
refuses nothing: it is left out and counted.
"""
_EPILOG = """\
examples:
  code-a1 data prepare kodcode.parquet --output train.parquet --against evalplus.parquet
  code-a1 data prepare KodCode/KodCode-V1:train mbpp.jsonl --output train.parquet \\
      --against HumanEval.jsonl.gz mbppplus.parquet
  code-a1 data prepare mine.jsonl --columns prompt=text reference=code tests=asserts --output train.parquet --limit 100

writes beside OUTPUT:
  OUTPUT.card.md        sources, counts, overlaps, settings, and how to train on it
  OUTPUT.dropped.jsonl  one line a row that was left out: file, row, id, reason, detail
  OUTPUT.judged.jsonl   what the judge found, so that the command, repeated, goes on where it stopped

reasons:
  unusable row               it has no text, or no Python, where some is needed; the rule follows
  overlap                    it repeats a question of an evaluation set (--against)
  load_failed                the reference does not run at all
  reference_fails            it contradicts one of its own tests, or raises in it
  reference_nondeterministic two runs with other hash seeds differ
  reference_slow             a call takes more than --slow-seconds, or all of them together more than 30
  unencodable                it answers with something that is no builtin value, or too large
  too_few_tests              fewer than --min-tests tests can be used
  near_duplicate, duplicate_reference   an earlier row that stays has nearly the same prompt, or the same program
  outage                     the sandbox failed; nothing is known of it. Repeat the command with --overwrite
"""


def command_line() -> argparse.ArgumentParser:
    """All options with their defaults; values are checked as they are read."""
    parser = argparse.ArgumentParser(
        prog="code-a1 data prepare",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    _add_data(parser)
    _add_rules(parser)
    _add_sandbox(parser)
    return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="a parquet, JSONL or JSON file; a folder of such files or of datasets.save_to_disk (FOLDER:split); or "
        "org/name[:split] of the Hugging Face hub",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="OUTPUT", help="the training set; must end in .parquet"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace OUTPUT where it exists")
    parser.add_argument(
        "--against",
        nargs="+",
        default=[],
        metavar="SET",
        help="evaluation sets, named as INPUT is; rows that repeat one of their questions go",
    )
    parser.add_argument(
        "--adapter", default="auto", choices=["auto", *ADAPTERS], help="how to read INPUT (default: by its columns)"
    )
    parser.add_argument(
        "--columns",
        nargs="+",
        type=column,
        default=[],
        metavar="NAME=COLUMN",
        help=f"where INPUT has what; names: {', '.join(COLUMNS)}; the first three are needed, a dot goes into a "
        "nested column",
    )
    parser.add_argument(
        "--against-columns",
        nargs="+",
        type=column,
        default=[],
        metavar="NAME=COLUMN",
        help="the same for sets of --against that are not recognised; prompt=COLUMN is enough",
    )
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="rows of each INPUT, from its start, for a try (default: all)"
    )


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--min-tests",
        type=_count,
        default=1,
        metavar="N",
        help="usable tests a row must have (default 1); 0 keeps questions without tests, which can be trained on but "
        "not validated on",
    )
    parser.add_argument(
        "--drop-tests",
        action="store_true",
        help="a row some of whose tests do not hold (the reference gives another value, raises, or answers with no "
        "builtin value) stays without these tests. By default the row goes: where a reference and its tests disagree, "
        "both are in doubt. Slow and flaky references always go",
    )
    parser.add_argument(
        "--slow-seconds",
        type=_number,
        default=1.0,
        metavar="S",
        help="CPU seconds that a call of the reference may take (default 1.0)",
    )
    parser.add_argument(
        "--ngram",
        type=_words,
        default=10,
        metavar="N",
        help="words in a row that a prompt may not share with one of an evaluation set (default 10); phrases that many "
        "evaluation questions share do not count",
    )
    parser.add_argument(
        "--duplicate-threshold",
        type=_share,
        default=0.8,
        metavar="J",
        help="Jaccard similarity from which two prompts, or a reference and one of an evaluation set, are the same "
        "(default 0.8)",
    )


def _add_sandbox(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="judge processes (default: one a core)",
    )
    parser.add_argument(
        "--tier", type=int, choices=LOCAL_TIERS, default=0, help="how programs are confined (default 0)"
    )
    parser.add_argument(
        "--allow-missing",
        nargs="+",
        default=[],
        choices=OPTIONAL_FEATURES,
        metavar="NAME",
        help="protections this kernel lacks: landlock, seccomp",
    )


def _integer(text: str, *, least: int) -> int:
    if not text.isdigit() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be an integer of at least {least}, got {text!r}")
    return int(text)


def _count(text: str) -> int:
    return _integer(text, least=0)


def _words(text: str) -> int:
    return _integer(text, least=2)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return value


def _share(text: str) -> float:
    if (value := _number(text)) > 1:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, got {text!r}")
    return value

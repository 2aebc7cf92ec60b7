"""Subtracts a small penalty from R_C for each finding of ruff in the program.

    code-a1 cpu rewards.code.path=examples/reward_parts/static_analysis.py rewards.code.name=static_analysis \
        'rewards.code.kwargs={rules: [F401, F841, B006], max_complexity: 10, per_finding: 0.02, max_penalty: 0.1}'

ruff parses a program and never runs it. One process checks all different programs of a question. Comments of the
program (``# noqa``) have no effect, and no configuration file is read.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from reward_fns import Breakdown, QuestionVerdicts, find_code_reward
from sandbox.text import parse_untrusted

RULES = ("F401", "F811", "F841", "B006")
"""Unused import, redefinition of an unused name, variable that is never read, mutable default argument."""
_SELECTOR = re.compile(r"[A-Z]{1,8}[0-9]{0,4}")
_TIMEOUT_SECONDS = 20.0
_NO_PROGRAM = "invalid-syntax"
_ROOM = {"RUST_MIN_STACK": str(64 << 20), "RAYON_NUM_THREADS": "1"}
"""Environment of ruff. Python parses deeper nesting than ruff's usual stack can hold, so the stack is made larger."""


def static_analysis(
    question: QuestionVerdicts,
    *,
    rules: Sequence[str] = RULES,
    max_complexity: int | None = None,
    per_finding: float = 0.02,
    max_penalty: float = 0.1,
    skip_empty_suites: bool = False,
) -> list[Breakdown | None]:
    """``R_C - min(max_penalty, per_finding * findings)`` of each candidate, in [-max_penalty, 1].

    A program that does not parse has no penalty.

    Args:
        question: the judged question.
        rules: names of ruff's rules, or prefixes such as ``B``.
        max_complexity: a function with a larger cyclomatic complexity is a finding (ruff's C901); at least 1.
        per_finding: penalty for one finding, in [0, 1].
        max_penalty: largest penalty for all findings of a program together, in [0, 1].
        skip_empty_suites: argument of R_C, see ``reward_fns.code_llm_reward.pass_rate_rewards``.

    Returns:
        Rewards with R_C's parts, the part ``static_analysis`` (the penalty as a number of at most 0) and the term
        ``findings``. A reward is None if the program has no verdict, or if ruff failed on it.
    """
    rewards = find_code_reward("pass_rate", kwargs={"skip_empty_suites": skip_empty_suites})(question)
    judged = []
    for candidate, reward in zip(question.candidates, rewards, strict=True):
        if reward is not None and candidate.source:
            judged.append(candidate.source)
    findings = count_findings(judged, rules=rules, max_complexity=max_complexity)
    found: list[Breakdown | None] = []
    for candidate, reward in zip(question.candidates, rewards, strict=True):
        number = findings.get(candidate.source, 0) if candidate.source else 0
        if reward is None or number is None:
            found.append(None)
            continue
        penalty = min(max_penalty, per_finding * number)
        parts = {**reward.parts, "static_analysis": 0.0 - penalty}
        terms = {**reward.terms, "findings": float(number)}
        found.append(replace(reward, parts=parts, terms=terms))
    return found


def count_findings(
    sources: Iterable[str], *, rules: Sequence[str], max_complexity: int | None = None
) -> dict[str, int | None]:
    """Count ruff's findings: program -> number. It is 0 if the program does not parse, and None if ruff failed on it.

    If ruff fails on all programs together, it checks each program alone, so that one program does not affect others.
    """
    different = list(dict.fromkeys(sources))
    parsed = [source for source in different if _parses(source)]
    found: dict[str, int | None] = dict.fromkeys(different, 0)
    if parsed:
        arguments = _arguments(rules, max_complexity)
        together = _findings(parsed, arguments)
        if together is None and len(parsed) > 1:
            alone = [_findings([source], arguments) for source in parsed]
            counts = [numbers[0] if numbers else None for numbers in alone]
        else:
            counts = list(together or [None])
        found |= dict(zip(parsed, counts, strict=True))
    return found


def check_arguments(
    *,
    rules: Sequence[str] = RULES,
    max_complexity: int | None = None,
    per_finding: float = 0.02,
    max_penalty: float = 0.1,
    skip_empty_suites: bool = False,
) -> None:
    """Check the arguments before training starts.

    Raises:
        ValueError: a value is out of range, ruff does not know a rule, or ruff is not installed.
    """
    if not isinstance(skip_empty_suites, bool):
        raise ValueError(f"skip_empty_suites must be true or false, got {skip_empty_suites!r}")
    for name, value in (("per_finding", per_finding), ("max_penalty", max_penalty)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} must be a number in [0, 1], got {value!r}; 0.02 is a small penalty")
    if max_complexity is not None and (type(max_complexity) is not int or max_complexity < 1):
        raise ValueError(f"max_complexity must be an integer of at least 1, got {max_complexity!r}; 10 is ruff's own")
    if not isinstance(rules, (list, tuple)) or not all(
        isinstance(rule, str) and _SELECTOR.fullmatch(rule) for rule in rules
    ):
        raise ValueError(f"rules must be a list of ruff's rules, got {rules!r}; such as [F401, B006]")
    if not rules and max_complexity is None:
        raise ValueError("rules must name at least one rule where max_complexity is not given, got []")
    if _ruff() is None:
        raise ValueError("static_analysis needs the program ruff, which is not installed here: pip install ruff")
    done = _run([*_arguments(rules, max_complexity), "-"], stdin="")
    if done is None or done.returncode:
        reason = " ".join(done.stderr.split()) if done else "no answer"
        raise ValueError(f"rules must be rules that ruff knows, got {list(rules)!r}: {reason}; see `ruff rule --all`")


static_analysis.check_arguments = check_arguments  # type: ignore[attr-defined]


def _ruff() -> str | None:
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.exists() else shutil.which("ruff")


def _arguments(rules: Sequence[str], max_complexity: int | None) -> list[str]:
    selected = [*rules, *(["C901"] if max_complexity is not None else [])]
    limit = [] if max_complexity is None else ["--config", f"lint.mccabe.max-complexity={max_complexity}"]
    plain = ["check", "--isolated", "--no-cache", "--ignore-noqa", "--exit-zero", "--output-format", "json"]
    return [*plain, *limit, "--select", ",".join(selected)]


def _parses(source: str) -> bool:
    try:
        parse_untrusted(source)
        source.encode()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _findings(sources: Sequence[str], arguments: Sequence[str]) -> list[int] | None:
    """Count the findings in each program with one process of ruff; None if the process fails."""
    with tempfile.TemporaryDirectory(prefix="static-analysis-") as folder:
        names = [f"candidate_{number}.py" for number in range(len(sources))]
        for name, source in zip(names, sources, strict=True):
            Path(folder, name).write_bytes(source.encode())
        done = _run([*arguments, folder], stdin="")
    if done is None or done.returncode:
        return None
    rows = json.loads(done.stdout)
    unparsed = {Path(row["filename"]).name for row in rows if row["code"] in (None, _NO_PROGRAM)}
    number = Counter(Path(row["filename"]).name for row in rows)
    return [0 if name in unparsed else number[name] for name in names]


def _run(arguments: Sequence[str], *, stdin: str) -> subprocess.CompletedProcess[str] | None:
    """Run ruff. Return None if it does not end in time."""
    program = _ruff()
    if program is None:
        raise ValueError("static_analysis needs the program ruff, which is not installed here: pip install ruff")
    environment, command = {**os.environ, **_ROOM}, [program, *arguments]
    try:
        return subprocess.run(
            command, input=stdin, capture_output=True, encoding="utf-8", env=environment, timeout=_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return None

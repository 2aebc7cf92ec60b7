"""Keeps the questions that a model solves sometimes, by the verdicts of ``code-a1 eval code``.

If a model always or never solves a question, all programs for this question get the same reward. Equal rewards give
advantages of zero, so the question teaches nothing (GRPO, arXiv 2402.03300, equation 3). Absolute Zero (arXiv
2505.03335) gives no reward for proposing a task that is always or never solved.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...data.reader import iter_rows
from ...errors import InputError
from ..evaluate.code_llm import VERDICTS
from .rows import Entry, Reason, Stage

USUAL_KEEP = (0.05, 0.95)


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The verdicts of an evaluation, and how often its model solves the questions that were looked up so far."""

    folder: Path
    """Output folder of the evaluation."""
    keep: tuple[float, float]
    """Lowest and highest share of passing programs of a question that stays."""
    passed: Mapping[str, Sequence[bool | None]]
    """Id of a question -> for each of its programs, whether it passed; None for a program without a verdict."""
    num_solved: Counter[tuple[int, int]] = field(default_factory=Counter)
    """(number of passing programs, number of programs) of a question -> number of such questions."""

    @classmethod
    def read(cls, folder: Path, keep: tuple[float, float]) -> "Rates":
        """Read the verdicts of an evaluation.

        Raises:
            InputError: the folder has no readable verdicts, or the verdicts of several evaluations.
        """
        path = folder / VERDICTS
        if not path.is_file():
            raise InputError(f"--rates {folder}: has no {VERDICTS}; name the --output of `code-a1 eval code`")
        passed: dict[str, dict[int, bool | None]] = defaultdict(dict)
        for row in iter_rows(path):
            number = row["sample"]
            # A folder that was used again with another model or temperature keeps the earlier verdicts, too.
            if number in passed[row["question"]]:
                raise InputError(
                    f"--rates {folder}: has two verdicts on program {number} of question {row['question']!r}, of two "
                    "models or settings; evaluate into a new folder"
                )
            passed[row["question"]][number] = row["passed"]
        return cls(folder=folder, keep=keep, passed={name: list(known.values()) for name, known in passed.items()})

    @property
    def summary(self) -> str:
        """The distribution of the rates as text, with the range of ``--keep``."""
        counts = [f"{solved}/{number}: {questions}" for (solved, number), questions in sorted(self.num_solved.items())]
        low, high = self.keep
        shown = ", ".join(counts) or "none"
        return f"questions by how many programs of {self.folder} solve them: {shown}; --keep {low:g} {high:g}"

    def check(self, entries: Sequence[Entry]) -> Stage:
        """Leave out entries without a verdict, and entries whose rate is below or above the range of ``keep``."""
        low, high = self.keep
        for entry in entries:
            passed = self.passed.get(entry.question.id, ())
            if not passed or None in passed:
                command = f"code-a1 eval code {entry.file} --output {self.folder}"
                detail = f"no verdict on it, or not on all its programs; run `{command}` with the model, and repeat"
                yield entry.dropped(Reason.NOT_RATED, detail)
                continue
            num_solved = sum(map(bool, passed))
            self.num_solved[num_solved, len(passed)] += 1
            rate = num_solved / len(passed)
            if low <= rate <= high:
                yield entry
            else:
                reason = Reason.TOO_HARD if rate < low else Reason.TOO_EASY
                yield entry.dropped(reason, f"{num_solved} of {len(passed)} programs solve it")

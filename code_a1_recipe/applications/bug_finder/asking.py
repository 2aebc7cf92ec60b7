"""A runner that asks again what it had no time for: an attack says nothing about calls that were never made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sandbox import (
    HANGS_THROUGHOUT,
    TOTAL_SPENT,
    CallResult,
    CallStatus,
    Limits,
    Program,
    ProgramResult,
    Role,
    Runner,
    matches,
)

MAX_RUNS = 8
"""Of one program, each with ``Limits.total_seconds``, while each of them answers further calls."""


@dataclass(frozen=True, slots=True)
class AskingAll:
    """Runs programs as ``runner`` does, then asks the calls that were not made again in further processes."""

    runner: Runner

    @property
    def limits(self) -> Limits:
        return self.runner.limits

    def run(self, program: Program, *, role: Role) -> ProgramResult:
        """As ``Runner.run``; answers for which ``was_asked`` does not hold are left only after ``MAX_RUNS`` runs."""
        result = self.runner.run(program, role=role)
        answers = list(result.results)
        missing = _unasked(answers)
        for _ in range(MAX_RUNS - 1):
            if not missing:
                break
            rest = replace(
                program,
                calls=tuple(program.calls[index] for index in missing),
                reference_cpu_seconds=tuple(program.reference_cpu_seconds[index] for index in missing),
                max_timeouts_without_result=len(missing) + 1,  # many are known to hang; the others count
            )
            again = self.runner.run(rest, role=role)
            for index, answer in zip(missing, again.results, strict=False):
                answers[index] = answer
            before, missing = missing, _unasked(answers)
            if len(missing) == len(before):
                break
        return replace(result, results=tuple(answers))

    def close(self) -> None:
        self.runner.close()


def was_asked(answer: CallResult) -> bool:
    """False where other calls had used up the program's time, or its patience."""
    return answer.status is not CallStatus.TIMED_OUT or answer.detail not in (TOTAL_SPENT, HANGS_THROUGHOUT)


def differ(one: CallResult, other: CallResult) -> bool:
    """Two runs of one call differ. Time-outs hang on the machine's load, and texts of exceptions may hold addresses."""
    if CallStatus.TIMED_OUT in (one.status, other.status):
        return False
    return one.status is not other.status or (one.status is CallStatus.VALUE and not matches(one.value, other.value))


def _unasked(answers: list[CallResult]) -> list[int]:
    return [index for index, answer in enumerate(answers) if not was_asked(answer)]

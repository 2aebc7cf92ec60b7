"""SandboxFusion's form of asking for one program, and of answering.

The form (arXiv 2412.00535, its ``/run_code``) is what verl's ``reward.sandbox_fusion`` sends. Of it is covered
what a ``Runner`` can promise: Python, one standard input, no files. All else is refused, never run in part.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..cases.case import Call
from ..errors import ValueFormatError
from ..limits import Limits
from ..runners.base import CallStatus, Program, ProgramResult
from ..values.decoding import decode_raw
from ..values.literals import INPUT_ENTRY

_RUN_KEYS = frozenset(
    {"code", "stdin", "language", "run_timeout", "compile_timeout", "memory_limit_MB", "files", "fetch_files"}
)


def read_program(body: Any, limits: Limits) -> Program:
    """The program of a body in SandboxFusion's form; its limits are at most ``limits``.

    Raises:
        ValueError: something is missing, wrong, or not offered here.
    """
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        raise ValueError("a body must be an object with a text 'code'")
    if unknown := sorted(body.keys() - _RUN_KEYS):
        raise ValueError(f"unknown fields {unknown}; known: {sorted(_RUN_KEYS)}")
    if (language := body.get("language", "python")) != "python":
        raise ValueError(f"language={language!r} is not offered, only 'python'")
    if named := [name for name in ("files", "fetch_files") if body.get(name)]:
        raise ValueError(f"{named} are not offered: programs have no files")
    stdin = body.get("stdin") or ""
    if not isinstance(stdin, str):
        raise ValueError(f"'stdin' must be a text or null, got {type(stdin).__name__}")
    # A client may ask for less than the service grants, never for more.
    seconds = min(_number(body, "run_timeout", limits.cpu_seconds_per_case), limits.cpu_seconds_per_case)
    seconds = max(seconds, limits.min_cpu_seconds_per_case)
    memory = min(_number(body, "memory_limit_MB", limits.memory_bytes / 2**20) * 2**20, limits.memory_bytes)
    limits = replace(limits, cpu_seconds_per_case=seconds, memory_bytes=int(memory))
    call = Call(expression=f"{INPUT_ENTRY}({stdin!r})")
    return Program(
        source=body["code"],
        calls=(call,),
        limits=limits,
        reads_input=True,
    )


def _number(body: Mapping[str, Any], name: str, default: float) -> float:
    value = body.get(name)
    if value is None or value == -1:  # SandboxFusion's word for no limit
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ValueError(
            f"{name!r} must be a number above 0 and below 1e9, or -1 for no limit of its own, got {value!r}"
        )
    return float(value)


def _text(value: bytes) -> str | None:
    """The text that an untrusted process sent, if it is one; nothing else is built of its bytes."""
    try:
        text = decode_raw(value)
    except (ValueFormatError, RecursionError, MemoryError):
        return None
    return text if isinstance(text, str) else None


def run_json(result: ProgramResult) -> dict[str, Any]:
    """A program's result in SandboxFusion's form. Output that came before a failure is not kept."""
    found = result.results[0] if result.loaded else None
    printed = _text(found.value) if found is not None and found.status is CallStatus.VALUE else None
    is_good = printed is not None
    is_late = found is not None and found.status is CallStatus.TIMED_OUT
    detail = result.load_error if found is None else found.detail or found.status.value
    ran = {
        "status": "TimeLimitExceeded" if is_late else "Finished",
        "execution_time": result.wall_seconds,
        "return_code": 0 if is_good else None if is_late else 1,
        "stdout": printed or "",
        "stderr": "" if is_good else detail,
    }
    return {"status": "Success" if is_good else "Failed", "message": "", "compile_result": None, "run_result": ran}

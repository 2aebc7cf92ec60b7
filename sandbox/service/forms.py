"""Requests and responses in SandboxFusion's format, for one program.

The format (``/run_code`` in arXiv 2412.00535) is the one that verl's ``reward.sandbox_fusion`` uses. The service covers
what a ``Runner`` can promise: Python, one standard input, no files. Any other request is refused, never run in part.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..cases.case import Call
from ..errors import ValueFormatError
from ..limits import MIB, Limits
from ..runners.base import CallResult, CallStatus, Program, ProgramResult
from ..values.decoding import decode_raw
from ..values.literals import INPUT_ENTRY

_RUN_KEYS = frozenset(
    {"code", "stdin", "language", "run_timeout", "compile_timeout", "memory_limit_MB", "files", "fetch_files"}
)


def read_program(body: Any, limits: Limits) -> Program:
    """Read the program of a request in SandboxFusion's format.

    Args:
        body: the request's JSON.
        limits: highest limits of the program. The request may ask for lower ones.

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
    # A client may ask for less than the service grants, but never for more.
    seconds = min(_number(body, "run_timeout", limits.cpu_seconds_per_case), limits.cpu_seconds_per_case)
    seconds = max(seconds, limits.min_cpu_seconds_per_case)
    memory = min(_number(body, "memory_limit_MB", limits.memory_bytes / MIB) * MIB, limits.memory_bytes)
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
    if value is None or value == -1:  # in SandboxFusion -1 means no limit
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ValueError(
            f"{name!r} must be a number above 0 and below 1e9, or -1 for no limit of its own, got {value!r}"
        )
    return float(value)


def _text(value: bytes) -> str | None:
    """Return the text that an untrusted process sent, or None if its bytes are no text."""
    try:
        text = decode_raw(value)
    except (ValueFormatError, RecursionError, MemoryError):
        return None
    return text if isinstance(text, str) else None


def run_json(result: ProgramResult) -> dict[str, Any]:
    """Return a program's result in SandboxFusion's format. Output before a failure is not kept."""
    call = result.results[0] if result.loaded else CallResult(status=CallStatus.RAISED, detail=result.load_error)
    printed = _text(call.value) if call.status is CallStatus.VALUE else None
    is_late = call.status is CallStatus.TIMED_OUT
    run_result = {
        "status": "TimeLimitExceeded" if is_late else "Finished",
        "execution_time": result.wall_seconds,
        "return_code": None if is_late else int(printed is None),
        "stdout": printed or "",
        "stderr": call.detail or call.status.value if printed is None else "",
    }
    status = "Failed" if printed is None else "Success"
    return {"status": status, "message": "", "compile_result": None, "run_result": run_result}

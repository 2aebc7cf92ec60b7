"""Requests and responses in SandboxFusion's format. Each request holds one program.

verl's ``reward.sandbox_fusion`` uses this format (``/run_code`` in arXiv 2412.00535). The service accepts what every
``Runner`` can run: Python with one standard input and without files. The service refuses any other request as a whole.
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
        limits: highest limits of the program. The request may ask for lower limits.

    Raises:
        ValueError: a field is missing or wrong, or asks for something that the service does not offer.
    """
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        raise ValueError("a body must be an object with a text 'code'")
    if unknown := sorted(body.keys() - _RUN_KEYS):
        raise ValueError(f"unknown fields {unknown}; known: {sorted(_RUN_KEYS)}")
    language = body.get("language", "python")
    if language != "python":
        raise ValueError(f"language={language!r} is not offered, only 'python'")
    if named := [name for name in ("files", "fetch_files") if body.get(name)]:
        raise ValueError(f"{named} are not offered: programs have no files")
    stdin = body.get("stdin") or ""
    if not isinstance(stdin, str):
        raise ValueError(f"'stdin' must be a text or null, got {type(stdin).__name__}")
    # The service grants these limits. A client may ask for lower limits, but never for higher ones.
    seconds = _lowered(limits.cpu_seconds_per_case, body, "run_timeout")
    seconds = max(seconds, limits.min_cpu_seconds_per_case)
    mebibytes = _lowered(limits.memory_bytes / MIB, body, "memory_limit_MB")
    call = Call(expression=f"{INPUT_ENTRY}({stdin!r})")
    return Program(
        source=body["code"],
        calls=(call,),
        limits=replace(limits, cpu_seconds_per_case=seconds, memory_bytes=int(mebibytes * MIB)),
        reads_input=True,
    )


def _lowered(granted: float, body: Mapping[str, Any], name: str) -> float:
    """Return the limit that the request asks for, or the granted limit if that is lower."""
    value = body.get(name)
    if value is None or value == -1:  # for SandboxFusion, -1 means no limit
        return granted
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ValueError(
            f"{name!r} must be a number above 0 and below 1e9, or -1 for no limit of its own, got {value!r}"
        )
    return min(float(value), granted)


def _text(value: bytes) -> str | None:
    """Return the text that an untrusted process sent, or None if the bytes do not encode a text."""
    try:
        text = decode_raw(value)
    except (ValueFormatError, RecursionError, MemoryError):
        return None
    return text if isinstance(text, str) else None


def run_json(result: ProgramResult) -> dict[str, Any]:
    """Return a program's result in SandboxFusion's format. If the program failed, leave out its output."""
    failure = CallResult(status=CallStatus.RAISED, detail=result.load_error)
    call = result.results[0] if result.loaded else failure
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

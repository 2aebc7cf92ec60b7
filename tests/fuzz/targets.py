"""Fuzz targets for the code that reads untrusted bytes. A target accepts any bytes, and raises for a broken promise.

``coverage_guided.py`` runs a target for hours with atheris, and ``test_fuzz_targets.py`` for seconds with fixed seeds.
The targets do not check time and memory, which libFuzzer's ``-timeout`` and ``-rss_limit_mb`` limit.
"""

from __future__ import annotations

import ast
import json
from fractions import Fraction
from pathlib import Path

from reward_fns.extract import MAX_RESPONSE_CHARS, ExtractionFailure, extract_candidate, extract_suite
from sandbox.cases.case import Call, Case, Kind, Rejection
from sandbox.cases.parser import parse_assert, parse_call, parse_suite
from sandbox.cases.reference_interface import Interface
from sandbox.errors import UnencodableError, ValueFormatError
from sandbox.judge.request import JudgeRequest
from sandbox.limits import Limits
from sandbox.runners.attempt import Attempt, ExitReason
from sandbox.runners.base import CallStatus, Program
from sandbox.runners.child import CPU_TIME, HEADER, pack_call
from sandbox.service.forms import read_program
from sandbox.values.comparison import matches, to_literal
from sandbox.values.decoding import decode, decode_raw
from sandbox.values.encoding import canonical_key, encode
from sandbox.values.outputs import CHECKERS, output_checker

_SEEDS = Path(__file__).resolve().parent / "seeds"


class BrokenPromiseError(AssertionError):
    """The code under test has broken one of its promises."""


def require(condition, promise):
    if not condition:
        raise BrokenPromiseError(promise)


# Frame reader -------------------------------------------------------------------------------------------------

_LIMITS = Limits(value_bytes=64, total_output_bytes=1 << 11)
_NUM_CALLS = 3
_ANSWERS = {
    b"V": CallStatus.VALUE,
    b"E": CallStatus.RAISED,
    b"U": CallStatus.UNENCODABLE,
    b"O": CallStatus.OUTPUT_LIMIT,
}
_MAX_FRAME = 1024
"""Limit of a payload that is not a value, for any ``value_bytes``."""


class _Wire:
    """A channel that delivers the given chunks and then ends."""

    def __init__(self, chunks):
        self._chunks = iter(chunks)

    def recv(self, count):
        return next(self._chunks, b"")


def _attempt(*, timed):
    program = Program(
        prelude="",
        source="",
        calls=tuple(Call(expression=f"f({n})") for n in range(_NUM_CALLS)),
        reference_cpu_seconds=(0.0,) * _NUM_CALLS,
        limits=_LIMITS,
        timed=timed,
    )
    return Attempt(program=program, indices=range(_NUM_CALLS), seconds_left=1.0, take=lambda result: None)


def _chunks(data, cuts):
    """Cut ``data`` into pieces. The bytes of ``cuts`` give their sizes in turn."""
    pieces, at, turn = [], 0, 0
    while at < len(data):
        size = cuts[turn % len(cuts)] + 1 if cuts else len(data)
        pieces.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


def _read_all(data, cuts, *, timed):
    attempt, pieces = _attempt(timed=timed), _chunks(data, cuts)
    attempt._request_calls()
    wire = _Wire(pieces)
    for _ in range(len(pieces) + 1):
        stop = attempt._read(wire)
        if stop is not None:
            return stop, [(answer.status, answer.value) for answer in attempt.results], attempt
        longest = HEADER.size + _MAX_FRAME + CPU_TIME.size
        require(len(attempt._received) < longest, "less than one frame is kept unread")
    raise BrokenPromiseError("a hang-up ends the attempt")


def _model(data, *, timed):
    """Read all frames at once, as the protocol demands. The reason is None if the stream ends early."""
    answers = []
    wanted = [b"R", b"L"]
    num_clock_bytes = CPU_TIME.size if timed else 0
    while len(data) >= HEADER.size:
        kind, length = HEADER.unpack_from(data)
        if length > _MAX_FRAME + num_clock_bytes:
            return ExitReason.OUTPUT_LIMIT if not wanted else ExitReason.BROKE_PROTOCOL, answers
        payload, rest = data[HEADER.size : HEADER.size + length], data[HEADER.size + length :]
        if len(payload) < length:
            break
        data = rest
        if wanted:
            if kind != wanted.pop(0):
                if wanted:
                    return ExitReason.SETUP_FAILED, answers
                return ExitReason.LOAD_FAILED if kind == b"X" else ExitReason.BROKE_PROTOCOL, answers
        elif kind not in _ANSWERS or length < num_clock_bytes:
            return ExitReason.BROKE_PROTOCOL, answers
        else:
            answers.append((_ANSWERS[kind], payload[num_clock_bytes:] if kind == b"V" else b""))
        if len(answers) == _NUM_CALLS:
            return ExitReason.FINISHED, answers
    return None, answers


def frames(data):
    """The frame reader must agree with ``_model``, however the bytes are cut."""
    if len(data) < 2:
        return
    timed, num_cuts = bool(data[0] & 1), data[0] >> 5
    cuts, stream = data[1 : 1 + num_cuts], data[1 + num_cuts :]
    stop, answers, attempt = _read_all(stream, cuts, timed=timed)
    require(len(answers) <= _NUM_CALLS, "no more answers than calls")
    require((stop is ExitReason.FINISHED) == (len(answers) == _NUM_CALLS), "finished means every call has its answer")
    require(all(len(answer.detail) <= 400 for answer in attempt.results), "remarks are short")
    expected_stop, expected = _model(stream, timed=timed)
    if len(stream) <= _LIMITS.total_output_bytes:
        require(answers == expected, f"the model reads {expected}, the reader {answers}")
        if stop is ExitReason.SETUP_FAILED:
            require(expected_stop in (None, ExitReason.SETUP_FAILED) and not answers, "a failed set-up comes first")
        elif expected_stop is not None:
            require(stop is expected_stop, f"the model ends in {expected_stop}, the reader in {stop}")
        else:
            require(
                stop in (ExitReason.CLOSED, ExitReason.OUTPUT_LIMIT, ExitReason.BROKE_PROTOCOL),
                "an unfinished stream is an end",
            )
    else:
        require(answers == expected[: len(answers)], "a cut-off stream gives a prefix of its answers")


# Bounded decoder and comparison -------------------------------------------------------------------------------


def decoder(data):
    """Decode, compare and print bytes that a program may send."""
    place = data[0] % (len(data) or 1) if data else 0
    one, other = data[1 : 1 + place], data[1 + place :]
    for claim in (data[1:], one, other):
        _decode_one(claim)
    require(matches(one, other) in (True, False), "a comparison is a verdict")
    try:
        reference = encode(decode(one))
    except (ValueFormatError, UnencodableError):
        return
    require(matches(reference, reference), "a value equals itself")
    if matches(reference, other):
        require(len(other) <= 8 * len(reference) + 64, "nothing long is compared")


def _decode_one(claim):
    raw_error = value = None
    try:
        decode_raw(claim)
    except ValueFormatError as error:
        raw_error = error
    try:
        value = decode(claim)
    except ValueFormatError:
        return
    require(raw_error is None, f"decode takes what decode_raw refuses: {raw_error}")
    again = encode(value)
    require(encode(decode(again)) == again, "encode(decode(x)) is a fixed point")
    require(matches(again, again), "a decoded value equals itself")
    require(isinstance(canonical_key(decode(again)), bytes) if _has_key(value) else True, "a value has a key")
    try:
        literal = to_literal(again)
    except ValueFormatError:
        return
    case = parse_assert(f"assert f() == {literal}", _INTERFACE, assert_chars=1 << 24)
    if isinstance(case, Case):  # the gate refuses a few literals, because they are too deep or too large
        require(matches(again, case.expected_value), f"{literal[:80]} reads back as another value")


def _has_key(value):
    try:
        canonical_key(value)
    except UnencodableError:  # the range has more items than an index can count
        return False
    return True


# Case parser --------------------------------------------------------------------------------------------------

_REFERENCE = """
def f(a=1, b=2, *rest, c=None, **more): pass
async def g(x, /, y=(), *, z=[]): pass
class C:
    size = 0
    def __init__(self, x=0): self.x = x
    def m(self, k=1): pass
    async def n(self): pass
    @staticmethod
    def s(t): pass
class D(C): pass
"""
_INTERFACE = Interface.of(_REFERENCE)
_TOKENS = (
    "f(", "g(", "C(", "D(", ")", ").m(", ").x", "[0]", ", ", "a=", "b=", "x=", "==", " == ", "1", "-1", "0x1", "1.0",
    "1e999", "True", "None", "'a'", "b'x'", "'\\ud800'", "[", "]", "{", "}", ": ", "(", "set(", "frozenset(", "dict(",
    "range(", "deque(", "Counter(", "OrderedDict(", "defaultdict(int, ", "Fraction(", "Decimal(", "float('nan')",
    "float('inf')", "complex(", "math.inf", "**", "*", "+", "//", "%", "<<", "10**9", "2**61-1", "99999", "await ",
    "asyncio.run(", "sorted(", "len(", "round(", "reverse=True", "lambda: ", " if ", " else ", " for x in ", ":=",
    "f'{", "...", "\n", "\\\n", "\t", ";", "#", "\x00", "\x0c", "\r", "\u00e9", "\ufeff", "\u037e", "_", "__class__",
    ".s(", ".n(", ".size", "not ", " in ", "assert ", "assert(", "'1' * 9", "[0] * 1000", "-", "~", "1j", "1_0",
    "1/3", "\\", '"""', "Decimal('1E+99')", "0.1", "list_node([", "tree_node(", "])",
)  # fmt: skip


def _text(data):
    """Make a text. After an odd first byte, each byte chooses a token. After an even one, the bytes are UTF-8."""
    if data and data[0] & 1:
        return "".join(_TOKENS[byte % len(_TOKENS)] for byte in data[1:])
    return data[1:].decode("utf-8", "surrogateescape")


def parser(data):
    """The static gate gives a case or a rejection, and the text of an accepted call gives the same call again."""
    text = _text(data)
    for written in (text, f"assert f({text}", f"assert {text}"):
        parsed = parse_assert(written, _INTERFACE)
        require(isinstance(parsed, Case | Rejection), "any text is a case or a rejection")
        require(parsed.text == written, "the text is kept as written")
        if isinstance(parsed, Case):
            _check_case(parsed)
    called = parse_call(text, _INTERFACE)
    require(isinstance(called, Case | Rejection), "any text is a call or a rejection")
    if isinstance(called, Case):
        _check_call(called)
    require(isinstance(Interface.of(text), Interface), "any reference has an interface, if an empty one")
    lines = text.split("\n")
    suite = parse_suite(lines, _INTERFACE)
    require(len(suite.cases) + len(suite.rejections) == len(lines), "nothing is lost")
    require(len({case.key for case in suite.cases}) == len(suite.cases), "every call is made once")


def _check_call(case, interface=_INTERFACE):
    again = parse_call(case.call.text, interface, assert_chars=1 << 24)
    require(isinstance(again, Case), f"a call's own text is refused: {again}")
    require((again.call, again.key) == (case.call, case.key), "a call's own text is another call")
    pack_call(case.call.expression, awaited=case.call.awaited, uses_library=case.call.uses_library)
    ast.parse(case.call.evaluated, mode="eval")


def _check_case(case):
    _check_call(case)
    require(encode(decode(case.expected_value)) == case.expected_value, "a claim is canonical")
    require(matches(case.expected_value, case.expected_value), "a claim equals itself")
    again = parse_assert(f"assert f() == {to_literal(case.expected_value)}", _INTERFACE, assert_chars=1 << 24)
    require(isinstance(again, Case), f"a claim's own literal is refused: {again}")
    require(matches(case.expected_value, again.expected_value), "a claim's own literal is another value")


# Extractor ----------------------------------------------------------------------------------------------------

_PIECES = (
    "```python\n", "```py\n", "```Python3\n", "```\n", "```", "\n```\n", "````", "~~~", "\n", "\r\n", "\r", "\x0c",
    "\u2028", "\x00", "assert f(1) == 2\n", "assert(", "assert\tx\n", "assert ", "  assert f(", "f([1,\n", "2])\n",
    ") == 1\n", "def f(x):\n", "    return x\n", "class A: pass\n", "async def g(): ...\n", '"""', "'''", "'", '"',
    "\\\n", ";", "#", "if x:\n", " ", "\t", "\u00e9", "\ud800", "text", "(", ")", "[", "]", "{", "}", "import os\n",
    "@d\n", "lambda: 0", "==", "\x1c", "\v",
)  # fmt: skip


def extractor(data):
    """From any response, the extractor gives pieces of the response, or failures with a known reason."""
    odd = bool(data) and bool(data[0] & 1)
    text = "".join(_PIECES[byte % len(_PIECES)] for byte in data[1:]) if odd else _text(data)
    candidate, suite = extract_candidate(text, reads_input=bool(data) and bool(data[0] & 2)), extract_suite(text)
    few = extract_suite(text, max_asserts=2)
    if isinstance(candidate, ExtractionFailure):
        require(candidate.reason in _REASONS, f"an unknown reason: {candidate.reason}")
    else:
        # A program may consist of several blocks. If a fence is indented, its block loses the indentation.
        lines = [line.strip() for line in candidate.splitlines()]
        require(any(lines) and all(line in text for line in lines), "a candidate is made of lines of the response")
    if isinstance(suite, ExtractionFailure):
        require(suite.reason in _REASONS and few == suite, f"an unknown reason: {suite.reason}")
        return
    require(0 < len(suite) <= 64 and few == suite[:2], "a suite is cut at its limit, not chosen differently")
    require(all(item.startswith("assert") for item in suite), "an assert begins as one")
    require(len(text) <= MAX_RESPONSE_CHARS, "nothing longer than the limit is read")
    plain = "".join(text.split())  # whitespace at the end of a line is lost
    for item in suite:
        # An assert in a loop is rewritten with the loop's values, so the response need not contain its text.
        require("".join(item.split()) in plain or ast.parse(item), "an assert is a piece of the response")


_REASONS = frozenset({"empty", "too_long", "unclosed_block", "no_code", "no_asserts"})


# Tests of programs that read standard input, and of arguments changed in place -------------------------------

_RUNS = Interface.of("", kind=Kind.STDIN)
_IN_PLACE = Interface.of(_REFERENCE, kind=Kind.IN_PLACE)
_CHECKERS = tuple(map(output_checker, (*CHECKERS, "floats:0", "floats:1e308")))


def inputs(data):
    """The gate of the other two kinds accepts an accepted call again, and checkers compare any two texts."""
    text = _text(data)
    for written in (text, f"assert run({text!r}) == {text!r}", f"assert run({text}", f"run({text})"):
        for interface in (_RUNS, _IN_PLACE):
            for parsed in (parse_assert(written, interface), parse_call(written, interface)):
                require(isinstance(parsed, Case | Rejection), "any text is a case or a rejection")
                if isinstance(parsed, Case):
                    _check_call(parsed, interface)
    one, _, other = text.partition("\n")
    for same in _CHECKERS:
        require("---" in one or same(encode(one), encode(one)), "a text equals itself, or is several outputs")
        require(same(encode(one), encode(other)) in (True, False), "a comparison is a verdict")
        require(not same(encode(one), data) or data == encode(one), "bytes of a program are no text, or the same")


# Bodies of the service ----------------------------------------------------------------------------------------


def bodies(data):
    """The JSON of a client is a request or a program, or raises a ValueError that gives the reason."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return
    for read in (JudgeRequest.from_mapping, lambda one: read_program(one, Limits())):
        try:
            read(body)
        except ValueError as error:
            require(str(error), "a refusal says why")


TARGETS = {
    "frames": frames,
    "decoder": decoder,
    "parser": parser,
    "extractor": extractor,
    "inputs": inputs,
    "bodies": bodies,
}


# Seeds --------------------------------------------------------------------------------------------------------


def saved_inputs(name):
    """Read the inputs in ``seeds``. Each line holds one input in hexadecimal, and ``#`` begins a comment."""
    for line in (_SEEDS / f"{name}.hex").read_text().splitlines():
        if text := line.partition("#")[0].strip():
            yield bytes.fromhex(text)


_VALID_TEXTS = {
    "parser": (
        "assert f(1, b=[2]) == {'a': (1,)}",
        "assert await g(1, z=Counter('ab')) == float('inf')",
        "assert C(1).m(k=2) == frozenset({1})",
        "assert sorted(f(set(range(3))), reverse=True) == [0x1, -1.5]",
        "f(Decimal('1.5') , Fraction(1, 3), *[1])",
    ),
    "inputs": (
        "3\n1 2 3\n",
        "1e-3 2\n0.001 2",
        "a\n---\nb",
        "\x0b\x85\u2028 ",
        "assert C([1]).m(2) == 3",
        "f([1], b=2)",
    ),
    "extractor": (
        "```python\ndef f(x):\n    return x\n```",
        "Here:\n```\nassert f(1) == 2\nassert f(\n  2) == 3\n```\nbye",
    ),
}


def valid_inputs(name):
    """Yield well-formed inputs, from which mutation starts."""
    for text in _VALID_TEXTS.get(name, ()):
        yield b"\x00" + text.encode()
    if name == "parser":
        yield b"\x01" + bytes(range(0, len(_TOKENS), 3))
    elif name == "extractor":
        yield b"\x01" + bytes(range(0, len(_PIECES), 2))
    elif name == "frames":
        answers = [(b"R", b""), (b"L", b""), (b"V", b"i1;"), (b"E", b"ValueError: x"), (b"U", b"object")]
        stream = b"".join(HEADER.pack(kind, len(payload)) + payload for kind, payload in answers)
        yield b"\x00" + stream
        yield b"\x61\x00\x04\x02" + stream
        yield b"\x01" + stream[:12] + HEADER.pack(b"X", 4) + b"fail"
        yield b"\x20\x07" + HEADER.pack(b"!", 4) + b"down"
        yield b"\x00" + stream[:10] + HEADER.pack(b"V", 0xFFFFFFFF) + b"x"
    elif name == "decoder":
        scalars = (0, -255, 1.5, float("nan"), True, None, 1j, "a\ud800", b"\0", range(3), Fraction(1, 3))
        for value in (*scalars, [1, (2, {3})], {"a": [1]}):
            data = encode(value)
            yield bytes([len(data)]) + data + data
        yield b"\x04D6:1E+99i5;q1/3;S2:i1;TQ1:nl3:TFN"
    elif name == "bodies":
        request = {"reference": "x", "candidate": None, "tests": ["a"], "kind": "stdin", "checker": "floats:1"}
        program = {"code": "x", "stdin": "1", "run_timeout": 1, "memory_limit_MB": 5, "files": {}, "language": "python"}
        for body in (request, request | {"suites": [["a"]], "history": ["b"]}, program, [request]):
            yield json.dumps(body).encode()

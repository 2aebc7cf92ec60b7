"""Values, texts and suites meant to make the trusted process slow, large or wrong. One attack a test.

No test here looks at a clock: each of them took from many seconds to many minutes of the judge's own
time, or gigabytes of its memory, before the bound it is about.
"""

import pytest

from reward_fns import ExtractionFailure, extract_candidate, extract_suite
from sandbox import Rejection
from sandbox.cases.definitions import without_examples
from sandbox.judge import oracle
from sandbox.text import Case, Interface, encode, matches, parse_assert, parse_suite

INTERFACE = Interface.of("def f(*arguments, **named): pass")
HUGE = b"f" * 1_000_000


@pytest.mark.parametrize(
    ("reference", "claim"),
    [
        pytest.param(b"i%s;" % HUGE, b"D1:1", id="a small decimal for a giant integer"),
        pytest.param(b"i%s;" % HUGE, b"D1000000:" + b"7" * 1_000_000, id="a giant decimal for a giant integer"),
        pytest.param(b"i%s;" % HUGE, b"q%s/%s;" % (HUGE, HUGE[:-1]), id="a giant ratio for a giant integer"),
        pytest.param(b"q%s/7;" % HUGE, b"q%s/%s;" % (HUGE[:-1], HUGE[:-2]), id="a giant ratio for a giant ratio"),
    ],
)
def test_giant_numbers_are_neither_converted_nor_reduced(reference, claim):
    assert not matches(reference, claim)


def test_a_giant_equal_ratio_beside_a_float_is_still_right():
    ratio = b"q%s/7;" % HUGE[:-1]
    assert matches(b"l2:" + ratio + encode(0.5), b"l2:" + ratio + encode(0.5 + 1e-9))


def test_colliding_integers_of_a_claimed_set_are_never_hashed():
    prime = 2**61 - 1
    reference = encode(set(range(20_000)))
    claim = b"S20000:" + b"".join(b"i%x;" % (number * prime) for number in range(20_000))
    assert not matches(reference, claim)


def test_far_out_decimals_of_a_claimed_set_are_not_written_out():
    reference = encode(set(range(50_000)))
    assert not matches(reference, b"S50000:" + b"D7:1E+4999" * 50_000)


def test_a_claimed_list_far_longer_than_the_reference_is_not_decoded():
    assert not matches(encode([1]), b"l1000000:" + b"N" * 1_000_000)


def test_counts_beyond_the_data_allocate_nothing():
    for claim in (b"l99999999999:", b"s99999999999:", b"d99999999999:", b"S99999999999:N"):
        assert not matches(encode([1]), claim)


@pytest.mark.parametrize("number", ["Decimal(3**32000)", "Fraction(3**32000,7**21000)", "7**21000%3**32000"])
def test_large_integers_are_not_computed_with_hundreds_of_times(number):
    text = f"assert f([{','.join([number] * 400)}]) == 1"
    assert len(text) < 16_000
    assert isinstance(parse_assert(text, INTERFACE), Rejection)


def test_a_long_text_is_read_once_for_all_candidates():
    from sandbox.cases import gate

    gate._read_long.cache_clear()
    kept = gate.Gate("def f(x): pass", (), assert_chars=16_384)
    for _ in range(8):
        kept.suite([f"assert f({'1 + ' * 100}1) == 101"])
    assert gate._read_long.cache_info().misses == 1


@pytest.mark.parametrize("made", ["set({})", "Counter(list({}))"])
def test_a_collection_of_a_range_whose_items_collide_is_no_argument(made):
    collection = made.format("range(0, (2 ** 61 - 1) * 99999, 2 ** 61 - 1)")
    assert isinstance(parse_assert(f"assert f({collection}) == 1", INTERFACE), Rejection)


@pytest.mark.parametrize(
    "argument",
    ["10 ** 10 ** 10", "2 ** 2 ** 2 ** 2 ** 2 ** 2", "[0] * 10 ** 9", "'a' * 10 ** 9", "[[0] * 10 ** 4] * 10 ** 4",
     "range(10 ** 9), list(range(10 ** 9))", "set(range(10 ** 12))", "1 << 10 ** 10", "'%1000000000d' % 1",
     "bytes(10 ** 9)", "int('9' * 10 ** 9)", "((1,) * 10 ** 5,) * 10 ** 5", "Fraction(Decimal('1E+999999999'))",
     "Fraction('1E+999999999')", "deque([0] * 10 ** 4, 10 ** 12) * 10 ** 9"],
)  # fmt: skip
def test_an_argument_that_would_be_giant_is_refused_unbuilt(argument):
    assert isinstance(parse_assert(f"assert f({argument}) == 1", INTERFACE), Rejection)


@pytest.mark.parametrize(
    "text",
    ["assert f(" + "(" * 8000, "assert f(" + "-" * 16000 + "1) == 1", "assert " + "f(" * 4000 + ")" * 4000,
     "assert f() == " + "[" * 190 + "]" * 190, "assert f" + "()" * 5000 + " == 1", "assert f()" + ".x" * 8000 + " == 1",
     "assert f() == " + "1+" * 8000 + "1", "assert f()" + "[0]" * 5000 + " == 1",
     "assert f(" + "lambda:" * 2000 + "0) == 1",
     "assert f() == " + "not " * 4000 + "1", "assert f({" + "1:{" * 4000, "assert " + "await " * 2700 + "f() == 1",
     "assert f('" + "\\N{" * 5000 + "') == 1", "assert f(" + "f'{" * 3000 + "1", "assert f(" + "*" * 16000 + "1) == 1"],
)  # fmt: skip
def test_a_text_made_to_break_the_parser_is_refused(text):
    assert isinstance(parse_assert(text, INTERFACE), Case | Rejection)
    if not text.startswith("assert f() == [["):
        assert isinstance(parse_assert(text, INTERFACE), Rejection)


def test_a_gigantic_assert_is_refused_unread():
    parsed = parse_assert("assert f(" + "1," * 10**6 + ") == 1", INTERFACE)
    assert isinstance(parsed, Rejection)
    assert "more than limits.assert_chars" in parsed.detail


def test_many_asserts_cost_in_proportion():
    suite = parse_suite((f"assert f({number}) == {number}" for number in range(5_000)), INTERFACE)
    assert (len(suite.cases), len(suite.rejections)) == (5_000, 0)


def test_a_response_of_twenty_thousand_asserts_is_cut_at_the_limit():
    suite = extract_suite("```python\n" + "assert 1\n" * 20_000 + "```", max_asserts=64)
    assert suite == ("assert 1",) * 64


def test_a_response_of_unfinished_asserts_is_read_in_bounded_time():
    text = "```python\n" + ("assert f([1,\n" + ("1," * 2000 + "\n") * 12) * 4 + "def :\n```"
    suite = extract_suite(text)
    assert not isinstance(suite, ExtractionFailure)
    assert len(suite) == 4


def test_a_response_that_opens_ten_thousand_fences_is_read_in_bounded_time():
    assert extract_candidate("```\n" * 10_001) == ExtractionFailure(reason="empty", detail="the last block is empty")
    assert isinstance(extract_suite("```python\n```\n" * 10_000), ExtractionFailure)


def test_a_response_beyond_the_limit_is_refused_unread():
    found = extract_candidate("def f(): pass\n" * 20_000)
    assert isinstance(found, ExtractionFailure)
    assert found.reason == "too_long"


UNLOADABLE = {
    "null bytes": "def secret(n): return -1\n\x00",
    "surrogates": "x = '\ud800'\ndef secret(n): return -1",
    "more than the limit": "#" * (1 << 20) + "\ndef secret(n): return -1",
    "brackets": "(" * 5000,
    "signs": "x = " + "-" * 50_000 + "1",
    "attributes": "x" + ".x" * 50_000,
    "blocks": "if 1:\n" * 200,
    "calls": "f" + "()" * 20_000,
}


@pytest.mark.parametrize("source", UNLOADABLE.values(), ids=UNLOADABLE)
def test_a_source_made_to_break_the_compiler_is_a_program_that_does_not_load(endings, source):
    assert endings(source) == {"not_loaded"}


def test_a_declared_encoding_changes_nothing(attack):
    assert attack("# -*- coding: utf-7 -*-\ndef secret(n): return -1") == [("wrong_value", "-1")] * 4


def test_deep_values_are_refused_on_both_sides(endings):
    source = "def secret(n):\n    deep = 1\n    for _ in range(201): deep = [deep]\n    return deep"
    assert endings(source) == {"unencodable"}
    assert not matches(b"l1:" * 150 + b"N", b"l1:" * 300 + b"N")


def test_values_just_below_the_limit_in_every_case_are_only_wrong(attack):
    results = attack("def secret(n): return 'x' * 1_040_000")
    assert results == [("wrong_value", "1040009 bytes")] * 4


def test_many_large_right_answers_cost_an_honest_program_nothing(judged):
    """Together they exceed what one process may answer; a fresh one goes on where it stopped."""
    suite = judged("def f(n): return 'x' * 900_000 + str(n)", *(f"assert f({n}) == 0" for n in range(9)))
    assert [case.outcome.value for case in suite.cases] == ["passed"] * 9


def test_a_wrong_value_full_of_markup_is_shown_as_one_short_line(attack):
    for outcome, detail in attack("def secret(n): return '\\x1b[2J\\n\\r\\u2028PASSED' * 5"):
        assert outcome == "wrong_value"
        assert detail.isprintable()


def test_classes_that_inherit_twice_from_the_one_before_are_each_read_once():
    classes = "".join(f"class C{number + 1}(C{number}, C{number}): pass\n" for number in range(60))
    assert "C60" in Interface.of("class C0: pass\n" + classes).entry_points


def test_a_chain_of_subscripts_is_not_searched_in_every_way_to_split_it():
    text = f"def f(): pass\nprint(a.b{'[0]' * 60})"
    assert without_examples(text, ["f"]).needs_no_examples


def test_the_search_for_clocks_and_chance_has_bounds():
    for pattern in (oracle._CLOCK, oracle._CHANCE):
        assert not any(map(pattern.search, ("import x " * 30_000, "perf_counte" * 30_000, "id" * 30_000)))


def test_a_block_too_large_to_parse_is_the_program_unread_and_its_asserts_are_still_found():
    large = "x = 1\n" * 11_000
    shown = f"```python\n{large}def f(): pass\n```\nUse it:\n```python\nf()\n```"
    assert extract_candidate(shown, names=("f",)) == f"{large}def f(): pass"
    assert extract_suite(f"```python\nassert f(1) == 1\n{large}```") == ("assert f(1) == 1",)


def test_a_suite_of_long_chains_of_calls_ends_no_judge(judged):
    source = "class S:\n    def p(self, a): return self\n    def get(self): return 1\n"
    for argument in ("1", "{1: 2}"):
        chains = [
            f"assert S(){f'.p({argument})' * length}{end}.get() == 1" for length in (300, 599) for end in ("", ".p(2)")
        ]
        suite = judged(source, *chains)
        assert len(suite.cases) + len(suite.rejections) == 4

"""Rows S01 to S39: which values are equal, and which have no canonical bytes."""

import importlib.util

import pytest

needs_numpy = pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="numpy is not installed")


def test_s01_bool_int_and_float_unify(compare):
    compare(same=[("[True, 0, 2.0]", "[1.0, False, 2]")], different=[("True", "2")])


def test_s02_a_complex_number_without_imaginary_part_is_a_real_one(compare):
    compare(same=[("2", "2 + 0j")], different=[("2", "2 + 1j")])


def test_s03_negative_zero_is_zero(compare):
    compare(same=[("0.0", "-0.0"), ("[0]", "[-0.0]")])


def test_s04_nan_equals_nan_at_any_depth_and_nothing_else(compare):
    compare(
        same=[("[nan, {'a': (nan,)}]", "[-nan, {'a': (nan,)}]")],
        different=[("nan", "0.0"), ("0.0", "nan"), ("[nan]", "[None]")],
    )


def test_s05_infinity_equals_infinity_of_its_sign_only(compare):
    compare(same=[("inf", "1e999")], different=[("inf", "-inf"), ("inf", "1.7976931348623157e308")])


def test_s06_a_float_of_the_reference_has_a_tolerance(compare):
    compare(
        same=[("0.3", "0.1 + 0.2"), ("0.0", "1e-6"), ("1e9", "1e9 + 100"), ("2.0", "Fraction(20000001, 10000000)")],
        different=[("0.0", "1.001e-6"), ("1e9", "1e9 + 101")],
    )


def test_s07_an_int_of_the_reference_is_exact(compare):
    compare(different=[("2", "1.9999999999"), ("10 ** 9", "10 ** 9 + 1")])


def test_s08_the_tolerance_holds_at_every_depth(compare):
    compare(
        same=[("{'mean': [0.3, 1], 'n': (2, 0.5)}", "{'n': (2, 0.5000001), 'mean': [0.1 + 0.2, 1]}")],
        different=[("{'mean': 0.5, 'n': 3}", "{'mean': 0.5, 'n': 3.0000001}")],
    )


def test_s09_cancellation_is_not_forgiven(ask):
    reference = "def mean(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total / len(xs)\n"
    candidate = "import math\ndef mean(xs):\n    return math.fsum(xs) / len(xs)\n"
    case = ask(reference, candidate, "assert mean([1e16, 1.0, -1e16]) == 0.3333333333333333").suites[0].cases[0]
    assert (case.reference_value, case.expected_correct, case.outcome.value) == ("0.0", False, "wrong_value")


def test_s10_the_parts_of_a_complex_number_have_the_tolerance(compare):
    compare(same=[("1.5 + 2j", "1.5000001 + 2.0000001j")], different=[("1.5 + 2j", "1.5 + 2.1j")])


def test_s11_fraction_and_decimal_are_numbers_by_value_and_exact(compare):
    compare(
        same=[
            ("Fraction(1, 2)", "0.5"),
            ("Decimal('0.50')", "Fraction(1, 2)"),
            ("3", "Decimal('3.0')"),
            ("Fraction(2 ** 40000, 3)", "Fraction(2 ** 40001, 6)"),
        ],
        different=[
            ("Decimal('0.1')", "0.1"),
            ("Fraction(1, 3)", "0.3333333333333333"),
            ("2 ** 40000", "Fraction(2 ** 40000)"),
        ],
    )


def test_s12_decimal_nan_and_infinity_are_nan_and_infinity(compare):
    compare(
        same=[("nan", "Decimal('sNaN')"), ("Decimal('NaN')", "nan"), ("inf", "Decimal('Infinity')")],
        different=[("nan", "Decimal('Infinity')")],
    )


def test_s13_integers_of_any_length_are_exact(compare):
    compare(same=[("2 ** 20000", "1 << 20000")], different=[("2 ** 20000", "2 ** 20000 + 1"), ("2.0", "2 ** 20000")])


def test_s14_text_is_compared_by_code_point(compare):
    compare(
        same=[("'\\u00e9'", "chr(233)"), ("'\\ud800'", "chr(0xD800)")],
        different=[("'\\u00e9'", "'e\\u0301'"), ("'1'", "1"), ("0.0", "'0.0'")],
    )


def test_s15_bytes_and_bytearray_are_one_kind_apart_from_text(compare, meet):
    compare(same=[("b'ab'", "bytearray(b'ab')")], different=[("b'ab'", "'ab'")])
    assert meet("b'ab'", "memoryview(b'ab')") == "unencodable"


def test_s16_none_equals_none_only(compare):
    compare(same=[("None", "None")], different=[("None", "0"), ("False", "None"), ("0.5", "None")])


def test_s17_lists_and_tuples_are_two_kinds_compared_in_order(compare):
    compare(
        same=[("[1, (2, [3])]", "[1, (2, [3])]")],
        different=[("[1, 2]", "(1, 2)"), ("[1, 2]", "[2, 1]"), ("[1, 2]", "[1, 2, 3]")],
    )


def test_s18_a_namedtuple_is_a_tuple(compare):
    given = "P = namedtuple('P', 'x y')"
    compare(same=[("P(1, 2)", "(1, 2)"), ("(1, 2)", "P(1, 2)")], different=[("P(1, 2)", "[1, 2]")], given=given)


def test_s19_sets_frozensets_and_dict_keys_are_one_kind_without_order(compare, meet):
    compare(
        same=[("{1, 2}", "frozenset([2, 1.0])"), ("{1, 2}", "{2: 0, 1: 0}.keys()")], different=[("{1, 2}", "[1, 2]")]
    )
    assert meet("{(1, 2)}", "{1: 2}.items()") == "unencodable"
    assert meet("[1]", "{1: 1}.values()") == "unencodable"


def test_s20_items_of_sets_are_paired_within_the_tolerance(compare):
    compare(
        same=[
            ("{0.3, 2.5}", "{2.5, 0.1 + 0.2}"),
            ("{0.3, 2.5}", "{Decimal('0.30000001'), 2.5}"),
            ("{(0.3, 'b'), ('a', 1 / 3)}", "{('a', 0.3333333333333), (0.1 + 0.2, 'b')}"),
            ("{0.4999999, 0.5000001}", "{0.5000002, 0.4999998}"),
        ],
        different=[
            ("{0.3, 2.5}", "{0.3, 2.6}"),
            ("{(0.3, 'b'), ('a', 0.4)}", "{(0.3, 'a'), ('b', 0.4)}"),
            ("{(0.3,)}", "{(0.1 + 0.3,)}"),
            ("{1}", "{1.0000000001}"),
        ],
    )


def test_s21_dicts_have_no_order_exact_keys_and_tolerant_values(compare):
    compare(
        same=[("{1: 'a', 'b': 0.3}", "{'b': 0.1 + 0.2, True: 'a'}")],
        different=[("{0.3: 1}", "{0.1 + 0.2: 1}"), ("{'a': 1}", "{'a': 1, 'b': 2}")],
    )


def test_s22_counter_defaultdict_and_ordereddict_are_dicts(compare):
    compare(
        same=[
            ("Counter('aab')", "{'a': 2, 'b': 1}"),
            ("{1: [2]}", "defaultdict(list, {1: [2]})"),
            ("OrderedDict(a=1, b=2)", "OrderedDict(b=2, a=1)"),
        ],
        different=[("Counter(a=1)", "Counter(a=1, b=0)")],
    )


def test_s23_a_deque_equals_a_deque_of_the_same_items(compare):
    compare(same=[("deque([1, 2])", "deque([1, 2], maxlen=2)")], different=[("deque([1, 2])", "[1, 2]")])


def test_s24_a_range_equals_a_range_through_the_same_numbers(compare):
    compare(
        same=[("range(0, 5, 2)", "range(0, 6, 2)"), ("range(0)", "range(3, 3)")], different=[("range(3)", "[0, 1, 2]")]
    )


def test_s25_iterators_are_unencodable_and_may_be_read(ask, meet):
    for expression in ("(i for i in (1, 2))", "map(int, '12')", "iter([1, 2])", "zip('a', 'b')"):
        assert meet("[1, 2]", expression) == "unencodable"
    generator = "def f(n):\n    yield from range(n)\n"
    suite = ask(
        generator, "def f(n):\n    return range(n)\n", "assert list(f(2)) == [0, 1]", "assert f(3) == [0, 1, 2]"
    )
    assert [case.outcome.value for case in suite.suites[0].cases] == ["passed"]


def test_s26_an_enum_with_a_builtin_base_is_its_value(compare, meet):
    given = "import enum\nI = enum.IntEnum('I', 'A B')\nS = enum.StrEnum('S', 'x')\nE = enum.Enum('E', 'A')\n"
    compare(same=[("2", "I.B"), ("'x'", "S.x")], given=given)
    assert meet("1", "E.A", given=given) == "unencodable"


def test_s27_a_dataclass_instance_is_unencodable(ask, meet):
    given = "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n"
    assert meet("1", "P(1)", given=given) == "unencodable"
    assert ask(given, given, "assert P(1).x == 1").suites[0].num_expected_correct == 1


@needs_numpy
def test_s28_numpy_scalars_are_python_numbers(compare):
    given = "import numpy"
    compare(
        same=[
            ("[3, 0.5, True]", "[numpy.int64(3), numpy.float32(0.5), numpy.bool_(True)]"),
            ("'a'", "numpy.str_('a')"),
        ],
        given=given,
    )


@needs_numpy
def test_s29_numpy_arrays_are_unencodable_and_may_be_read(ask, meet):
    program = "import numpy\ndef f(n):\n    return numpy.arange(n)\n"
    assert meet("[0, 1]", "numpy.arange(2)", given="import numpy") == "unencodable"
    verdict = ask(program, program, "assert list(f(2)) == [0, 1]", "assert f(3) == [0, 1, 2]")
    assert [case.outcome.value for case in verdict.suites[0].cases] == ["passed"]
    assert [one.reason.value for one in verdict.suites[0].rejections] == ["unencodable"]


def test_s30_a_package_that_is_not_installed_is_an_import_error_of_the_program(ask, outcomes):
    assert outcomes("def f():\n    return 1\n", "import no_such_package\n", "assert f() == 1") == ["not_loaded"]
    lazily = "def f():\n    import no_such_package\n"
    assert outcomes("def f():\n    return 1\n", lazily, "assert f() == 1") == ["raised"]


def test_s31_subclasses_of_builtins_count_as_their_base(compare):
    given = (
        "class I(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\n    __int__ = lambda s: 8\n"
        "class L(list):\n    __eq__ = lambda s, o: True\n"
        "    __iter__ = lambda s: iter([1])\n    __len__ = lambda s: 1\n"
    )
    compare(same=[("7", "I(7)")], different=[("8", "I(7)"), ("[1]", "L([2, 3])")], given=given)


def test_s32_values_nested_two_hundred_deep_are_compared_and_deeper_ones_are_unencodable(compare, meet):
    given = "def nest(n):\n    value = 0\n    for _ in range(n):\n        value = [value]\n    return value\n"
    compare(same=[("nest(200)", "nest(200)")], different=[("nest(200)", "nest(199)")], given=given)
    assert meet("nest(200)", "nest(201)", given=given) == "unencodable"


def test_s33_a_cyclic_value_is_unencodable(meet):
    assert meet("[]", "cycle()", given="def cycle():\n    a = []\n    a.append(a)\n    return a\n") == "unencodable"


def test_s34_every_other_object_is_unencodable_wherever_it_stands(meet):
    for expression in ("object()", "[len]", "{1: int}", "ValueError()", "...", "(None, NotImplemented)"):
        assert meet("1", expression) == "unencodable"
    assert meet("object()", "1") == "unencodable"

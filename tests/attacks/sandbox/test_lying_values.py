"""Values that lie about what they are: subclasses, metaclasses, hooks, broken invariants. One attack a test."""

WRONG, UNENCODABLE = "wrong_value", "unencodable"
LIES = """
right = {n: (n * 7919 + 104729) % 1000003 for n in range(9)}
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
"""


def test_a_text_that_lies_about_itself_is_the_text_it_holds(comes_to):
    assert comes_to("""
        class Lie(str):
            __eq__ = lambda self, other: True
            __hash__ = str.__hash__
            encode = __str__ = __repr__ = lambda self, *a: "112648"
            __len__ = lambda self: 6
        def secret(n):
            return Lie("no")
    """) == {(WRONG, "'no'")}


def test_a_float_that_lies_about_itself_is_the_float_it_holds(comes_to):
    assert comes_to("""
        class Lie(float):
            __eq__ = lambda self, other: True
            __hash__ = float.__hash__
            __float__ = is_integer = as_integer_ratio = hex = lambda self: 112648.0
        def secret(n):
            return Lie(-1.5)
    """) == {(WRONG, "-1.5")}


def test_a_list_that_lies_about_its_items_is_the_list_it_holds(judged):
    suite = judged(
        "def f(n): return [n, n + 1]",
        "assert f(1) == [1, 2]",
        candidate="""
        class Lie(list):
            __iter__ = lambda self: iter([1, 2])
            __len__ = lambda self: 2
            __getitem__ = lambda self, index: [1, 2][index]
            __eq__ = lambda self, other: True
        def f(n): return Lie([0])
        """,
    )
    assert (suite.cases[0].outcome.value, suite.cases[0].detail) == (WRONG, "[0]")


def test_a_dict_that_lies_about_its_items_is_the_dict_it_holds(judged):
    suite = judged(
        "def f(n): return {n: n}",
        "assert f(1) == {1: 1}",
        candidate="""
        class Lie(dict):
            items = keys = values = __iter__ = lambda self: iter([(1, 1)])
            __len__ = lambda self: 1
            __eq__ = lambda self, other: True
            __missing__ = lambda self, key: key
        def f(n): return Lie({0: 0})
        """,
    )
    assert (suite.cases[0].outcome.value, suite.cases[0].detail) == (WRONG, "{0: 0}")


def test_a_set_that_lies_about_its_items_is_the_set_it_holds(judged):
    suite = judged(
        "def f(n): return {n}",
        "assert f(1) == {1}",
        candidate="""
        class Lie(set):
            __iter__ = lambda self: iter([1])
            __contains__ = __eq__ = lambda self, other: True
            __hash__ = lambda self: 0
        def f(n): return Lie({0})
        """,
    )
    assert (suite.cases[0].outcome.value, suite.cases[0].detail) == (WRONG, "{0}")


def test_always_equal_items_inside_a_plain_list_are_unencodable(endings):
    assert endings(LIES + "def secret(n): return [Any()]") == {UNENCODABLE}


def test_always_equal_keys_inside_a_plain_dict_are_unencodable(endings):
    assert endings(LIES + "def secret(n): return {Any(): 1}") == {UNENCODABLE}


def test_a_metaclass_that_claims_every_base_gives_no_value(endings):
    assert endings("""
        class Meta(type):
            __instancecheck__ = __subclasscheck__ = __eq__ = lambda cls, other: True
            __hash__ = lambda cls: hash(int)
            mro = lambda cls: [cls, object]
        class Lie(metaclass=Meta):
            __int__ = __index__ = __hash__ = lambda self: 112648
        def secret(n):
            return Lie()
    """) <= {UNENCODABLE, "raised"}


def test_a_forged_method_resolution_order_gives_no_value(endings):
    assert "passed" not in endings("""
        class Meta(type):
            __mro__ = property(lambda cls: (cls, int, object))
            __module__ = "numpy"
            __qualname__ = "generic"
        class Lie(metaclass=Meta):
            item = lambda self: 112648
        def secret(n):
            return Lie()
    """)


def test_a_false_numpy_scalar_is_only_the_value_it_gives(comes_to):
    """``item()`` is the program's own code, in the program's own process: it could have returned that value."""
    assert comes_to("""
        class generic:
            item = lambda self: -1
        generic.__module__, generic.__qualname__ = "numpy", "generic"
        def secret(n):
            return generic()
    """) == {(WRONG, "-1")}


def test_a_false_numpy_scalar_that_returns_itself_is_unencodable(endings):
    assert endings("""
        class generic:
            item = lambda self: self
        generic.__module__, generic.__qualname__ = "numpy", "generic"
        def secret(n):
            return generic()
    """) == {UNENCODABLE}


def test_false_numpy_scalars_without_end_cost_their_own_cases(endings):
    assert endings("""
        def layer():
            kind = type("generic", (), {"item": lambda self: layer()})
            kind.__module__, kind.__qualname__ = "numpy", "generic"
            return kind()
        def secret(n):
            return layer()
    """) <= {"raised", UNENCODABLE, "died", "timed_out"}


def test_attribute_lookups_that_lie_give_no_value(endings):
    assert endings("""
        class Lie:
            def __getattribute__(self, name):
                return int if name == "__class__" else (lambda *a: 112648)
            def __getattr__(self, name):
                return lambda *a: 112648
        def secret(n):
            return Lie()
    """) == {UNENCODABLE}


def test_a_fraction_of_two_negative_parts_is_never_right(endings):
    assert endings("""
        from fractions import Fraction
        def secret(n):
            lie = Fraction(1, 2)
            lie._numerator, lie._denominator = -112648, -1
            return lie
    """) == {WRONG}


def test_a_fraction_of_no_integers_is_never_right(endings):
    assert endings("""
        from fractions import Fraction
        def secret(n):
            lie = Fraction(1, 2)
            lie._numerator, lie._denominator = "1", 0
            return lie
    """) <= {"raised", WRONG}


def test_a_list_that_grows_while_it_is_encoded_is_malformed_at_most(endings):
    assert "passed" not in endings("""
        class Grow:
            pass
        def secret(n):
            items = []
            class generic:
                def item(self):
                    items.extend([0] * 3)
                    return 0
            generic.__module__, generic.__qualname__ = "numpy", "generic"
            items.append(generic())
            return items
    """)


def test_an_enum_with_a_lying_value_is_the_base_it_holds(comes_to):
    assert comes_to("""
        import enum
        class E(enum.IntEnum):
            A = -1
            _value_ = 112648
            value = property(lambda self: 112648)
        def secret(n):
            return E.A if hasattr(E, "A") else -1
    """) <= {(WRONG, "-1"), ("not_loaded", "")}


def test_not_a_number_equals_only_not_a_number(attack):
    assert attack("def secret(n): return float('nan')") == [(WRONG, "float('nan')")] * 4


def test_an_infinite_tolerance_is_not_to_be_had(judged):
    for lie in ("float('inf')", "1e308", "float('nan')", "complex('inf')", "10 ** 400"):
        suite = judged("def f(): return 0.5", "assert f() == 0.5", candidate=f"def f(): return {lie}")
        assert suite.cases[0].outcome.value == WRONG


def test_a_signalling_not_a_number_is_wrong_not_an_error_of_the_judge(endings):
    assert endings("from decimal import Decimal\ndef secret(n): return Decimal('sNaN')") == {WRONG}


def test_an_unhashable_item_in_a_set_that_was_made_hashable_is_unencodable(endings):
    assert endings("""
        class Item(list):
            __hash__ = lambda self: 0
        def secret(n):
            return {Item([1])}
    """) == {WRONG}


def test_a_generator_is_unencodable_even_if_it_yields_the_answers(endings):
    assert endings(LIES + "def secret(n): yield right[n]") == {UNENCODABLE}


def test_a_function_that_lies_about_being_called_is_unencodable(endings):
    assert endings(LIES + "def secret(n): return lambda: right[n]") == {UNENCODABLE}


def test_a_module_in_place_of_a_number_is_unencodable(endings):
    assert endings("import math\ndef secret(n): return math") == {UNENCODABLE}


def test_the_name_of_the_value_is_not_the_value(endings):
    assert endings(LIES + "def secret(n): return str(right[n])") == {WRONG}


def test_a_value_in_a_list_of_one_is_not_the_value(endings):
    assert endings(LIES + "def secret(n): return [right[n]]") == {WRONG}

import ast

import pytest

from code_a1_recipe.tools.test_quality.mutants import OPERATORS, bytecode_key, family_of, mutants_of

ADDS_ONE = "def f(a):\n    return a + 1\n"

LONG = """\
def f(values, limit: int = 10):
    '''Sum of the values below the limit.'''
    total = 0
    for value in values:
        if value < limit and value != 3:
            total += value * 2
        elif value == 7:
            break
    return -total
"""


def sources(source, **options):
    return [mutant.source for mutant in mutants_of(source, **options)]


def returned(source):
    """What each mutant of ``def f(...): return X`` returns, as text."""
    return {text.split("return ")[1].strip() for text in sources(source)}


def test_every_operator_of_cosmic_ray_is_either_used_or_left_out_for_a_reason():
    from cosmic_ray.plugins import operator_names

    left_out = {"VariableInserter", "VariableReplacer"}
    assert {family_of(name) for name in operator_names()} - left_out == OPERATORS


def test_one_addition_has_eleven_other_operators_and_two_other_numbers():
    operators = ["-", "*", "/", "//", "%", "**", ">>", "<<", "|", "&", "^"]
    assert returned(ADDS_ONE) == {f"a {operator} 1" for operator in operators} | {"a + 2", "a + 0"}


def test_a_mutant_says_what_was_changed_and_where():
    minus = next(one for one in mutants_of(ADDS_ONE) if one.operator == "ReplaceBinaryOperator_Add_Sub")
    assert (family_of(minus.operator), minus.line) == ("ReplaceBinaryOperator", 2)
    assert minus.source == "def f(a):\n    return a - 1\n"


def test_mutants_with_the_meaning_of_the_original_or_of_another_are_dropped():
    # 2 + 2 is folded: * and ** give 4 again; %, >> and ^ give 0 as - does, & gives 2 as | does, and each sum of
    # 3 + 2 and 1 + 2 comes twice.
    found = mutants_of("def f():\n    return 2 + 2\n")
    assert [one.operator.rpartition("Add_")[2] for one in found if "Binary" in one.operator] == [
        "Sub", "Div", "FloorDiv", "LShift", "BitOr"
    ]  # fmt: skip
    assert len(found) == 7


def test_what_does_not_compile_is_dropped():
    texts = sources("def f(a, **kw):\n    return g(a, *kw)\n\ndef g(*a): return {**a[0]}\n")
    assert [compile(text, "mutant", "exec") is None for text in texts] == [False] * len(texts)


def test_only_bodies_are_changed():
    source = (
        "LIMIT = 3 + 4\n"
        "@decorate(1)\n"
        "def f(a: int | None = 5) -> int | None:\n"
        "    '''1 + 1 and True'''\n"
        "    b: int | None = None\n"
        "    return b\n"
        "class C:\n"
        "    x = 1\n"
        "    def g(self, a=2):\n"
        "        return a is None\n"
    )
    changed = {(one.line, one.operator) for one in mutants_of(source)}
    assert changed == {(10, "ReplaceComparisonOperator_Is_IsNot")}


def test_inner_functions_their_decorators_and_lambdas_belong_to_bodies():
    source = "def f(xs):\n    @cached\n    def g(x, by=1):\n        return x\n    return g(xs)\nh = lambda x: -x\n"
    assert {(one.line, family_of(one.operator)) for one in mutants_of(source)} == {
        (2, "RemoveDecorator"),
        (3, "NumberReplacer"),
        (6, "ReplaceUnaryOperator"),
    }


def test_columns_are_characters_although_the_parser_counts_bytes():
    texts = sources('g = ("äöü" * 2, lambda a: a and 1)\n')
    assert {text.partition("lambda a: ")[2] for text in texts} == {"a or 1)\n", "a and 2)\n", "a and 0)\n"}
    assert all('"äöü" * 2' in text for text in texts)


def test_all_mutants_compile_and_differ_from_each_other_and_from_the_original():
    texts = sources(LONG)
    trees = {ast.dump(ast.parse(text)) for text in [LONG, *texts]}
    # By line: 0 becomes 1 and -1; an empty loop; a negated condition, 7 and 5 comparisons, 2 numbers, an `or`;
    # 11 operators and 2 numbers; 5 comparisons and 2 numbers; a continue; three other signs and none.
    assert len(trees) == len(texts) + 1 == 1 + (2 + 1 + 16 + 13 + 7 + 1 + 4)
    assert all("limit: int = 10" in text and "'''Sum of the values below the limit.'''" in text for text in texts)
    assert [one.line for one in mutants_of(LONG)] == sorted(one.line for one in mutants_of(LONG))


def test_carriage_returns_and_handlers_with_dotted_names_do_no_harm():
    crlf = LONG.replace("\n", "\r\n")
    assert [text.replace("\r\n", "\n") for text in sources(crlf)] == sources(LONG)
    assert sources(
        "def f():\n    try:\n        return 1\n    except os.error:\n        pass\n    except:\n        pass\n"
    )


def test_bytecode_ignores_lines_but_not_the_types_of_constants():
    assert bytecode_key("def f():\n    return 1") == bytecode_key("\n\n# text\ndef f(): return 1")
    keys = {bytecode_key(f"def f(): return {value}") for value in ("1", "1.0", "True", "0.0", "-0.0", "(1,)", "(1.0,)")}
    assert len(keys) == 7


def test_a_sample_is_the_same_for_the_same_seed_and_spread_over_the_lines():
    found = mutants_of(LONG)
    sample = mutants_of(LONG, max_mutants=8)
    assert sample == mutants_of(LONG, max_mutants=8) != mutants_of(LONG, max_mutants=8, seed=1)
    places = [found.index(one) for one in sample]
    assert len(found) == 44
    assert all(low <= place < low + 6 for low, place in zip((0, 5, 11, 16, 22, 27, 33, 38), places, strict=True))
    assert mutants_of(LONG, max_mutants=len(found)) == found


def test_what_is_no_program_is_refused():
    with pytest.raises(ValueError, match="does not compile"):
        mutants_of("def f(:")
    assert mutants_of("x\n") == []


def test_a_program_without_functions_is_taken_whole():
    script = "a, b = map(int, input().split())\nprint(a + b)\n"
    assert any(one.source.endswith("print(a - b)\n") for one in mutants_of(script))
    with_function = "def f(a):\n    return a + 1\nprint(f(int(input())) + 2)\n"
    assert {one.line for one in mutants_of(with_function)} == {2}

"""What prompts and references are compared by."""

import json

import pytest

from code_a1_recipe.data.formats import ADAPTERS
from code_a1_recipe.tools.prepare.texts import (
    assert_key,
    content_words,
    reference_form,
    statement_words,
    words_of,
)


def test_words_are_lower_case_and_addresses_are_none():
    words = words_of("Find the 2nd Prime, see https://example.org/primes?x=1 (fast)!")
    assert " ".join(words) == "find the 2nd prime see fast"


def test_of_a_humaneval_prompt_the_docstring_is_left_without_its_examples():
    prompt = (
        "from typing import List\n\n\ndef f(xs: List[int]) -> int:\n"
        '    """ Sum the list.\n    >>> f([1, 2])\n    3\n    An empty one gives 0.\n    """\n'
    )
    assert " ".join(statement_words(prompt)) == "sum the list an empty one gives 0"


def test_of_an_mbpp_plus_prompt_the_assert_does_not_count():
    prompt = 'import math\n\ndef f(r):\n"""\nFind the volume.\nassert f(1) == 4\n"""'
    assert statement_words(prompt) == ["find", "the", "volume"]


def test_of_fenced_code_comments_and_docstrings_count():
    code = 'x = 1\n# twice\ndef f(x):\n    """Double\n    any\n    number."""\n    return 2 * x'
    prompt = f"Complete:\n```python\n{code}\n```\nFast."
    assert " ".join(statement_words(prompt)) == "complete twice double any number fast"


@pytest.mark.parametrize(
    ("adapter", "row"),
    [
        (
            "mbpp",
            {"task_id": 1, "text": "Add one.", "code": "def f(a):\n    return a", "test_list": ["assert f(1) == 1"]},
        ),
        (
            "kodcode",
            {
                "question_id": "k",
                "question": "Add one.",
                "solution": "def f(a): return a",
                "test": "",
                "test_info": [{"function_name": "f", "function_declaration": "def f(a):"}],
            },
        ),
        (
            "taco",
            {
                "question": "Add one.",
                "solutions": json.dumps(["def f(a):\n    return a"]),
                "starter_code": "def f(a):\n\t",
                "input_output": json.dumps({"fn_name": "f", "inputs": [[1]], "outputs": [2]}),
            },
        ),
    ],
)
def test_what_an_adapter_adds_to_a_statement_does_not_count(adapter, row):
    native = ADAPTERS[adapter].convert(row)
    assert native.prompt != "Add one."
    assert statement_words(native.prompt) == ["add", "one"]


def test_a_prompt_that_states_next_to_nothing_is_compared_as_a_whole():
    words = content_words("Complete it:\n```\ndef f(x): pass\n```\nName the function `f(x)`.")
    assert " ".join(words) == "complete it def f x pass"


def test_asserts_are_equal_up_to_blanks_and_quotes():
    assert assert_key("assert f('a',  1) == 2") == assert_key('assert f("a", 1)==2')
    assert assert_key("assert f(1) == 2") != assert_key("assert f(1) == 3")
    assert len(assert_key("assert f(1) == 2" * 1000)) == 16


SAME_PROGRAMS = (
    "def total(xs):\n    s = 0\n    for x in xs:\n        s += x\n    return s",
    "from typing import List\ndef f(numbers: List[int]) -> int:\n    '''Sum.'''\n    import os\n    r: int = 0  # no\n"
    "    for n in numbers:\n        r += n\n    return r",
)


def test_references_are_the_same_up_to_names_docstrings_annotations_and_imports():
    one, other = map(reference_form, SAME_PROGRAMS)
    assert one == other == "def v0(v1):\n    v2 = 0\n    for v3 in v1:\n        v2 += v3\n    return v2"


@pytest.mark.parametrize(
    ("old", "new"),
    [("s = 0", "s = 1"), ("+=", "-="), ("+= x", "+= xs"), ("in xs", "in sorted(xs)")],
    ids=["another constant", "another operator", "another of its names", "a builtin"],
)
def test_a_reference_that_does_something_else_has_another_form(old, new):
    source = SAME_PROGRAMS[0].replace(old, new)
    assert reference_form(source) != reference_form(SAME_PROGRAMS[0])


@pytest.mark.parametrize(
    ("source", "form"),
    [
        (
            "import re\ndef f(key):\n    return sorted(re.findall('a', key), key=len, reverse=True)",
            "def v0(v1):\n    return sorted(re.findall('a', v1), key=len, reverse=True)",
        ),
        (
            "class A:\n    n: int\n    async def g(self, *a, k=1, **kw):\n        try:\n"
            "            return [i for i in a]\n        except ValueError as e:\n            raise e\n",
            "class v0:\n\n    async def v1(v2, *v3, v4=1, **v5):\n        try:\n            return [v6 for v6 in v3]\n"
            "        except ValueError as v7:\n            raise v7",
        ),
        ("def f():\n    '''Nothing.'''", "def v0():\n    pass"),
        ("def f(:", ""),
        ("f(" + "(" * 500, ""),
        ("x = '\0'", ""),
    ],
    ids=["attributes, keywords, builtins", "all kinds of names", "docstring alone", "syntax", "too deep", "null byte"],
)
def test_own_names_are_numbered_and_a_text_that_is_no_program_has_no_form(source, form):
    assert reference_form(source) == form

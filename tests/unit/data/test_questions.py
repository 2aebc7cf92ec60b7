import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.data.asserts import LOOSE
from code_a1_recipe.data.reader import load_questions
from code_a1_recipe.errors import InputError
from code_a1_recipe.files import json_lines


def row(**changes):
    """A complete native row; None takes a column away."""
    fields = {"id": "q1", "prompt": "Add one with f(x).", "reference": "def f(x):\n    return x + 1\n"}
    return {name: value for name, value in (fields | changes).items() if value is not None}


@pytest.fixture
def write(tmp_path):
    """Write rows as JSON lines and return the path."""

    def to_file(*rows, name="data.jsonl"):
        path = tmp_path / name
        path.write_text(json_lines(rows))
        return path

    return to_file


@pytest.fixture
def load(write):
    """The question of a row with these columns."""

    def question_of(**columns):
        (question,) = load_questions(write(row(**columns)))
        return question

    return question_of


def test_a_minimal_row_becomes_a_question(load):
    assert load() == Question(id="q1", prompt="Add one with f(x).", reference="def f(x):\n    return x + 1\n")


def test_all_native_columns_are_read(load):
    columns = {
        "entry_points": ("f",),
        "prelude": "import math",
        "tests": ("assert f(1) == 2",),
        "golden_tests": ("assert f(1) == 1",),
        "buggy_programs": ("def f(x): return 0",),
        "data_source": "mine",
    }
    question = load(**columns)
    assert {name: getattr(question, name) for name in columns} == columns


ADD_TESTS = ["assert add(1, 2) == 3", "assert add(2, 2) == 4"]
LOOP = "for a, b, want in [(1, 2, 3), (2, 2, 4)]:\n    assert add(a, b) == want"


@pytest.mark.parametrize("tests", [ADD_TESTS, "\n".join(ADD_TESTS), json.dumps(ADD_TESTS), [LOOP], LOOP])
def test_tests_are_a_list_or_a_text_and_loops_are_read(load, tests):
    reference = "\n```python\ndef add(a, b):\n    return a + b\n```"
    question = load(reference=reference, tests=tests)
    assert [test.partition("  #")[0] for test in question.tests] == ADD_TESTS
    assert question.reference == "def add(a, b):\n    return a + b"


PART = {"type": "text", "text": "Write `add`."}
CHAT = [{"role": "system", "content": "You write code."}, {"role": "user", "content": "Write `add`."}]


@pytest.mark.parametrize(
    "prompt",
    [
        CHAT,
        json.dumps(CHAT, indent=1),
        [{"role": "user", "content": [PART]}],
        [{"role": "user", "content": ["Write `add`."]}],
        [{"from": "system", "value": "You write code."}, {"from": "human", "value": "Write `add`."}],
        "Write `add`.",
    ],
)
def test_a_prompt_is_a_text_or_the_users_messages(load, prompt):
    assert load(prompt=prompt).prompt == "Write `add`."
    assert load(prompt="[{x} is a list").prompt == "[{x} is a list"


@pytest.mark.parametrize(
    ("reference", "program"),
    [
        ("Here it is:\n```python\ndef f(x):\n    return x\n```\nDone.", "def f(x):\n    return x"),
        ('def f(x):\n    """Of ```x```."""\n    return x', 'def f(x):\n    """Of ```x```."""\n    return x'),
    ],
)
def test_a_reference_in_a_fence_loses_what_stands_around_it(load, reference, program):
    assert load(reference=reference).reference == program


def test_every_format_gives_the_same_questions(tmp_path, write):
    rows = [row(tests=["assert f(1) == 2"]), row(id="q2", tests=[])]
    expected = load_questions(write(*rows))
    (tmp_path / "a.json").write_text(json.dumps(rows, indent=2))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(write(*rows).read_bytes()))
    (tmp_path / "c.jsonl").write_text(json.dumps(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    for name in ("a.json", "b.jsonl.gz", "c.jsonl", "d.parquet"):
        assert load_questions(tmp_path / name) == expected, name


def test_columns_may_have_other_names_and_be_nested(write):
    path = write({"uid": 7, "text": "p", "reward_model": {"ground_truth": "print(1)"}, "in": ["1"], "out": ["2"]})
    columns = {
        "id": "uid",
        "prompt": "text",
        "reference": "reward_model.ground_truth",
        "inputs": "in",
        "outputs": "out",
    }
    (question,) = load_questions(path, columns=columns)
    assert (question.id, question.prompt, question.reference) == ("7", "p", "print(1)")
    assert question.tests == ("assert run('1') == '2'",)


HELPER = "def helper(x): return x\ndef f(x): return helper(x)"


@pytest.mark.parametrize(
    ("columns", "entry_points"),
    [
        ({"prelude": "def g(): pass", "entry_points": ["g"]}, ("g",)),
        ({"reference": "f = lambda x: x", "entry_points": ["f"]}, ("f",)),
        ({"reference": "class A:\n    def __init__(self): self.b = 1", "entry_points": ["A", "A.b"]}, ("A", "A.b")),
        ({"reference": HELPER, "tests": ["assert f(1) == 1"]}, ("f",)),
        ({"reference": HELPER}, ()),
    ],
)
def test_entry_points_are_given_or_are_what_the_rows_own_tests_call(load, columns, entry_points):
    assert load(**columns).entry_points == entry_points


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ""}, "'id': .*not empty"),
        ({"id": 1.5}, "'id': .*got 1.5"),
        ({"prompt": "  "}, "'prompt': .*must not be empty"),
        ({"tests": 5}, "'tests': .*must be a list of strings, got int"),
        ({"prompt": [{"role": "user"}]}, "'prompt': .*must not be empty"),
        ({"prompt": ["f"]}, "'prompt': .*must not be empty"),
        ({"reference": ""}, "'reference': .*must not be empty; put a correct solution into it"),
        ({"reference": "def f(:"}, "'reference': .*does not parse"),
        ({"reference": "x = 1"}, "'reference': .*must define a function or a class"),
        ({"prelude": "import"}, "'prelude': .*does not parse"),
        ({"entry_points": "f"}, "'entry_points': .*must be a list of strings, got str"),
        ({"entry_points": ["g"]}, r"'entry_points': .*names that the reference defines \(\['f'\]\), got \['g'\]"),
        ({"tests": "assert f(1 == 2"}, "'tests': .*must be Python 3, but does not parse"),
        ({"tests": ["assert f(1) == 2", 3]}, "'tests': .*must hold strings only, got int: '3'"),
        ({"golden_tests": "assert f(1) == 1"}, "'golden_tests': .*must be a list of strings"),
        ({"inputs": ["1"], "outputs": []}, "'outputs': .* give a list of texts, one for each"),
        ({"id": "q0"}, "'id': .*must be unique, but row 0 has the id 'q0' too"),
    ],
)
def test_a_bad_row_is_named_by_file_index_and_column(write, changes, message):
    path = write(row(id="q0"), row(**changes))
    with pytest.raises(InputError, match=rf"data\.jsonl: row 1, column {message}"):
        load_questions(path)


@pytest.mark.parametrize(
    ("given", "options", "error", "words"),
    [
        (
            row(),
            {"columns": {"problem": "text"}},
            ValueError,
            r"unknown native columns \['problem'\]; known: id, prompt",
        ),
        (
            row(),
            {"adapter": "mbpb"},
            ValueError,
            r"unknown dataset adapter 'mbpb'; known: codecontests, evalplus, huma",
        ),
        (row(), {"adapter": "mbpp"}, InputError, r"'mbpp' adapter needs the columns \['code', 'task_id'"),
        (
            {"a": 1, "b": 2},
            {},
            InputError,
            r"columns: \['a', 'b'\]\. The nearest is 'native'.*The columns of each adapter: native: .*mbpp: ",
        ),
        (
            {"task_id": 1, "text": "t", "test_list": [], "solution": "x"},
            {},
            InputError,
            r"The nearest is 'mbpp', which also needs \['code'\]\. Map your columns",
        ),
    ],
)
def test_columns_that_cannot_be_read_are_named(write, given, options, error, words):
    with pytest.raises(error, match=words):
        load_questions(write(given), **options)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data.csv", b"a,b", r"must end in \.parquet, \.jsonl or \.json"),
        ("data.jsonl", b"", "no rows"),
        ("data.jsonl", b'{"id": 1}\n{"id"', "line 2 is not JSON"),
        ("data.json", b"[1, 2", "is not JSON"),
        ("data.json", b"[1]", "row 0 must be a JSON object, got int"),
        ("data.jsonl", b"\xff\xfe", "cannot be read"),
        ("data.jsonl.gz", b"plain", "cannot be read"),
        ("data.parquet", b"plain", "cannot be read"),
        ("data.jsonl", None, r"data\.jsonl: cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        load_questions(tmp_path / name)


def test_a_native_file_is_read_as_it_is_beside_one_with_other_columns(write):
    mine, native = write(row(prompt=None, problem="Add."), name="mine.jsonl"), write(row(prompt="Sub."))
    columns = {"prompt": "problem"}
    assert [load_questions(path, columns=columns)[0].prompt for path in (mine, native)] == ["Add.", "Sub."]


PAIRS = {"fn_name": "add", "inputs": [[1, 2]], "outputs": [[3]]}
"""verl's ``prime_code`` columns; each answer is in a list of its own."""


def test_rows_without_a_reference_are_judged_by_their_listed_outputs(write):
    given = {"prompt": "Write `add`.", "oracle": "listed"}
    rows = [
        {"id": "asserts", "tests": ["assert add(1, 2) == 3", "assert add(*pair) == 3"], **given},
        {"id": "calls", **PAIRS, **given},
        {"id": "lines", "inputs": ["1\n"], "outputs": [["1", "0.5"]], **given},
    ]
    asserts, calls, lines = load_questions(write(*rows))
    assert load_questions(write(row(), *rows))[1:] == [asserts, calls, lines], "beside a row with a reference"
    assert asserts.tests == calls.tests == ("assert add(1, 2) == 3",), "the second assert cannot be looked up"
    assert asserts.reference == calls.reference
    assert calls.prompt_fields["entry_points"] == "`add`", "nothing is known of its parameters"
    assert (lines.kind, lines.checker, lines.tests) == ("stdin", "decimals", ("assert run('1\\n') == '1\\n0.5'",))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"oracle": "list"}, "'oracle': .*must be 'listed', got 'list'"),
        ({"oracle": "listed"}, r"'tests': .*tests of the form f\(literals\) == literal"),
        ({"oracle": "listed", "tests": ["assert add(x) == 3"]}, "'tests': .*tests of the form"),
        ({"oracle": "listed", "inputs": ["1"], "outputs": []}, "'tests': .*must be lists of the same length"),
        ({"oracle": "listed", **PAIRS, "inputs": [1]}, "'tests': .*must be lists of arguments, got 1"),
        ({"oracle": "listed", **PAIRS, "fn_name": "1x"}, "'tests': .*must be the name of a function, got '1x'"),
    ],
)
def test_a_row_without_outputs_to_look_up_is_refused(write, columns, message):
    with pytest.raises(InputError, match=f"row 0, column {message}"):
        load_questions(write({"id": 0, "prompt": "Write `add`.", **columns}))


IN_PLACE = "def turn(xs):\n    xs.reverse()\n"


@pytest.mark.parametrize(
    ("solution", "test", "kind", "tests"),
    [
        (
            IN_PLACE,
            "xs = [1, 2]\n    turn(xs)\n    assert xs == [2, 1]",
            "in_place",
            [f"assert turn([1, 2]) == [2, 1]{LOOSE}"],
        ),
        (IN_PLACE, "xs = [1, 2]\n    turn(xs)\n    turn(xs)\n    assert xs == [1, 2]", "functions", []),
        (IN_PLACE, "xs = [1]\n    turn(xs)\n    xs = [2]\n    assert xs == [2]", "functions", []),
        (
            "def turn(xs):\n    return xs[::-1]\n",
            "xs = [1, 2]\n    turn(xs)\n    assert xs == [1, 2]\n    assert turn([1]) == [1]",
            "functions",
            ["assert turn([1]) == [1]"],
        ),
    ],
)
def test_kodcode_an_argument_that_is_looked_at_after_the_call(write, solution, test, kind, tests):
    columns = {"question_id": "k", "question": "Turn it.", "solution": solution, "test": f"def test_it():\n    {test}"}
    (question,) = load_questions(write(columns))
    assert (question.kind, list(question.tests)) == (kind, tests)


def test_verls_files_are_read_as_they_are(write):
    def row_of(truth, **columns):
        return {"data_source": "mine", "prompt": CHAT, "reward_model": {"ground_truth": truth}} | columns

    def place(index):
        return {"split": "train", "index": index}

    own = {"reference": "def add(a, b):\n    return a + b", "tests": ["assert add(1, 2) == 3"]}
    first, second = load_questions(
        write(row_of(json.dumps(PAIRS), extra_info=place(0)), row_of(own, extra_info=place(1)))
    )
    assert (first.id, first.prompt, first.entry_points) == ("mine/train/0", "Write `add`.", ("add",))
    assert (second.id, second.reference, second.tests) == ("mine/train/1", own["reference"], first.tests)
    rows = [row_of(PAIRS, prompt=prompt) for prompt in ("Write `add`.", "Write `add` again.")]
    assert len({question.id for question in load_questions(write(*rows))}) == 2, "nothing numbers them"
    for bad in (row_of("42"), row_of("The answer"), row_of(None), row_of(None, reward_model="add", extra_info="{}")):
        with pytest.raises(InputError, match=r"must have a mapping as ground_truth|'ground_truth': must be JSON"):
            load_questions(write(bad))

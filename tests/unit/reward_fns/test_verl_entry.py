import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from omegaconf import OmegaConf

from reward_fns import verl_entry
from reward_fns.listed import with_function, with_listed_outputs
from reward_fns.verl_entry import compute_score, read_ground_truth
from sandbox import JudgeRequest, LocalRunner, SandboxUnavailableError

REFERENCE = "def add(a, b):\n    return a + b\n"
GOOD = f"```python\n{REFERENCE}```"
TRUTH = {"reference": REFERENCE, "tests": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]}


class FakeJudge:
    """Answers with a prepared verdict and remembers what it was asked."""

    def __init__(self, verdict):
        self.verdict = verdict
        self.requests = []

    def judge(self, request, options):
        self.requests.append(request)
        self.options = options
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


@pytest.fixture
def judge_with(monkeypatch):
    """Put a fake in the place of the process-wide judge."""

    def install(verdict):
        fake = FakeJudge(verdict)
        monkeypatch.setattr(verl_entry, "_SHARED", fake)
        return fake

    return install


def test_code_is_judged_on_the_fixed_tests_and_scored_by_its_pass_rate(judge_with, make_suite, make_verdict):
    fake = judge_with(make_verdict(make_suite(4, num_failed=1)))
    score = compute_score("mine", GOOD, TRUTH, {"index": 3})
    assert [score[name] for name in ("score", "extracted", "num_valid", "pass_new")] == [0.75, 1.0, 4.0, 0.75]
    assert {type(value) for value in score.values()} == {float}
    (request,) = fake.requests
    assert request.candidate == REFERENCE.rstrip("\n")
    assert request.suites == (("assert add(1, 2) == 3", "assert add(0, 0) == 0"),)
    assert request.history == ()


def test_a_response_without_program_is_judged_as_no_candidate(judge_with, make_suite, make_verdict):
    fake = judge_with(make_verdict(make_suite(1, num_failed=1), loaded=False))
    assert compute_score("mine", "I do not know.", TRUTH)["extracted"] == 0.0
    assert fake.requests[0].candidate is None


def test_tests_are_judged_against_the_candidate_and_scored_as_a_suite(judge_with, make_suite, make_verdict):
    fake = judge_with(make_verdict(make_suite(2, num_failed=1)))
    truth = {"reference": REFERENCE, "candidate": "def add(a, b): return a"}
    score = compute_score(
        "mine", "assert add(1, 2) == 3\nassert add(1, 0) == 1", truth, {"role": "test"}, num_cases=4, alpha=0.25
    )
    assert score["score"] == 0.3125  # 0.25 * 2/4 + 0.75 * 1/4
    compute_score("mine", "none", truth, {"role": "test"})
    assert [one.suites for one in fake.requests] == [(("assert add(1, 2) == 3", "assert add(1, 0) == 1"),), ((),)]
    assert fake.requests[0].candidate == "def add(a, b): return a"


def test_an_outage_raises_and_is_no_reward(judge_with):
    judge_with(SandboxUnavailableError("no answer"))
    with pytest.raises(SandboxUnavailableError):
        compute_score("mine", GOOD, TRUTH)


def test_tests_of_which_none_is_a_case_are_reported(judge_with, make_suite, make_verdict, caplog):
    # vLLM raises the level of the root logger when it is imported, here by another test.
    caplog.set_level("WARNING", logger="reward_fns")
    judge_with(make_verdict(make_suite(0, num_rejected=5)))
    truth = TRUTH | {"prelude": "# a question that no other test has"}
    assert [compute_score("mine", GOOD, truth)["score"] for _ in range(2)] == [0.0, 0.0]
    assert "5 of its 2 tests are no valid cases and are left out, so every response scores 0" in caplog.text
    assert caplog.text.count("unparsable, ") == 3, "one warning a question"


IN_LINES = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7"]}
IN_CALLS = {"fn_name": "add", "inputs": [[1, 2], [3, 4]], "outputs": [[3], [7]]}
"""Ground truths of verl's ``prime_code``."""
SUM = "print(sum(map(int, input().split())))"
ADD = "def add(a, b): return a + b"
ADDING = """class Solution:
    def __init__(self):
        self.total = 0
    def add(self, a, b):
        self.total += a + b
        return self.total"""
"""Right for an object that is made for each call."""


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(TRUTH),
        TRUTH | {"tests": tuple(TRUTH["tests"])},
        TRUTH | {"tests": np.array(TRUTH["tests"], dtype=object), "entry_points": np.array(["add"])},
        TRUTH | {"tests": np.array(TRUTH["tests"]), "prelude": None},
    ],
    ids=["json", "tuple", "object array", "string array"],
)
def test_ground_truth_comes_in_several_shapes(raw):
    truth = read_ground_truth(raw, role="code", where="row 0")
    (tests,) = truth.suites
    assert tests == ("assert add(1, 2) == 3", "assert add(0, 0) == 0")
    assert {type(text) for text in tests} == {str}


def test_the_same_oracle_has_one_id_and_another_has_another():
    one = read_ground_truth(TRUTH, role="code", where="row 0")
    same = read_ground_truth(TRUTH | {"tests": ["assert add(5, 5) == 10"]}, role="code", where="row 1")
    other = read_ground_truth(TRUTH | {"prelude": "import math"}, role="code", where="row 2")
    assert one.question_id == same.question_id != other.question_id


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("{not json", "must be a mapping or JSON text"),
        ("[1]", "must be a mapping or the JSON text of one, got list"),
        (3, "got int"),
        ({"tests": ["assert add(1, 2) == 3"]}, "needs 'reference'.* for code, 'inputs' and 'outputs'"),
        ({"inputs": "12", "outputs": ["1", "2"]}, "'inputs' and 'outputs' must be lists of the same length"),
        ({"inputs": ["1"], "outputs": ["1", "2"]}, "'inputs' and 'outputs' must be lists of the same length"),
        (IN_CALLS | {"inputs": ["x", "y"], "outputs": ["3", "7"]}, "of fn_name='add' must be JSON: Expecting value"),
        (IN_CALLS | {"inputs": [1, "x"]}, "'inputs' of fn_name='add' must be lists of arguments, got 1"),
        (IN_CALLS | {"fn_name": "a.b"}, "'fn_name' must be the name of a function, got 'a.b'"),
        (json.dumps("text"), "must be a mapping or JSON text, got 'text'"),
        ({"reference": "def add(:", "tests": ["x"]}, "'reference' is not Python 3"),
        ({"reference": 3, "tests": ["x"]}, "'reference' must be a text, got '3'"),
        ({"reference": REFERENCE}, "needs 'tests'"),
        ({"reference": REFERENCE, "tests": "assert add(1, 2) == 3"}, "'tests' must be a list of texts"),
        ({"reference": REFERENCE, "tests": [1]}, "'tests' must be a list of texts"),
        (TRUTH | {"kind": "shell"}, "'kind' must be one of"),
        (TRUTH | {"kind": "stdin", "checker": "near"}, "unknown checker 'near'"),
        (TRUTH | {"test": []}, r"unknown keys \['test'\]; known: \['candidate'"),
    ],
)
def test_bad_ground_truth_is_refused_with_its_place(raw, words):
    role = json.loads('"code"')  # as from a file, another object than the constant of the module
    with pytest.raises(ValueError, match=words):
        compute_score("mine", GOOD, raw, {"role": role})


def fenced(program):
    return f"```python\n{program}\n```"


@pytest.mark.parametrize(
    ("truth", "program", "score"),
    [
        (IN_LINES, SUM, 1.0),
        (IN_LINES, "a, b = map(int, input().split())\nprint(a * b + 1)", 0.5),
        (IN_LINES | {"outputs": ["3.0", "7.0000"]}, SUM, 1.0),
        (IN_LINES | {"outputs": [["3"], ["7", ""]]}, SUM, 1.0),
        (IN_CALLS, ADD, 1.0),
        (IN_CALLS, "class Solution:\n    def add(self, a, b): return a + b", 1.0),
        (IN_CALLS, "class Solution:\n    def add(self, a, b): return a * b + 1", 0.5),
        (IN_CALLS, "class Solution:\n    def sum(self, a, b): return a + b", 0.0),
        (IN_CALLS, "# no class Solution is needed\ndef add(a, b): return a + b", 1.0),
        (IN_CALLS, "class Solution:\n    def sum(self, a, b): return a + b\nadd = Solution().sum", 1.0),
        (IN_CALLS, f"{ADDING}\n```\nUse it:\n```python\nprint(Solution().add(1, 2))", 1.0),
        (IN_CALLS | {"inputs": ["1\n2", "3\n4"], "outputs": ["3", "7"]}, ADD, 1.0),
        (IN_CALLS, "def add(a: Optional[int], b: int): return a + b", 1.0),
        (IN_CALLS | {"prelude": "ZERO = 0"}, "def add(a, b): return a + b + ZERO", 1.0),
        (IN_LINES | {"inputs": ["1 2\r\n", "3 4\r\n"]}, SUM, 1.0),
        (IN_CALLS | {"outputs": [[3], [7, 7]]}, ADD, 0.0),
        (IN_CALLS | {"outputs": [[], [7]]}, ADD, 0.0),
        (IN_CALLS | {"reference": ADD}, ADDING, 0.0),  # a reference asks for a function
        (IN_CALLS | {"reference": "def add(a, b): return a * b"}, "def add(a, b): return a * b", 1.0),
    ],
)
def test_listed_outputs_take_the_place_of_a_reference(truth, program, score):
    assert compute_score("eurus", fenced(program), json.dumps(truth))["score"] == score


BASE = ADDING.replace("Solution", "Base")
IN_PLACE = {"fn_name": "turn", "kind": "in_place", "inputs": [[[1, 2], 0], [[3], 0]], "outputs": [[2, 1], [3]]}


def in_calls(inputs, outputs, **columns):
    return {"fn_name": "f", "inputs": inputs, "outputs": outputs, **columns}


ONE_OR_TWO = [[1], [2]]


@pytest.mark.parametrize(
    ("truth", "program", "score"),
    [
        # Where the function comes from.
        (IN_CALLS, f"{BASE}\nclass Solution(Base): pass", 1.0),
        (IN_CALLS, "if True:\n  class Solution:\n    def add(self, a, b): return a + b", 1.0),
        (IN_CALLS, f"{ADDING}\nif __name__ == '__main__':\n    add = Solution().add(1, 2)", 1.0),
        (IN_CALLS, f"{ADDING}\nprint(Solution().add(1))", 1.0),
        (IN_CALLS, f"{ADD}\n{ADDING.replace('a + b', '0')}", 1.0),
        (IN_CALLS, "total = 0", 0.0),  # `add` of operator does not count
        (IN_CALLS | {"fn_name": "sum", "inputs": [[[1, 2]], [[7]]]}, "total = 0", 0.0),
        # What JSON loses.
        (in_calls(ONE_OR_TWO, [[[1, 2], 1], [[2, 2], 2]]), "def f(x): return ((x, 2), x)", 1.0),
        (in_calls(ONE_OR_TWO, [{"1": [1]}, {"2": [2]}]), "def f(x): return {x: (x,)}", 1.0),
        (in_calls(ONE_OR_TWO, [{"a": {"1": 0}}, {"a": {"-1": 0}}]), "def f(x): return {'a': {3 - 2 * x: 0}}", 1.0),
        (in_calls(ONE_OR_TWO, [{"0.5": 0, "true": 1}] * 2), "def f(x): return {0.5: 0, True: 1}", 1.0),
        (in_calls(ONE_OR_TWO, [[2, 1], [1, 1]], checker="any_order"), "def f(x): return 1, 3 - x", 1.0),
        (in_calls(ONE_OR_TWO, [[2, 1], [1, 1]]), "def f(x): return {2, 1} if x == 1 else [1, 1]", 0.5),
        (in_calls(ONE_OR_TWO, [{"1": 1}, {"2": 2}]), "def f(x): return {x: str(x)}", 0.0),
        (
            in_calls([[{"1": 2, "-3": 1}], [{"a": 1}]], [-1, 1]),
            "def f(d): return sum(k * d[k] if d else 0 for k in d)",
            0.5,
        ),
        (in_calls(ONE_OR_TWO, [[1], [2]]), "def f(x): return [x]", 1.0),
        (in_calls(ONE_OR_TWO, [[1], [2]]), "def f(x): return x", 1.0),
        (in_calls(ONE_OR_TWO, [[1], [2]]), "def f(x): return [[x]]", 0.0),
        (in_calls(ONE_OR_TWO, [[1], [2, 2]]), "def f(x): return x", 0.0),  # prime_code: the first item is enough
        (in_calls(ONE_OR_TWO, [[1, 1]] * 2, reference="def f(x): return [1, 1]"), "def f(x): return 1, 1", 0.0),
        (in_calls([[float("inf")], [0]], [float("inf"), 0]), "def f(x): return x", 1.0),
        (in_calls(["1\n2\n", "3\n4"], ["3", "7"], fn_name="add"), ADD, 1.0),
        # What prime_code runs before a program.
        (in_calls([["b"], ["a"]], [2, 1]), "def f(x): return bisect_left(ascii_lowercase, x) + int(pow(1, 2, 5))", 1.0),
        (in_calls([[9000], [1]], [9000, 1]), "def f(x): return x and add(f(x - 1), 1)", 1.0),
        (IN_LINES | {"fn_name": ""}, "print(sum(map(int, findall(r'\\d', input()))) * floor(mean([1])))", 1.0),
        (IN_LINES, "for line in stdin:\n    stdout.write(str(sum(map(int, line.split()))))", 1.0),
        # Changed arguments.
        (IN_PLACE, "class Solution:\n    def turn(self, xs, n): xs.reverse()", 1.0),
        (IN_PLACE, "def turn(xs, n): pass", 0.5),
        (IN_PLACE | {"outputs": [[[2, 1]], [[3]]]}, "def turn(xs, n): xs.reverse()", 1.0),
        (
            IN_PLACE | {"inputs": [[{}], [{"3": 4}]], "outputs": [{"1": 2}, {"1": 2, "3": 4}]},
            "def turn(d): d[1] = 2",
            1.0,
        ),
        # Long inputs.
        (IN_LINES | {"inputs": ["1 2", "1 " * 500_000]}, "print(min(3, len(input())))", 0.5),
    ],
)
def test_listed_outputs_are_read_as_prime_code_reads_them(truth, program, score):
    assert compute_score("eurus", fenced(program), truth)["score"] == score


@pytest.mark.parametrize("program", [ADD, "print(1)"])
def test_only_a_class_solution_gets_functions(program):
    assert with_function(program, ["add"]) == program


def test_many_pairs_are_listed_by_the_kind_of_their_question():
    numbers = [str(number) for number in range(300)]
    listed = with_listed_outputs({"inputs": numbers, "outputs": numbers})
    again = with_listed_outputs({"kind": json.loads('"stdin"'), "tests": listed["tests"]})
    assert len(listed["tests"]) == 300
    assert again["reference"] == listed["reference"]


def test_listed_tests_may_use_infinities_and_nan_but_no_other_name():
    tests = ["assert f(inf, nan) == 1", "assert f(x) == 1", "assert f(2) == inf"]
    assert with_listed_outputs({"kind": "functions", "tests": tests})["tests"] == [tests[0], tests[2]]


def test_listed_outputs_judge_no_suite():
    truth = IN_CALLS | {"candidate": "def add(a, b): return a"}
    with pytest.raises(ValueError, match=r"needs 'reference', the source of a correct solution; it is the oracle$"):
        compute_score("eurus", "assert add(1, 2) == 3", truth, json.loads('{"role": "test"}'))


def test_arguments_of_other_types_are_refused():
    with pytest.raises(ValueError, match=r"solution_str must be the decoded response, got None \(mine\)"):
        compute_score("mine", None, TRUTH)
    with pytest.raises(ValueError, match=r"extra_info must be a mapping, got list \(mine\)"):
        compute_score("mine", GOOD, TRUTH, ["code"])


def test_an_unknown_role_is_refused():
    with pytest.raises(ValueError, match=r"must be 'code' or 'test', got 'tests'"):
        compute_score("mine", GOOD, TRUTH, {"role": "tests"})


def test_a_misspelled_reward_argument_is_refused():
    with pytest.raises(TypeError, match="alhpa"):
        compute_score("mine", GOOD, TRUTH, alhpa=0.3)


def test_what_verl_passes_to_every_reward_function_is_accepted(judge_with, make_suite, make_verdict):
    judge_with(make_verdict(make_suite(1)))
    score = compute_score(
        data_source="mine",
        solution_str=GOOD,
        ground_truth=TRUTH,
        extra_info={"num_turns": None, "rollout_reward_scores": {}},
        reward_router_address="http://localhost",
        reward_model_tokenizer=None,
    )
    assert score["score"] == 1.0


def test_many_threads_and_questions_share_one_judge():
    """verl calls from a thread pool, in any order of questions."""

    def score(number):
        reference = f"def add(a, b):\n    return a + b + {number % 5}\n"
        truth = {"reference": reference, "tests": [f"assert add(1, {number}) == {1 + number + number % 5}"]}
        wrong = reference.replace("a + b", "a - b")
        return [compute_score("mine", f"```python\n{text}```", truth)["score"] for text in (reference, wrong)]

    with ThreadPoolExecutor(16) as threads:
        scores = list(threads.map(score, range(1, 33)))
    assert scores == [[1.0, 0.0]] * 32
    assert isinstance(verl_entry._SHARED._runner, LocalRunner)


@pytest.fixture
def fresh_judge(monkeypatch):
    """A process-wide judge that nobody has used yet."""
    fresh = verl_entry._SharedJudge()
    monkeypatch.setattr(verl_entry, "_SHARED", fresh)
    yield fresh
    fresh.close()


def test_sandbox_settings_reach_the_runner_in_hydras_containers_too(fresh_judge):
    plain = {"num_workers": 1, "limits": {"total_seconds": 7.5}, "preload": ["fractions"]}
    assert compute_score("mine", GOOD, TRUTH, sandbox=OmegaConf.create(plain))["score"] == 1.0
    assert (fresh_judge._runner.num_workers, fresh_judge._runner.limits.total_seconds) == (1, 7.5)
    assert fresh_judge._options == plain
    assert [type(value) for value in fresh_judge._options.values()] == [int, dict, list]
    with pytest.raises(ValueError, match="differs from the arguments with which this process's judge"):
        compute_score("mine", GOOD, TRUTH, sandbox={"num_workers": 2})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_worker": 1}, r"unknown keys under sandbox: \['num_worker'\]; known: \["),
        ({"limits": {"total": 1}}, r"unknown keys under sandbox.limits: \['total'\]"),
        ({"num_workers": 0}, "num_workers must be an integer of at least 1"),
    ],
)
def test_bad_sandbox_settings_are_refused(fresh_judge, settings, words):
    with pytest.raises(ValueError, match=words):
        compute_score("mine", GOOD, TRUTH, sandbox=settings)


@pytest.mark.parametrize(("num_cores", "num_workers"), [(None, 1), (1, 1), (64, verl_entry.MAX_WORKERS)])
def test_there_are_as_many_workers_as_cores_up_to_a_limit(monkeypatch, num_cores, num_workers):
    monkeypatch.setattr(os, "cpu_count", lambda: num_cores)
    runner = verl_entry._make_runner({})
    assert runner.num_workers == num_workers
    runner.close()


class Recorder:
    """Stands in for a judge or its runner: remembers what was forgotten and closed."""

    def __init__(self, runner=None):
        self.runner = runner
        self.forgotten = []
        self.times_closed = 0

    def judge(self, request):
        return request.question_id

    def forget(self, question_id):
        self.forgotten.append(question_id)

    def close(self):
        self.times_closed += 1


@pytest.fixture
def recorded(monkeypatch):
    """A shared judge with stand-ins, which caches two questions."""
    monkeypatch.setattr(verl_entry, "MAX_CACHED_QUESTIONS", 2)
    monkeypatch.setattr(verl_entry, "Judge", Recorder)
    monkeypatch.setattr(verl_entry, "_make_runner", lambda options: Recorder())
    return verl_entry._SharedJudge()


def request(question_id):
    return JudgeRequest(question_id=question_id, reference=REFERENCE, candidate=None, suites=())


def test_the_question_that_was_not_met_for_longest_is_forgotten(recorded):
    assert [recorded.judge(request(name), {}) for name in "abacd"] == list("abacd")
    assert recorded._judge.forgotten == ["b", "a"]


def test_a_closed_judges_runner_is_closed_once_and_the_next_response_gets_a_new_judge(recorded):
    recorded.close()
    recorded.judge(request("a"), {})
    judge, runner = recorded._judge, recorded._runner
    recorded.close()
    recorded.close()
    assert runner.times_closed == 1
    for name in "abc":
        recorded.judge(request(name), {"num_workers": 3})
    assert recorded._judge is not judge
    assert recorded._judge.forgotten == ["a"]


def test_roles_are_compared_by_value_and_long_values_are_cut(judge_with, make_suite, make_verdict):
    judge_with(make_verdict(make_suite(1)))
    role = "".join(["co", "de"])
    assert compute_score("mine", GOOD, TRUTH, {"role": role})["extracted"] == 1.0
    with pytest.raises(ValueError, match="needs 'tests'"):
        compute_score("mine", GOOD, {"reference": REFERENCE}, {"role": role})
    with pytest.raises(ValueError, match="data source 'mine' needs 'candidate'"):
        compute_score("mine", GOOD, TRUTH, {"role": "".join(["te", "st"])})
    with pytest.raises(ValueError, match=f"got '{'x' * 80}': "):
        compute_score("mine", GOOD, "x" * 100)
    with pytest.raises(ValueError, match=f"got '{'x' * 80}' .str.$"):
        compute_score("mine", GOOD, TRUTH | {"tests": "x" * 100})


def test_a_forked_process_gets_a_judge_of_its_own(fresh_judge):
    assert compute_score("mine", GOOD, TRUTH, sandbox={"num_workers": 1})["score"] == 1.0
    mine = fresh_judge._runner.fork_server_pids()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        score = compute_score("mine", GOOD, TRUTH, sandbox={"num_workers": 1})["score"]
        shared = set(mine) & set(verl_entry._SHARED._runner.fork_server_pids())
        os.write(writer, f"{score} {len(shared)}".encode())
        verl_entry._SHARED.close()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == "1.0 0"
    os.waitpid(child, 0)
    assert compute_score("mine", GOOD, TRUTH, sandbox={"num_workers": 1})["score"] == 1.0


def test_kind_and_checker_reach_the_judge(judge_with, make_suite, make_verdict):
    fake = judge_with(make_verdict(make_suite(1)))
    truth = TRUTH | {"kind": "stdin", "checker": "exact"}
    assert compute_score("mine", "print(1)", truth)["extracted"] == 1.0  # a bare program that defines nothing
    assert compute_score("mine", "print(1)", TRUTH)["extracted"] == 0.0
    assert [(one.kind, one.checker) for one in fake.requests] == [("stdin", "exact"), ("functions", "decimals")]

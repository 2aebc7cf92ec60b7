"""R_T with branches covered and mutants killed: values on verdicts of the real judge, outages, hanging mutants."""

from dataclasses import replace

import pytest

from code_a1_recipe.algorithm.rewards import RewardChoice, RewardSettings
from reward_fns import JudgedCandidate, QuestionVerdicts, find_test_reward, load_module, reward_suites
from sandbox import Judge, JudgeRequest, Kind, LocalRunner, SandboxUnavailableError

REFERENCE = """def f(n):
    if n > 5:
        return n + 2
    return 0
"""
SUITES = (
    ("assert f(9) == 11",),  # one of two branches
    ("assert f(9) == 0", "assert f(1) == 0"),  # both, and an expected value that is wrong
    ("assert g(1) == 1",),  # no valid case
)
K = 2


@pytest.fixture(scope="module")
def path(repository):
    return str(repository / "examples" / "reward_parts" / "coverage_and_mutants.py")


@pytest.fixture(scope="module")
def module(path):
    found = load_module(path)
    yield found
    found._SHARED.close()


@pytest.fixture(autouse=True)
def forgetful(module):
    """Nothing that another test asked is known."""
    module._SHARED._known.clear()


@pytest.fixture(scope="module")
def judged():
    """``judged(programs, suites)``: a question, judged by the real judge."""
    with LocalRunner() as runner:
        judge = Judge(runner)

        def build(programs=(REFERENCE,), suites=SUITES, *, reference=REFERENCE, **fields):
            request = JudgeRequest(question_id="q", reference=reference, candidate=None, suites=(), **fields)
            verdicts = [judge.judge(replace(request, candidate=source, suites=suites)) for source in programs]
            candidates = [
                JudgedCandidate(source=source, verdict=verdict, suite_texts=("text",) * len(suites))
                for source, verdict in zip(programs, verdicts, strict=True)
            ]
            return QuestionVerdicts(question_id="q", num_cases=K, candidates=tuple(candidates), reference=request)

        yield build


@pytest.fixture(scope="module")
def rewards_of(path):
    def rewarded(question, **kwargs):
        patient = {"seconds": 600.0} | kwargs  # other work may keep the machine busy
        function = find_test_reward("coverage_and_mutants", path=path, kwargs=patient, defaults={"alpha": 0.5})
        return reward_suites(function, question)

    return rewarded


def terms(row, name):
    return [None if one is None else pytest.approx(one.terms[name]) for one in row]


@pytest.fixture
def three_mutants(module, monkeypatch):
    """The mutants of REFERENCE: only the first suite's call tells the first; two calls the second; none the third."""
    texts = [("n + 2", "n + 3"), ("return 0", "return 0 if n > 5 else 1"), ("n > 5", "n > 4")]
    sources = [REFERENCE.replace(old, new) for old, new in texts]
    made = [type("Mutant", (), {"source": source}) for source in sources]
    monkeypatch.setattr(module, "mutants_of", lambda source, **options: made)
    return made


def test_the_parts_of_each_suite(rewards_of, judged, three_mutants):
    ((first, second, empty),) = rewards_of(judged(), coverage=0.2, mutants=0.3)
    row = (first, second, empty)
    assert terms(row, "coverage") == [0.5, 1.0, 0.0]
    assert terms(row, "mutants_killed") == [1 / 3, 2 / 3, 0.0]
    assert terms(row, "mutants") == [0.5 / 3, 1.5 / 3, 0.0]  # the first mutant's credit is divided between two suites
    paper = find_test_reward("valid_and_adversarial")(judged())[0]
    for one, base in zip(row, paper, strict=True):
        expected = 0.5 * base.total + 0.2 * one.terms["coverage"] + 0.3 * one.terms["mutants"]
        assert one.total == pytest.approx(expected, abs=1e-6)
        assert set(one.parts) == {"validity", "adversarial", "coverage", "mutants"}


def test_a_program_that_does_not_load_earns_nothing_by_the_reference(rewards_of, judged):
    (broken, whole) = rewards_of(judged(["def f(:", REFERENCE]), mutants=0.1)
    assert [one.total for one in broken] == [0.0, 0.0, 0.0]
    assert whole[0].total > 0


def test_only_the_first_cases_count(rewards_of, judged):
    late = (("assert f(9) == 11", "assert f(8) == 10", "assert f(1) == 0"),)
    assert terms(rewards_of(judged(suites=late), mutants=0)[0], "coverage") == [0.5]


def test_a_reference_without_branches_counts_statements(rewards_of, judged):
    question = judged(suites=(("assert f(1) == 1",), ("assert g(1) == 1",)), reference="def f(n):\n    return n\n")
    assert terms(rewards_of(question, mutants=0)[0], "coverage") == [1.0, 0.0]


def test_weights_of_zero_leave_the_papers_reward_and_run_nothing(rewards_of, judged, module, monkeypatch):
    question = replace(judged(), reference=None)
    monkeypatch.setattr(module._SHARED, "measure", None)
    paper = find_test_reward("valid_and_adversarial")(question)[0]
    assert [one.total for one in rewards_of(question, coverage=0, mutants=0)[0]] == [one.total for one in paper]


def test_a_mutant_that_hangs_is_not_counted(rewards_of, judged, three_mutants):
    hanging = REFERENCE.replace("return 0", "while True: pass")
    three_mutants.append(type("Mutant", (), {"source": hanging}))
    ((first, second, _),) = rewards_of(judged(), coverage=0)
    assert terms((first, second), "mutants_killed") == [1 / 3, 2 / 3]
    ((alone,),) = rewards_of(judged(suites=SUITES[:1]), coverage=0)  # the hanging one answers this call
    assert alone.terms["mutants_killed"] == pytest.approx(1 / 4)


@pytest.mark.parametrize("kwargs", [{"coverage": 0.3, "mutants": 0}, {"coverage": 0, "mutants": 0.3}])
def test_an_outage_is_no_reward(rewards_of, judged, module, monkeypatch, kwargs):
    def breaks(*parts, **options):
        raise SandboxUnavailableError("gone")

    question = judged(["def f(:", REFERENCE])
    with monkeypatch.context() as patched:
        patched.setattr(module, "measure_coverage", breaks)
        patched.setattr(module.Judge, "judge", breaks)
        broken, whole = rewards_of(question, **kwargs)
    assert whole == (None, None, None)
    assert [one.total for one in broken] == [0.0, 0.0, 0.0]
    assert None not in rewards_of(question, **kwargs)[1]


def test_mutants_serve_programs_that_read_standard_input_and_coverage_does_not(rewards_of, judged):
    program = "n = int(input())\nprint(n + 2)\n"
    question = judged([program], (('assert run("1\\n") == "3\\n"',),), reference=program, kind=Kind.STDIN)
    ((reward,),) = rewards_of(question, coverage=0)
    assert reward.terms["mutants_killed"] > 0.5
    with pytest.raises(ValueError, match=r"coverage must be 0 for programs that read input, got 0\.1"):
        rewards_of(question)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"coverage": -1}, r"coverage must be a weight in \[0, 1\], got -1"),
        ({"coverage": 0.6, "mutants": 0.5}, r"coverage \+ mutants must be at most 1, got 1.1"),
        ({"max_mutants": 0}, r"max_mutants must be an integer of at least 1, got 0"),
        ({"seconds": 0}, r"seconds must be a number above 0, got 0"),
        ({"sandbox": {"limits": {"total": 1}}}, r"unknown keys under sandbox.limits: \['total'\]"),
        ({"sandbox": {"workers": 1}}, r"sandbox must hold arguments of sandbox.LocalRunner, got \['workers'\]"),
    ],
)
def test_arguments_that_cannot_work_are_refused_before_training(path, kwargs, words):
    choice = RewardChoice(name="coverage_and_mutants", path=path, kwargs=kwargs)
    settings = RewardSettings(alpha=0.5, adversarial="release", nonprintable_penalty=False, test=choice)
    (problem,) = settings.problems()
    with pytest.raises(ValueError, match=f"^rewards.test: {words}"):
        raise ValueError(problem)

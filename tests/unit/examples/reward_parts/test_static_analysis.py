"""R_C less a penalty for what ruff finds: values, bounds, programs that try to hide, arguments that cannot work."""

import pytest

from code_a1_recipe.algorithm.rewards import RewardChoice, RewardSettings
from reward_fns import JudgedCandidate, QuestionVerdicts, find_code_reward, load_module, reward_code

UNUSED = "import os\n\n\ndef f(x):\n    y = 1\n    return x\n"
"""F401 and F841."""
CLEAN = "def f(x):\n    return x\n"


@pytest.fixture(scope="module")
def path(repository):
    return str(repository / "examples" / "reward_parts" / "static_analysis.py")


@pytest.fixture(scope="module")
def module(path):
    return load_module(path)


@pytest.fixture(scope="module")
def rewards_of(path, make_suite, make_verdict):
    """``rewards_of(sources, **kwargs)``: of programs that pass two of three cases; None stands for no program."""

    def rewarded(sources, **kwargs):
        verdicts = [
            make_verdict(make_suite(3, num_failed=1)) if source else make_verdict(loaded=False) for source in sources
        ]
        found = [JudgedCandidate(source=one, verdict=verdict) for one, verdict in zip(sources, verdicts, strict=True)]
        found.append(JudgedCandidate(source=UNUSED, verdict=None))  # an outage of the judge
        question = QuestionVerdicts(question_id="q", num_cases=3, candidates=tuple(found))
        *rewards, lost = reward_code(find_code_reward("static_analysis", path=path, kwargs=kwargs), question)
        assert lost is None
        return rewards

    return rewarded


def penalties(rewards):
    return [None if one is None else one.parts["static_analysis"] for one in rewards]


def test_each_finding_costs_and_all_together_at_most_the_maximum(rewards_of):
    many = "".join(f"import os as name{n}\n" for n in range(9)) + CLEAN
    rewards = rewards_of([UNUSED, CLEAN, many, UNUSED], per_finding=0.02, max_penalty=0.1)
    assert penalties(rewards) == [-0.04, 0.0, -0.1, -0.04]
    assert [one.terms["findings"] for one in rewards] == [2.0, 0.0, 9.0, 2.0]
    assert rewards[0].total == pytest.approx(2 / 3 - 0.04)


@pytest.mark.parametrize("source", [None, "def f(:\n", "import os\nx = \x00", "import os\ndef f(x):\n  return '\ud800"])
def test_a_program_that_does_not_parse_has_no_penalty(rewards_of, source):
    assert penalties(rewards_of([source])) == [0.0]


def test_a_program_can_neither_hide_findings_nor_bring_a_configuration(rewards_of):
    hidden = [f"# ruff: noqa\n# flake8: noqa\n{UNUSED}", UNUSED.replace("import os", "import os  # noqa: F401")]
    assert penalties(rewards_of(hidden, per_finding=0.01)) == [-0.02, -0.02]


def test_complexity_is_a_finding_for_each_function_above_the_limit(rewards_of):
    source = "def f(x):\n    if x:\n        return 1\n    return 2\n\n\ndef g(x):\n    return x\n"
    kwargs = {"rules": [], "per_finding": 0.05}
    assert penalties(rewards_of([source], max_complexity=1, **kwargs)) == [-0.05]
    assert penalties(rewards_of([source], max_complexity=2, **kwargs)) == [0.0]


def test_nesting_that_python_parses_does_not_end_ruff(rewards_of):
    deep = f"import os\n\n\ndef f(x):\n    return {'-' * 2500}x\n"
    assert penalties(rewards_of([deep, UNUSED], per_finding=0.01)) == [-0.01, -0.02]


def test_where_ruff_does_not_answer_there_is_no_reward_and_other_programs_lose_nothing(rewards_of, module, monkeypatch):
    run = module._run

    def breaks(arguments, *, stdin):
        done = run(arguments, stdin=stdin)
        return None if "F841" in done.stdout else done

    monkeypatch.setattr(module, "_run", breaks)
    rewards = rewards_of([UNUSED, "import os\n", CLEAN], per_finding=0.01)
    assert penalties(rewards) == [None, -0.01, 0.0]


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"rules": ["XXX1"]}, r"rules must be rules that ruff knows, got \['XXX1'\]: .*see `ruff rule --all`"),
        ({"rules": "F401"}, r"rules must be a list of ruff's rules, got 'F401'; such as \[F401, B006\]"),
        ({"rules": ["F401", "--fix"]}, r"rules must be a list of ruff's rules"),
        ({"rules": []}, r"rules must name at least one rule where max_complexity is not given"),
        ({"per_finding": -0.1}, r"per_finding must be a number in \[0, 1\], got -0.1"),
        ({"max_penalty": "x"}, r"max_penalty must be a number in \[0, 1\], got 'x'"),
        ({"max_complexity": 0}, r"max_complexity must be an integer of at least 1, got 0"),
    ],
)
def test_arguments_that_cannot_work_are_refused_before_training(path, kwargs, words):
    choice = RewardChoice(name="static_analysis", path=path, kwargs=kwargs)
    settings = RewardSettings(alpha=0.5, adversarial="release", nonprintable_penalty=False, code=choice)
    (problem,) = settings.problems()
    with pytest.raises(ValueError, match=f"^rewards.code: {words}"):
        raise ValueError(problem)


def test_a_ruff_that_is_not_installed_is_named_before_training(path, module, monkeypatch):
    monkeypatch.setattr(module, "_ruff", lambda: None)
    with pytest.raises(ValueError, match="needs the program ruff, which is not installed here: pip install ruff"):
        find_code_reward("static_analysis", path=path)

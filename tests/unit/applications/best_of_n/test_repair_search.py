"""The search of ``select --repair`` with the real sandbox: what is refined, and how often programs run."""

import asyncio

import pytest

from code_a1_recipe.algorithm.episode_types import PromptTooLongError, Response
from code_a1_recipe.algorithm.prompts import PROMPT_PAIRS
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.applications.best_of_n.repair import Pool, RepairSearch, run_search
from sandbox import LocalRunner

ABOUT = Question(id="double", prompt="Twice x.", reference="def f(x):\n    return 2 * x")
SAME = "def f(x):\n    return x"
LONG = "def f(x):\n    word = '" + "long " * 50 + "'\n    return x * x"
SUITES = [("assert f(3) == 6", "assert f(1) == 2")]


class CountingRunner:
    def __init__(self, runner):
        self.runner, self.limits, self.sources = runner, runner.limits, []

    def run(self, program, *, role):
        self.sources.append(program.source)
        return self.runner.run(program, role=role)


@pytest.fixture
def runner():
    with LocalRunner() as started:
        yield CountingRunner(started)


def searched(runner, programs, answers, *, num_turns):
    prompts = []

    class Model:
        async def sample(self, messages, *, seed, session):
            prompts.append("\n".join(message["content"] for message in messages))
            if "long long" in prompts[-1]:
                raise PromptTooLongError("no room")
            text = f"```python\n{answers[min(len(prompts), len(answers)) - 1]}\n```"
            return Response(prompt_ids=(), token_ids=(), log_probs=(), text=text, policy_version=0)

    pool = Pool(question=ABOUT, programs=programs, suites=SUITES, num_responses=len(programs))
    search = RepairSearch(pool=pool, seed=1)
    template = PROMPT_PAIRS["chat_v2"].repair
    asyncio.run(run_search(search, Model(), runner, template=template, num_turns=num_turns))
    return pool, prompts


def test_each_program_runs_once_and_a_right_one_ends_the_search(runner):
    wrong = [f"def f(x):\n    return x + {n}" for n in (5, 6, 7)]
    pool, prompts = searched(runner, [SAME], [*wrong, ABOUT.reference], num_turns=9)
    assert pool.programs == [SAME, *wrong, ABOUT.reference]
    assert runner.sources == pool.programs
    assert "f(3)" in prompts[0] or "f(1)" in prompts[0]
    assert "returns" in prompts[0]


def test_a_program_that_is_too_long_to_repair_leaves_its_turns_to_the_others(runner):
    pool, _ = searched(runner, [LONG, SAME], [SAME], num_turns=3)
    assert [before for before, _ in pool.repairs] == [SAME] * 3
    pool, prompts = searched(runner, [LONG], [SAME], num_turns=3)
    assert (pool.repairs, len(prompts)) == ([], 1)

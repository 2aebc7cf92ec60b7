"""Time that the reward parts take, on questions of the synthetic task suite.

    python -m studies.reward_parts_cost --questions 20

Prints milliseconds a candidate of static analysis (8 different programs a question, the best of its repeats), and
milliseconds a question of coverage and 20 mutants on 8 suites of a case: for new calls, and for calls that are known.
"""

import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from code_a1_recipe.micro_world.world import ENTRY_POINT, draw_questions
from reward_fns import JudgedCandidate, QuestionVerdicts, find_test_reward, load_module, reward_suites
from sandbox import Judge, JudgeRequest, LocalRunner
from studies.command_line import run_study, study_app

REWARDS = Path(__file__).parents[1] / "examples" / "reward_parts"
PROGRAMS, SUITES, REPEATS = 8, 8, 20
app = study_app()


@app.command()
def reward_parts_cost(num_questions: Annotated[int, typer.Option("--questions", min=1)] = 20) -> None:
    """Time static analysis, and coverage with mutants."""
    questions = draw_questions(seed=0, num_questions=num_questions)
    analysis = load_module(str(REWARDS / "static_analysis.py"))
    times = []
    for repeat in range(REPEATS):
        sources = [f"{question.reference}\n# {repeat}" for question in questions[:PROGRAMS]]
        started = time.perf_counter()
        analysis.count_findings(sources, rules=analysis.RULES, max_complexity=10)
        times.append((time.perf_counter() - started) / len(sources) * 1000)
    typer.echo(f"static analysis: {min(times):.1f} ms a candidate, median {statistics.median(times):.1f}")
    reward = find_test_reward("coverage_and_mutants", path=str(REWARDS / "coverage_and_mutants.py"))
    new, known = [], []
    with LocalRunner() as runner:
        judge = Judge(runner)
        for question in questions:
            request = JudgeRequest(question_id=question.id, reference=question.reference, candidate=None, suites=())
            suites = tuple((f"assert {ENTRY_POINT}({value!r}) == 0",) for value in question.hidden_inputs[:SUITES])
            verdict = judge.judge(replace(request, candidate=question.mutant, suites=suites))
            one = JudgedCandidate(source=question.mutant, verdict=verdict, suite_texts=("",) * len(suites))
            verdicts = QuestionVerdicts(question_id=question.id, num_cases=1, candidates=(one,), reference=request)
            for kept in (new, known):
                started = time.perf_counter()
                reward_suites(reward, verdicts)
                kept.append((time.perf_counter() - started) * 1000)
    for name, kept in (("new", new), ("known", known)):
        typer.echo(f"coverage and mutants, {name} calls: median {statistics.median(kept):.1f} ms a question")


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="reward_parts_cost"))

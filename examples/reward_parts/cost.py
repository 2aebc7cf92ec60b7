"""Time that the reward parts take, on questions of the synthetic task suite.

    python examples/reward_parts/cost.py --questions 20

Prints milliseconds a candidate of static analysis (8 different programs a question, the best of its repeats), and
milliseconds a question of coverage and 20 mutants on 8 suites of a case: for new calls, and for calls that are known.
"""

import argparse
import statistics
import time
from dataclasses import replace
from pathlib import Path

from code_a1_recipe.micro_world.world import ENTRY_POINT, draw_questions
from reward_fns import JudgedCandidate, QuestionVerdicts, find_test_reward, load_module, reward_suites
from sandbox import Judge, JudgeRequest, LocalRunner

HERE = Path(__file__).parent
PROGRAMS, SUITES, REPEATS = 8, 8, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=20)
    questions = draw_questions(seed=0, num_questions=parser.parse_args().questions)
    analysis = load_module(str(HERE / "static_analysis.py"))
    times = []
    for repeat in range(REPEATS):
        sources = [f"{question.reference}\n# {repeat}" for question in questions[:PROGRAMS]]
        started = time.perf_counter()
        analysis.count_findings(sources, rules=analysis.RULES, max_complexity=10)
        times.append((time.perf_counter() - started) / len(sources) * 1000)
    print(f"static analysis: {min(times):.1f} ms a candidate, median {statistics.median(times):.1f}")
    reward = find_test_reward("coverage_and_mutants", path=str(HERE / "coverage_and_mutants.py"))
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
        print(f"coverage and mutants, {name} calls: median {statistics.median(kept):.1f} ms a question")


if __name__ == "__main__":
    main()

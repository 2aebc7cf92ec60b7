"""The Python API in one script: score tests, keep the best tests, train two tiny models, show the best cases.

python examples/python_api.py [RUN_FOLDER]
"""

import sys

from code_a1_recipe import AdversarialCodeTrainer, AdversarialReward, MistakeBook

QUESTIONS = [
    {
        "prompt": f"Return how many x in v are at least {limit}.",
        "reference": f"def f(v):\n    w = [x for x in v if x >= {limit}]\n    return len(w)",
    }
    for limit in (0, 3, 5, 7)
]


def main(run_dir: str | None = None) -> None:
    reward = AdversarialReward(validity_weight=0.6, difficulty_weight=0.4)
    right = QUESTIONS[0]["reference"]
    wrong = right.replace("x >= 0", "x > 0")
    book = MistakeBook(max_size=100, quality_threshold=0.3)
    for test in ("assert f([0, 1]) == 2", "assert f([2]) == 1", "assert f([0]) == 5", "assert f(0) == 0"):
        score = reward.score_test(test, wrong, right)
        is_kept = book.add_test(test, quality_score=max(0.0, score.total))
        print(f"{test}: {score.total:+.2f} = {dict(score.parts)}{', kept' if is_kept else ''}")
    print(f"the best test: {book.get_top_k(1)[0]}")

    trainer = AdversarialCodeTrainer(reward_fn=reward, max_code_len=64, run_dir=run_dir)
    # trainer.step(QUESTIONS[:2]) would train one more step, on two questions only. Each call starts its own servers.
    for row in trainer.train(QUESTIONS, num_steps=2, num_samples=4):
        print(f"step {row['step']}: R_C {row['code/reward']:.2f}, R_T {row['test/reward']:.2f}")
    print(f"what broke programs, best first: {MistakeBook.of_run(trainer.run_dir).get_top_k(3)}")


if __name__ == "__main__":
    main(*sys.argv[1:2])

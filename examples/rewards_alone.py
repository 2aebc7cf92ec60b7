"""Judges one program against one suite of tests, and prints both rewards. It needs no model, no GPU and no verl.

python examples/rewards_alone.py
"""

from reward_fns import code_llm_reward, extract_candidate, extract_suite, test_llm_reward
from sandbox import Judge, JudgeRequest, LocalRunner

REFERENCE = """
def largest(numbers):
    return max(numbers)
"""

CODE_RESPONSE = """Here is my solution:
```python
def largest(numbers):
    best = 0
    for number in numbers:
        if number > best:
            best = number
    return best
```
"""

TEST_RESPONSE = """
```python
assert largest([1, 3, 2]) == 3
assert largest([5]) == 5
assert largest([-4, -2]) == -2
assert largest([0, -1]) == 1
```
"""


def main() -> None:
    with LocalRunner(num_workers=1) as runner:
        judge = Judge(runner)
        verdict = judge.judge(
            JudgeRequest(
                question_id="largest",
                reference=REFERENCE,
                candidate=extract_candidate(CODE_RESPONSE),
                suites=(extract_suite(TEST_RESPONSE),),
            )
        )
    for case in verdict.suites[0].cases:
        claim = "right" if case.expected_correct else f"wrong (it claims {case.expected})"
        print(f"{case.call} is {case.reference_value}: the claim is {claim}, the program {case.outcome.value}")
    for name, reward in (("code", code_llm_reward(verdict)), ("test", test_llm_reward(verdict, 0, num_cases=4))):
        print(f"{name} reward {reward.total:.3f} = {dict(reward.parts)}")


if __name__ == "__main__":
    main()

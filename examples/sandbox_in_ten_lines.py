"""Judges one program against its reference in the sandbox: python examples/sandbox_in_ten_lines.py"""

from sandbox import Judge, JudgeRequest, LocalRunner

reference = "def add(a, b):\n    return a + b"
candidate = "def add(a, b):\n    return abs(a) + b"
tests = ("assert add(1, 2) == 3", "assert add(-1, 2) == 1", "assert add(0, 0) == 1")
with LocalRunner() as runner:
    request = JudgeRequest(question_id="add", reference=reference, candidate=candidate, suites=(tests,))
    verdict = Judge(runner).judge(request)
for case in verdict.suites[0].cases:
    print(f"{case.call} is {case.reference_value}, claimed {case.expected}: the program {case.outcome.value}")

"""Commands that put a trained pair to use: select, attack."""

from pathlib import Path

from ..tools.best_of_n.options import SelectOptions
from ..tools.bug_finder.options import AttackOptions
from . import status
from .declared import with_options


@with_options
def select(options: SelectOptions) -> None:
    """Choose the best of N programs by generated tests, without a reference.

    Samples N programs for each question from a Code LLM and M suites from a Test LLM (--test-..., or one run for both),
    runs all programs on all tests, and chooses the program with the best agreement. If a question has tests of its own,
    all rules are compared on the same samples, also with random choice and with the oracle.

    `code-a1 select questions.jsonl --model CODE_LLM --test-model TEST_LLM --output out/best-of-16`
    """
    from ..tools.best_of_n import command

    status.resume(options.output, command.select, options)


@with_options
def attack(options: AttackOptions) -> None:
    """Look for bugs in a Python function of yours.

    A Test LLM (--model, --endpoint) writes asserts for it, or you have some (--suites). They run in the sandbox, and
    also with small changes of their arguments. For each kind of wrong answer a call is shrunk to a minimal one:

    `assert median([0, 1]) == 0.5  # your function: 1`

    With --reference (a slow but right solution, an old version) an answer is wrong if the reference gives another, and
    the minimal calls are written as a pytest file. The reference also decides which calls are valid: if it raises an
    error, nothing is compared; if it answers inputs that the problem rules out, your function must do so, too
    (--max-calls 1 makes only the tests' calls). Without a reference you see tests that expect another answer, and not
    who is right. No test file is written then, since it might test the wrong answer.

    `code-a1 attack median.py --question median.md --reference slow_median.py --model my-test-llm`

    Ends with status 0 if every call that can be compared was made and nothing was found. Ends with 1 if bugs were found
    (without a reference: tests that expect another answer), if the time did not suffice for some calls, or if a model
    or the sandbox is down.
    """
    from ..tools.bug_finder import command

    status.resume(Path.cwd(), command.attack, options)

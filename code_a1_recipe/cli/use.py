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
    runs all programs on all tests, and chooses one program by how they agree. Where a question has tests of its own,
    all rules are compared on the same samples with random choice and with the oracle.

    `code-a1 select questions.jsonl --model CODE_LLM --test-model TEST_LLM --output out/best-of-16`
    """
    from ..tools.best_of_n import command

    status.resume(options.output, command.select, options)


@with_options
def attack(options: AttackOptions) -> None:
    """Look for bugs in a Python function of yours.

    Asserts that a Test LLM (--model, --endpoint) writes for it, or that you have (--suites), and small changes of their
    arguments are run in the sandbox. Of each kind of wrong answer one call is shrunk to a minimal one:

    `assert median([0, 1]) == 0.5  # your function: 1`

    With --reference (a slow but right solution, an old version) wrong means: another answer than the reference's, and
    the minimal calls are written as a pytest file. The reference also decides what is a valid call: where it raises
    nothing is compared; where it answers inputs that the problem rules out, so must you (--max-calls 1 keeps to the
    tests' calls). Without a reference the tests that expect something else are shown, not who is right, and no test
    file is written, for it might test the wrong answer.

    `code-a1 attack median.py --question median.md --reference slow_median.py --model my-test-llm`

    Ends with status 0 where every call that can be compared was asked and nothing was found; with 1 where bugs were
    found (without reference: tests that expect something else), where calls could not be asked for want of time, or
    where a model or the sandbox is down.
    """
    from ..tools.bug_finder import command

    status.resume(options.responses or Path.cwd(), command.attack, options)

"""Commands that use a trained pair: select, attack."""

from pathlib import Path

from ..tools.best_of_n.options import SelectOptions
from ..tools.bug_finder.options import AttackOptions
from . import status
from .declared import with_options


@with_options
def select(options: SelectOptions) -> None:
    """Choose the best of N programs by generated tests, without a reference.

    A Code LLM writes N programs for each question, and a Test LLM writes M suites. The options --test-... name the Test
    LLM; a run can also give both LLMs. All programs are run on all tests, and the program with the best agreement is
    chosen. If a question has tests of its own, the command compares all rules of choice on the same samples. A random
    choice and the oracle's choice are compared too.

    `code-a1 select questions.jsonl --model CODE_LLM --test-model TEST_LLM --output out/best-of-16`
    """
    from ..tools.best_of_n import command

    status.resume(options.output, command.select, options)


@with_options
def attack(options: AttackOptions) -> None:
    """Look for bugs in a Python function of yours.

    A Test LLM (--model, --endpoint) writes asserts for the function, or you give some (--suites). The asserts are run
    in the sandbox, as written and also with small changes of their arguments.
    For each kind of wrong answer, the call is shrunk to a minimal one:

    `assert median([0, 1]) == 0.5  # your function: 1`

    With --reference (a slow but right solution, or an old version) an answer is wrong if the reference gives another
    answer. The minimal calls are then written as a pytest file. The reference also decides which calls are valid. If
    the reference raises an error for a call, nothing is compared. If the reference answers inputs that the problem
    excludes, your function must answer them too. With --max-calls 1 only the calls of the tests are made. Without a
    reference, you see tests that expect another answer, but not whether the test or the function is right. So no test
    file is written.

    `code-a1 attack median.py --question median.md --reference slow_median.py --model my-test-llm`

    The exit status is 0 if all calls that can be compared were made and no bug was found. The exit status is 1 if bugs
    were found, if there was no time for some calls, or if a model or the sandbox is down. Without a reference, the exit
    status is also 1 if a test expects another answer.
    """
    from ..tools.bug_finder import command

    status.resume(Path.cwd(), command.attack, options)

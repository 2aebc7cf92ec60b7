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
    """Write valid tests for a Python file of yours.

    A Test LLM (--model, --endpoint) writes asserts for the file's public functions and classes, or you give some
    (--suites). The asserts are judged in the sandbox, and the valid ones are written as a pytest file. The last line
    says how many asserts are valid, and how many mutants the valid tests kill.

    With --reference (a slow but right solution, or an old version) a test is valid if it expects the reference's
    answer. Each call for which your file gives another answer is shown:

    `assert median([1, 2]) == 1.5  # your file: 2`

    If the reference answers inputs that the problem excludes, your file must answer them too. Without a reference, a
    test is valid if your file gives the answer that the test expects. The other tests are shown, and you decide whether
    the test or the file is wrong.

    `code-a1 attack median.py --question median.md --reference slow_median.py --model my-test-llm`

    The exit status is 0 if all calls were made and no answer of your file was contradicted. The exit status is 1 if an
    answer was contradicted, if there was no time for some calls, or if a model or the sandbox is down.
    """
    from ..tools.bug_finder import command

    status.resume(Path.cwd(), command.attack, options)

"""Memory and time of a bounded Mistake Book: what does a book of 1,000,000 cases cost the trainer's process?

    python examples/benchmarks/book_memory.py [--sizes 1000000 100000] [--questions 10000]

A child process for each size meets the same cases: for each question a few more than a book of the first size keeps, of
calls of about 45 characters, failed and passed by chance. Then come ten steps of 256 questions, each with 40 failed new
cases, 200 passed ones and 8 replays that half of 8 programs pass. A last child fills a pool of opponents, with 16
programs of 300 characters and 16 suites of each question. Prints a line for each.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from code_a1_recipe.algorithm.book_rules import BookRules
from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook
from code_a1_recipe.algorithm.opponents import Opponent, OpponentPool, Opponents

QUESTIONS_A_STEP, NEW_CASES, PASSED_CASES, STEPS = 256, 40, 200, 10
MORE = 1.2
"""Cases met of those that the largest book keeps."""


def resident_mib() -> float:
    with open("/proc/self/statm", encoding="ascii") as handle:
        return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def made_up_case(chance: random.Random) -> FailedCase:
    numbers = [chance.randrange(-1000, 1000) for _ in range(chance.randrange(6))]
    call = f"solve({numbers}, {chance.randrange(10**9)}, {chance.choice(['', 'a', 'abcdef'])!r})"
    return FailedCase(call=call, answer=str(chance.randrange(10**9)), key=f"{chance.getrandbits(128):032x}")


def update(book: MistakeBook, name: str, number: int, chance: random.Random, *, num_passed: int = 0) -> float:
    """One question's update of the book with ``number`` failed new cases; its seconds."""
    replayed = [entry.key for entry in book.retrieve(name)]
    new = [made_up_case(chance) for _ in range(number)]
    passed_new = [made_up_case(chance).key for _ in range(num_passed)] + [one.key for one in new[::3]]
    start = time.perf_counter()
    book.update(
        name, BookUpdate(failed=new, passed_replays=replayed * 4, failed_replays=replayed * 4, passed_new=passed_new)
    )
    return time.perf_counter() - start


def one_book(size: int, largest: int, questions: int) -> None:
    chance, before = random.Random(0), resident_mib()
    book = MistakeBook(BookRules(max_size=size))
    for _ in range(3):
        for number in range(questions):
            update(book, f"question-{number}", round(MORE * largest / questions / 3), chance)
    grown, steps = resident_mib() - before, []
    for _ in range(STEPS):
        names = chance.sample(range(questions), QUESTIONS_A_STEP)
        steps.append(
            sum(update(book, f"question-{number}", NEW_CASES, chance, num_passed=PASSED_CASES) for number in names)
        )
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        book.save(Path(folder) / "book.json")
    saved = time.perf_counter()
    print(
        f"at most {size:,} cases: {book.num_cases:,} of {book.num_questions:,} questions, {grown:.0f} MiB; "
        f"a step's update {sum(steps) / STEPS:.3f} s (at most {max(steps):.3f}); its file {saved - start:.1f} s",
        flush=True,
    )


def one_pool(questions: int) -> None:
    chance, before = random.Random(0), resident_mib()
    pool = OpponentPool()
    for generation in range(20):
        for number in range(questions):
            new = Opponents(
                programs=(Opponent(texts=(f"{chance.getrandbits(1200):0300x}",), generation=generation),),
                suites=(Opponent(texts=(f"assert {made_up_case(chance).call} == 1",), generation=generation),),
            )
            pool.update(f"question-{number}", new)
    sizes = pool.metrics()
    print(
        f"opponents of {questions:,} questions: {sizes['opponents/programs']:,.0f} programs and "
        f"{sizes['opponents/suites']:,.0f} suites, {resident_mib() - before:.0f} MiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 100_000])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one == 0:
        one_pool(options.questions)
        return
    if options.one:
        one_book(options.one, options.sizes[0], options.questions)
        return
    for size in (*options.sizes, 0):
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--one", str(size)], check=True)


if __name__ == "__main__":
    main()

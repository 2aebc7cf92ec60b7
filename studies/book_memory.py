"""Memory and time of a bounded Mistake Book: what does a book of 1,000,000 cases cost the trainer's process?

    python -m studies.book_memory [--sizes 1000000 --sizes 100000] [--questions 10000]

A child process for each size meets the same cases: for each question a few more than a book of the first size keeps, of
calls of about 45 characters, failed and passed by chance. Then come ten steps of 256 questions, each with 40 failed new
cases, 200 passed ones and 8 replays that half of 8 programs pass. Prints a line for each.
"""

import multiprocessing
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook
from studies.command_line import run_study, study_app

QUESTIONS_A_STEP, NEW_CASES, PASSED_CASES, STEPS = 256, 40, 200, 10
MORE = 1.2
"""Cases met for each that the largest book keeps."""
ROUNDS = 3
"""Visits of each question while the book fills."""
app = study_app()


def resident_mib() -> float:
    """Resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as handle:
        return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def made_up_case(chance: random.Random) -> FailedCase:
    """Draw a case with a call of about 45 characters."""
    numbers = [chance.randrange(-1000, 1000) for _ in range(chance.randrange(6))]
    word = chance.choice(["", "a", "abcdef"])
    call = f"solve({numbers}, {chance.randrange(10**9)}, {word!r})"
    return FailedCase(call=call, answer=str(chance.randrange(10**9)), key=f"{chance.getrandbits(128):032x}")


def update(book: MistakeBook, question: str, num_failed: int, chance: random.Random, *, num_passed: int = 0) -> float:
    """Update the book for one question, with ``num_failed`` failed new cases; returns the seconds it took."""
    replayed = [case.key for case in book.retrieve(question)]
    failed = [made_up_case(chance) for _ in range(num_failed)]
    passed = [made_up_case(chance).key for _ in range(num_passed)]
    passed += [case.key for case in failed[::3]]
    change = BookUpdate(failed=failed, passed_replays=replayed * 4, failed_replays=replayed * 4, passed_new=passed)
    start = time.perf_counter()
    book.update(question, change)
    return time.perf_counter() - start


def measure_book(size: int, largest: int, questions: int) -> None:
    """Fill one book, train ten steps, save it, and print what that took."""
    chance, before = random.Random(0), resident_mib()
    book = MistakeBook()
    num_cases = round(MORE * largest / questions / ROUNDS)
    for _ in range(ROUNDS):
        for number in range(questions):
            update(book, f"question-{number}", num_cases, chance)
        book.shrink(size)
    grown = resident_mib() - before
    steps = []
    for _ in range(STEPS):
        seconds = 0.0
        for number in chance.sample(range(questions), QUESTIONS_A_STEP):
            seconds += update(book, f"question-{number}", NEW_CASES, chance, num_passed=PASSED_CASES)
        start = time.perf_counter()
        book.shrink(size)
        steps.append(seconds + time.perf_counter() - start)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        book.save(Path(folder) / "book.json")
    saved = time.perf_counter()
    typer.echo(
        f"at most {size:,} cases: {book.num_cases:,} of {book.num_questions:,} questions, {grown:.0f} MiB; "
        f"a step's update {sum(steps) / STEPS:.3f} s (at most {max(steps):.3f}); its file {saved - start:.1f} s"
    )


@app.command()
def book_memory(
    sizes: Annotated[list[int], typer.Option(help="most cases of a book; repeatable")] = [1_000_000, 100_000],  # noqa: B006
    questions: Annotated[int, typer.Option(min=QUESTIONS_A_STEP)] = 10_000,
) -> None:
    """Measure books of several sizes."""
    for size in sizes:
        # A fresh process for each size: memory that one book gave back would hide what the next one takes.
        child = multiprocessing.get_context("spawn").Process(target=measure_book, args=(size, sizes[0], questions))
        child.start()
        child.join()


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="book_memory"))

"""The subsets of the study: functions of a data set, shipped bugs, and mutants as buggy programs, chosen by a seed."""

import importlib.util
import json
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.errors import InputError
from code_a1_recipe.files import write_whole
from code_a1_recipe.jobs.confinement import JudgeAll
from code_a1_recipe.test_quality.metrics import judge_assertions
from code_a1_recipe.test_quality.mutants import mutants_of
from code_a1_recipe.test_quality.mutation_kill import kill_mutants

PROGRAMS_FILE = Path("tests/unit/applications/bug_finder/attack_programs.py")
MAX_MUTANTS = 50


def chosen(questions: Sequence[Question], number: int, seed: int) -> list[Question]:
    """``number`` questions in the file's order, the same for the same seed; all where there are fewer."""
    places = random.Random(seed).sample(range(len(questions)), min(number, len(questions)))
    return [questions[place] for place in sorted(places)]


def shipped_bugs(path: Path = PROGRAMS_FILE) -> list[Question]:
    """The buggy programs that the bug finder's tests ship, each with its reference; own tests: the scripted suites.

    Raises:
        InputError: the file is not there.
    """
    spec = importlib.util.spec_from_file_location("attack_programs", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise InputError(f"{path} must be there; run the command from the repository's root")
    module = importlib.util.module_from_spec(spec)
    sys.modules["attack_programs"] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return [
        Question(
            id=one.entry,
            prompt=one.question,
            reference=one.reference,
            entry_points=(one.entry,),
            tests=one.asserts,
            buggy_programs=(one.buggy,),
            data_source="shipped bugs",
        )
        for one in module.PROGRAMS
    ]


def with_one_mutant(questions: Iterable[Question], number: int, seed: int, judge_all: JudgeAll) -> list[Question]:
    """Questions with one mutant of their reference as the buggy program: one that their own correct tests kill.

    Questions are taken in an order drawn by the seed, until there are ``number``; those without such a mutant are left
    out.

    Raises:
        SandboxUnavailableError: something could not be judged.
    """
    source = random.Random(seed)
    found: list[Question] = []
    for question in source.sample(pool := list(questions), len(pool)):
        if len(found) == number:
            break
        mutants = [one.source for one in mutants_of(question.reference, max_mutants=MAX_MUTANTS)]
        if not mutants or not any(judge_assertions(question, question.tests, judge_all)):
            continue
        survivors = set(kill_mutants(question, mutants, question.tests, judge_all).survivors)
        killed = [text for place, text in enumerate(mutants) if place not in survivors]
        if killed:
            found.append(replace(question, buggy_programs=(source.choice(killed),)))
    return found


def as_seen(questions: Iterable[Question]) -> list[Question]:
    """The questions with their first buggy program in the reference's place: what a tester of it is shown."""
    return [replace(one, reference=one.buggy_programs[0], buggy_programs=()) for one in questions]


def write_questions(path: Path, questions: Iterable[Question]) -> None:
    """Write them as rows of native columns."""
    rows: list[dict[str, Any]] = [asdict(one) for one in questions]
    write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))

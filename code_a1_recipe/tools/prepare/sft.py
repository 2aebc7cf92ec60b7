"""``code-a1 data sft``: writes cold-start demonstrations for the Test LLM, and a card with the training command."""

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from ...config.compose import quoted
from ...data.reader import question_table
from ...errors import CodeA1Error, InputError
from ...files import fingerprint, write_whole
from ...jobs.confinement import Confinement, judge_confined
from ...jobs.jsonl_store import JsonlStore, files_of
from ...jobs.outputs import Report, note_work
from ...stats.tables import counts_text
from ..test_quality.mutants import check_cosmic_ray
from .dataset_card import dataset_card, write_parquet
from .demonstrations import SHOWN, SuiteDemonstration, demonstrations_row, held_out, select
from .options import SftOptions


def make_demonstrations(options: SftOptions) -> Report:
    """Write demonstrations and their card. A repeated call resumes.

    Raises:
        InputError, SandboxConfigError: an input or an option cannot be used; nothing was written.
        CodeA1Error: no demonstration could be made; nothing was written.
        OutageError: the sandbox is down.
    """
    options.check(options.files)
    questions = list(question_table(options.files, adapter=options.adapter, columns=options.columns).values())
    for question in questions:
        if question.is_listed:
            raise InputError(
                f"question {question.id!r} has listed outputs, but demonstrations need a reference program; leave the "
                "question out"
            )
    if options.mutants:
        check_cosmic_ray()
    settings = {name: getattr(options, name) for name in ("cases", "mutants", "seed", "tier")}
    settings["questions"] = fingerprint(json.dumps([asdict(question) for question in questions]))
    made = []
    left_out: Counter[str] = Counter()
    num_outages = 0
    with JsonlStore(options.work_output, settings=settings, key="question") as store:
        judge_confined(
            store,
            questions,
            partial(demonstrations_row, options=options),
            key=lambda question: question.id,
            confinement=Confinement(tier=options.tier, allow_missing=options.allow_missing),
            num_workers=options.workers,
            what="sft",
        )
        for question in questions:
            row = store.row(question.id)
            num_outages += bool(row["outage"])
            left_out.update(row["counts"])
            made += [SuiteDemonstration(question, *suite) for suite in row["suites"]]
    kept = select(made, options, counts=left_out)
    left_out = +left_out  # drops reasons with the count 0
    if not kept:
        raise CodeA1Error(
            f"no demonstration could be made of {', '.join(path.name for path in options.files)} (left out: "
            f"{counts_text(left_out) or 'nothing'}, outages: {num_outages}); nothing was written; name other questions"
        )
    text = _written(
        kept,
        options,
        num_questions=len(questions),
        num_outages=num_outages,
        left_out=left_out.most_common(),
    )
    failure = ""
    if num_outages:
        failure = f"{num_outages} questions met an outage of the sandbox; repeat the command to judge them again"
    else:
        for path in files_of(options.work_output):
            path.unlink(missing_ok=True)
    note_work(options.outputs, is_finished=not failure)
    return Report(text=text, failure=failure)


def _written(kept: Sequence[SuiteDemonstration], options: SftOptions, **counts: Any) -> str:
    """Write the training part, the validation part and the card. Returns the summary for the terminal."""
    val_ids = held_out((shown.question.id for shown in kept), share=options.val_frac, seed=options.seed)
    train = [shown.row(options.prompt) for shown in kept if shown.question.id not in val_ids]
    val = [shown.row(options.prompt) for shown in kept if shown.question.id in val_ids]
    splits = {"train": options.output}
    write_parquet(options.output, train)
    if val:
        splits["validation"] = options.val_output
        write_parquet(options.val_output, val)
    card = dataset_card(
        Path(__file__).with_name("sft_card.md.jinja"),
        splits,
        options=options,
        kept=kept,
        num_val=len(val),
        meaning=SHOWN,
        shell=lambda key, value: shlex.quote(f"{key}={quoted(value)}"),
        **counts,
    )
    write_whole(options.card_output, card)
    num_breaking = sum(shown.num_breaking > 0 for shown in kept)
    return (
        f"{options.output}: {len(train)} demonstrations, {len(val)} more for validation\n"
        f"{num_breaking} of the suites break the program in their prompt\n"
        f"counts, and the training command: {options.card_output}"
    )

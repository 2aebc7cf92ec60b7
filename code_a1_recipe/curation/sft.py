"""``code-a1 data sft``: demonstrations for a cold start of the Test LLM, and the command that trains on them."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..data.reader import question_table
from ..errors import CodeA1Error
from ..files import fingerprint, write_whole
from ..jobs.confinement import Confinement, judge_confined
from ..jobs.jsonl_store import JsonlStore, files_of
from ..jobs.outputs import Report, check_outputs, note_work
from ..jobs.progress import watched
from ..runs.reader import RunRecords
from ..stats.tables import counts_text
from ..test_quality.mutants import cosmic_ray_version
from .dataset_card import dataset_card, write_parquet
from .demonstrations import (
    SHOWN,
    PromptStyle,
    SuiteDemonstration,
    demonstrations_from,
    demonstrations_row,
    held_out,
    select,
)
from .options import SftOptions
from .training_command import training_command


@dataclass(slots=True, kw_only=True)
class Made:
    """All demonstrations before the selection, and what went before it."""

    source: str
    """Where they come from, for the card."""
    style: PromptStyle
    num_questions: int
    demonstrations: list[SuiteDemonstration] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    num_outages: int = 0
    """Questions, or recorded programs, that the sandbox could not judge."""


def make_demonstrations(options: SftOptions) -> Report:
    """Write demonstrations, their card and the command that trains on them; a repeated call resumes.

    Raises:
        InputError, SandboxConfigError: something cannot be used; nothing was written.
        CodeA1Error: no demonstration could be made; nothing was written.
        OutageError: the sandbox is down.
    """
    options.check()
    run = RunRecords.open(options.run) if options.run is not None else None
    check_outputs(
        options.outputs,
        inputs=run.files() if run is not None else options.files,
        overwrite=options.overwrite,
        work_files=files_of(options.work_output),
    )
    made = _of_run(options, run) if run is not None else _of_questions(options)
    text = _written(options, made)
    failure = ""
    if made.num_outages and run is None:
        failure = f"{made.num_outages} questions met an outage of the sandbox; repeat the command to judge them"
    else:
        for path in files_of(options.work_output):
            path.unlink(missing_ok=True)
    note_work(options.outputs, is_finished=not failure)
    return Report(text=text, failure=failure)


def _of_questions(options: SftOptions) -> Made:
    """Demonstrations of the questions' own tests; what was judged before is not judged again."""
    table = question_table(options.files, adapter=options.adapter, columns=options.columns)
    if options.mutants:
        cosmic_ray_version()  # refuses where mutants cannot be made
    settings = {name: getattr(options, name) for name in ("cases", "mutants", "seed", "tier")}
    settings["questions"] = fingerprint(json.dumps([asdict(question) for question in table.values()]))
    made = Made(
        source=", ".join(path.name for path in options.files),
        style=PromptStyle(options.prompt or "chat_v2"),
        num_questions=len(table),
    )
    with JsonlStore(options.work_output, settings=settings, key="question") as store:
        judge_confined(
            store,
            list(table.values()),
            lambda question, judge_all: demonstrations_row(question, options, judge_all),
            key=lambda question: question.id,
            confinement=Confinement(tier=options.tier, allow_missing=options.allow_missing),
            num_workers=options.workers,
            what="sft",
        )
        for question in table.values():
            row = store.row(question.id)
            made.num_outages += bool(row["outage"])
            made.left_out.update(row["counts"])
            made.demonstrations += [SuiteDemonstration(question, *suite) for suite in row["suites"]]
    return made


def _of_run(options: SftOptions, run: RunRecords) -> Made:
    """Demonstrations that a run's Test LLM wrote in training. A question of its validation stays unseen."""
    prompts, episode = run.config.get("prompts") or {}, run.config.get("episode") or {}
    pair = options.prompt or prompts.get("test") or prompts.get("name", "chat_v2")
    questions = {question.id: question for question in run.questions("train_files")}
    made = Made(
        source=f"rollouts of {run.folder}",
        style=PromptStyle(str(pair), bool(prompts.get("black_box", False))),
        num_questions=len(questions),
    )
    records = (record for step in run.training_steps for record in run.training(step))
    made.demonstrations += demonstrations_from(
        watched(records, total=None, what="sft", unit="program"),
        questions,
        num_cases=int(episode.get("cases_per_suite", options.cases)),
        counts=made.left_out,
    )
    made.num_outages = made.left_out.pop("programs lost to an outage", 0)
    return made


def _written(options: SftOptions, made: Made) -> str:
    """Write both parts and the card; returns the summary for the terminal.

    Raises:
        CodeA1Error: there is nothing to write.
    """
    kept = select(
        made.demonstrations,
        style=made.style,
        max_per_question=options.max_per_question,
        only_breaking=options.only_breaking,
        counts=made.left_out,
    )
    if not kept:
        raise CodeA1Error(
            f"no demonstration could be made of {made.source} (left out: {counts_text(+made.left_out) or 'nothing'}, "
            f"outages: {made.num_outages}); nothing was written"
        )
    val_ids = held_out((shown.question.id for shown in kept), share=options.val_frac, seed=options.seed)
    train = [made.style.row(shown) for shown in kept if shown.question.id not in val_ids]
    val = [made.style.row(shown) for shown in kept if shown.question.id in val_ids]
    splits = {"train": options.output}
    write_parquet(options.output, train)
    if val:
        splits["validation"] = options.val_output
        write_parquet(options.val_output, val)
    command = training_command(options, train, val)
    card = dataset_card(
        options.output,
        Path(__file__).with_name("sft_card.md.jinja"),
        splits=splits,
        sources=[(file,) for file in options.files],
        options=options,
        made=made,
        kept=kept,
        num_val=len(val),
        meaning=SHOWN,
        left_out=(+made.left_out).most_common(),
        command=command,
    )
    write_whole(options.card_output, card)
    num_breaking = sum(shown.num_breaking > 0 for shown in kept)
    return (
        f"{options.output}: {len(train)} demonstrations, {len(val)} more for validation\n"
        f"{num_breaking} of the suites break the program shown\n"
        f"outages: {made.num_outages}; counts: {options.card_output}\n\ntrain on them:\n  {command}"
    )

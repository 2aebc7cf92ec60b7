"""``code-a1 data sft``: demonstrations for a cold start of the Test LLM, and the command that trains on them."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...algorithm.question import Question
from ...data.reader import QuestionTable, question_table, read_rows
from ...errors import CodeA1Error, InputError
from ...files import fingerprint, replacing, write_whole
from ...jobs.confinement import Confinement, judge_confined
from ...jobs.jsonl_store import JsonlStore, Row, files_of
from ...jobs.outputs import Report, check_outputs, note_work
from ...jobs.progress import watched
from ...runs.reader import RunRecords, rollout_of
from ...runs.rollout_record import RolloutRecord
from ...stats.tables import counts_text
from ...test_quality.mutants import require_mutants
from ..dataset_card import card_path, dataset_card
from .demonstrations import SHOWN, Demonstration, PromptStyle, Selection, held_out, select
from .from_rollouts import demonstrations_from
from .from_tests import demonstrations_row
from .options import SftOptions
from .training_command import CPU_RATE, DEFAULT_MODEL, GPU_RATE, training_command, training_overrides


@dataclass(slots=True, kw_only=True)
class Made:
    """All demonstrations before the selection, and what went before it."""

    source: str
    """Where they come from, for the card."""
    style: PromptStyle
    demonstrations: list[Demonstration] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    num_questions: int = 0
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
    if options.run is not None:
        return _from_rollouts(options, options.run)
    _check_outputs(options, options.files)
    table = question_table(options.files, adapter=options.adapter, columns=options.columns)
    if options.mutants:
        require_mutants()
    with JsonlStore(options.work_output, settings=_described(options, table), key="question") as store:
        return _from_questions(options, table, store)


# ------------------------------ of questions ------------------------------


def _from_questions(options: SftOptions, table: QuestionTable, store: JsonlStore) -> Report:
    judge_confined(
        store,
        list(table.values()),
        lambda question, judge_all: demonstrations_row(question, options, judge_all),
        key=lambda question: question.id,
        confinement=Confinement(tier=options.tier, allow_missing=options.allow_missing),
        num_workers=options.workers,
        what="sft",
    )
    made = Made(
        source=", ".join(path.name for path in options.files),
        style=PromptStyle(options.prompt or "chat_v2"),
        num_questions=len(table),
    )
    for question in table.values():
        row = store.row(question.id)
        made.num_outages += bool(row["outage"])
        made.left_out.update(row["counts"])
        made.demonstrations += [
            Demonstration(
                question_id=question.id,
                statement=question.prompt,
                reads_input=question.reads_input,
                data_source=question.data_source,
                **{**suite, "asserts": tuple(suite["asserts"])},
            )
            for suite in row["suites"]
        ]
    made.left_out = +made.left_out
    report = _write(options, made)
    if not made.num_outages:
        store.delete()
    note_work(options.outputs, is_finished=not made.num_outages)
    return report


def _described(options: SftOptions, table: QuestionTable) -> dict[str, Any]:
    """What decides the rows of the work file."""
    questions = fingerprint(json.dumps([asdict(question) for question in table.values()]))
    decisive = ("num_cases", "mutants", "max_assert_chars", "seed", "tier")
    return {**{name: getattr(options, name) for name in decisive}, "questions": questions}


def _check_outputs(options: SftOptions, inputs: Sequence[Path]) -> None:
    work_files = files_of(options.work_output)
    check_outputs(options.outputs, inputs=inputs, overwrite=options.overwrite, work_files=work_files)


# ------------------------------ of rollouts ------------------------------


def _from_rollouts(options: SftOptions, source: Path) -> Report:
    """Demonstrations that a Test LLM wrote: of a run's training rollouts, or of a file of such rows.

    A question of a run's validation stays unseen.
    """
    run = RunRecords.open(source) if source.is_dir() else None
    _check_outputs(options, [*options.questions, *(run.files() if run else [source])])
    num_cases, style = options.num_cases, PromptStyle(options.prompt or "chat_v2")
    records: Iterable[RolloutRecord]
    questions: Sequence[Question] = ()
    if run is not None:
        records = (record for step in run.training_steps for record in run.training(step))
        prompts = run.config.get("prompts") or {}
        num_cases = int((run.config.get("episode") or {}).get("cases_per_suite", 8))
        pair = options.prompt or str(prompts.get("test") or prompts.get("name", "chat_v2"))
        style = PromptStyle(pair, bool(prompts.get("black_box", False)))
        questions = () if options.questions else run.questions("train_files")
    elif options.questions:
        records = [rollout_of(row, f"{source}: row {number}") for number, row in enumerate(read_rows(source))]
    else:
        raise InputError(
            f"--run {source} is no run folder, so it does not say where its questions are; name their files by "
            "--questions"
        )
    table = {question.id: question for question in questions} or question_table(
        options.questions, adapter=options.adapter, columns=options.columns
    )
    made = Made(source=f"rollouts of {options.run}", style=style, num_questions=len(table))
    watched_records = watched(records, total=None, what="sft", unit="program")
    made.demonstrations = list(demonstrations_from(watched_records, table, num_cases=num_cases, counts=made.left_out))
    made.num_outages = made.left_out.pop("programs lost to an outage", 0)
    return _write(options, made)


# ------------------------------ to files ------------------------------


def _write(options: SftOptions, made: Made) -> Report:
    """Write both parts and the card; the report has the command that trains."""
    selection = select(
        made.demonstrations,
        style=made.style,
        max_per_question=options.max_per_question,
        max_chars=options.max_chars,
        only_breaking=options.only_breaking,
    )
    if not selection.kept:
        reasons = counts_text(made.left_out + selection.dropped)
        raise CodeA1Error(
            f"no demonstration could be made of {made.source} (left out: {reasons or 'nothing'}, outages: "
            f"{made.num_outages}); nothing was written"
        )
    val_ids = held_out((one.question_id for one in selection.kept), share=options.val_frac, seed=options.seed)
    train = [made.style.row(one) for one in selection.kept if one.question_id not in val_ids]
    val = [made.style.row(one) for one in selection.kept if one.question_id in val_ids]
    _write_rows(options.output, train)
    note = ""
    if val:
        _write_rows(options.val_output, val)
    elif options.val_output.exists():  # maybe somebody else's
        note = f"note: {options.val_output} is older and has nothing to do with these demonstrations"
    overrides = training_overrides(
        train_file=options.output,
        val_file=options.val_output,
        num_train=len(train),
        num_val=len(val),
        longest_bytes=max(_num_bytes(row) for row in (*train, *val)),
        model=options.model or ("MODEL" if options.cpu else DEFAULT_MODEL),
        folder=options.output.with_name(f"{options.output.stem}_model"),
        rate=CPU_RATE if options.cpu else GPU_RATE,
    )
    command = training_command(overrides, on_cpu=options.cpu)
    counts: dict[str, Any] = {"num_train": len(train), "num_val": len(val), "command": command}
    write_whole(card_path(options.output), _card(options, made, selection, **counts))
    repeat = f"{made.num_outages} questions met an outage of the sandbox; repeat the command to judge them"
    return Report(
        text=_summary(options, made, selection, **counts),
        note=note,
        failure=repeat if made.num_outages and options.run is None else "",
    )


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    import pyarrow  # here: `--help` does without
    import pyarrow.parquet

    with replacing(path) as partial:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), partial)


def _num_bytes(row: Row) -> int:
    return sum(len(message["content"].encode("utf-8", "surrogatepass")) for message in row["messages"])


def _summary(
    options: SftOptions, made: Made, selection: Selection, *, num_train: int, num_val: int, command: str
) -> str:
    breaking = sum(one.num_breaking > 0 for one in selection.kept)
    lines = [
        f"{options.output}: {num_train} demonstrations, {num_val} more for validation, of "
        f"{len({one.question_id for one in selection.kept})} of {made.num_questions} questions",
        f"{breaking} of the suites break the program shown",
        f"counts: {card_path(options.output)}",
    ]
    if made.num_outages and options.run is not None:
        lines.append(f"{made.num_outages} programs of the run had been lost to an outage, with their suites")
    lines += ["", "train on them:", f"  {command}"]
    return "\n".join(lines)


def _card(
    options: SftOptions, made: Made, selection: Selection, *, num_train: int, num_val: int, command: str
) -> bytes:
    """What is in the set, what is not, and how to train on it."""
    kept = selection.kept
    shown, breaking = Counter(one.shown for one in kept), Counter(one.shown for one in kept if one.num_breaking)
    return dataset_card(
        options.output,
        Path(__file__).with_name("sft_card.md.jinja"),
        splits={"train": options.output} | ({"validation": options.val_output} if num_val else {}),
        num_rows=num_train + num_val,
        sources=[(file,) for file in options.files],
        options=options,
        made=made,
        num_train=num_train,
        num_val=num_val,
        num_used=len({one.question_id for one in kept}),
        sizes=sorted(Counter(len(one.asserts) for one in kept).items()),
        rows=[(name, shown[name], breaking[name], meaning) for name, meaning in SHOWN.items() if shown[name]],
        left_out=(made.left_out + selection.dropped).most_common(),
        command=command,
    )

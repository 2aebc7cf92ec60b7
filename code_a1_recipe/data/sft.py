"""``code-a1 data sft``: demonstrations for a cold start of the Test LLM, and the command that trains on them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from sandbox import SandboxConfigError

from ..analysis.judged_rows import (
    BROKE_OFF,
    DONE,
    INTERRUPTED,
    REFUSED,
    Confinement,
    exit_status,
    judge_rows,
    remove_work_file,
)
from ..analysis.own_files import OutputError, check_outputs, forget_unfinished, note_unfinished
from ..analysis.records import RecordsError, RunRecords
from ..questions import Question, QuestionError
from ..score_file import ScoreFile, ScoreFileError
from ..score_input import QuestionTable, ScoreInputError, question_table
from .demonstrations import Demonstration, PromptStyle, Row, Selection, held_out, select
from .question_demonstrations import MakeSettings, demonstrations_of, demonstrations_row
from .rollout_demonstrations import RecordedSuites, demonstrations_from, recorded_rows, recorded_run
from .sft_card import card
from .sft_options import DEFAULT_CASES, Options, OptionsError, read_options
from .sft_training import TrainingPlan, training_command, training_overrides

REFUSALS = (
    OptionsError,
    OutputError,
    RecordsError,
    QuestionError,
    ScoreFileError,
    ScoreInputError,
    SandboxConfigError,
    ModuleNotFoundError,
)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 written, 1 outages are left or it broke off, 2 refused before any work, 130 interrupted."""
    options = read_options(arguments)
    try:
        options.check()
        if options.run is not None:
            recorded, table = _open_rollouts(options, options.run)
            return _from_rollouts(options, recorded, table)
        _check_outputs(options, options.files)
        table = question_table(options.files, adapter=options.adapter, columns=options.columns)
        if options.mutants:
            _require_mutants()
        work_file = ScoreFile(options.work_output, settings=_described(options, table), key="question")
    except REFUSALS as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except OSError as error:
        sys.stderr.write(f"error: {error}; choose a place that can be written, and files that can be read\n")
        return REFUSED
    return exit_status(lambda: _from_questions(options, table, work_file), output=work_file, num_items=len(table))


# ------------------------------ of questions ------------------------------


def _from_questions(options: Options, table: QuestionTable, work_file: ScoreFile) -> int:
    settings = _make_settings(options)
    judge_rows(
        list(table.values()),
        lambda question, judge_all: demonstrations_row(question, settings, judge_all),
        work_file,
        key=lambda question: question.id,
        confinement=Confinement(tier=options.tier or 0, allow_missing=options.allow_missing),
        num_workers=options.workers,
        what="sft",
    )
    made = Made(
        source=", ".join(path.name for path in options.files),
        style=PromptStyle(options.prompt or "chat_v1"),
        num_questions=len(table),
    )
    for question in table.values():
        row = work_file.row(question.id)
        made.num_outages += bool(row["outage"])
        made.left_out.update(row["counts"])
        made.demonstrations += demonstrations_of(row, question)
    made.left_out = +made.left_out
    is_written = _write(options, made)
    if is_written and made.num_outages:
        note_unfinished(options.outputs)
    if not is_written or made.num_outages:
        return BROKE_OFF
    remove_work_file(work_file)
    forget_unfinished(options.output)
    return DONE


def _make_settings(options: Options) -> MakeSettings:
    return MakeSettings(
        num_cases=options.cases or DEFAULT_CASES,
        num_mutants=options.mutants,
        max_assert_chars=options.max_assert_chars,
        seed=options.seed,
    )


def _described(options: Options, table: QuestionTable) -> dict[str, Any]:
    """What decides the rows of the work file."""
    content = json.dumps([asdict(question) for question in table.values()]).encode()
    return {
        **asdict(_make_settings(options)),
        "tier": options.tier or 0,
        "questions": hashlib.sha256(content).hexdigest()[:16],
    }


def _check_outputs(options: Options, inputs: Sequence[Path]) -> None:
    work_file = options.work_output
    settings = work_file.with_name(f"{work_file.name}.settings.json")
    check_outputs(options.outputs, inputs=inputs, overwrite=options.overwrite, work_files=(work_file, settings))


def _require_mutants() -> None:
    from ..evaluation.mutants import mutants_of  # here: needs cosmic-ray

    mutants_of("def f(x):\n    return x + 1")


# ------------------------------ of rollouts ------------------------------


def _open_rollouts(options: Options, source: Path) -> tuple[RecordedSuites, QuestionTable]:
    """The scored suites and the questions that they name."""
    adapter, columns = options.adapter, options.columns
    run = RunRecords.open(source) if source.is_dir() else None
    _check_outputs(options, [*options.questions, *(run.files() if run else [source])])
    if run is not None:
        recorded = recorded_run(run)
        questions: Sequence[Question] = [] if options.questions else run.questions("train_files")
        table = {question.id: question for question in questions}
    else:
        if not options.questions:
            raise OptionsError(
                f"--run {source} is no run folder, so it does not say where its questions are; name their files by "
                "--questions"
            )
        records = recorded_rows(source)
        recorded = RecordedSuites(
            records=records, num_cases=options.cases or DEFAULT_CASES, pair=options.prompt or "chat_v1", black_box=False
        )
        table = {}
    return recorded, table or question_table(options.questions, adapter=adapter, columns=columns)


def _from_rollouts(options: Options, recorded: RecordedSuites, table: QuestionTable) -> int:
    made = Made(
        source=f"rollouts of {options.run}",
        style=PromptStyle(options.prompt or recorded.pair, recorded.black_box),
        num_questions=len(table),
    )
    try:
        records = tqdm(recorded.records, unit="program", desc="sft", file=sys.stderr)
        made.demonstrations = list(
            demonstrations_from(records, table, num_cases=recorded.num_cases, counts=made.left_out)
        )
        made.num_outages = made.left_out.pop("programs lost to an outage", 0)
        return DONE if _write(options, made) else BROKE_OFF
    except RecordsError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except OSError as error:
        sys.stderr.write(f"error: {error}. Make room, then repeat the command\n")
        return BROKE_OFF
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted; nothing was written. Repeat the command to begin again\n")
        return INTERRUPTED


# ------------------------------ to files ------------------------------


def _write(options: Options, made: Made) -> bool:
    """Both parts, the card, and a summary with the command that trains; False: there is nothing to write."""
    selection = select(
        made.demonstrations,
        style=made.style,
        max_per_question=options.max_per_question,
        max_chars=options.max_chars,
        only_breaking=options.only_breaking,
    )
    if not selection.kept:
        reasons = ", ".join(f"{why} {count}" for why, count in (made.left_out + selection.dropped).most_common())
        sys.stderr.write(
            f"error: no demonstration could be made of {made.source} (left out: {reasons or 'nothing'}, outages: "
            f"{made.num_outages}); nothing was written\n"
        )
        return False
    val_ids = held_out((one.question_id for one in selection.kept), share=options.val_share, seed=options.seed)
    train = [made.style.row(one) for one in selection.kept if one.question_id not in val_ids]
    val = [made.style.row(one) for one in selection.kept if one.question_id in val_ids]
    _write_rows(options.output, train)
    if val:
        _write_rows(options.val_output, val)
    elif options.val_output.exists():  # maybe somebody else's
        sys.stderr.write(f"note: {options.val_output} is older and has nothing to do with these demonstrations\n")
    plan = TrainingPlan.of(
        train_file=options.output,
        val_file=options.val_output,
        num_train=len(train),
        num_val=len(val),
        longest_bytes=max(_num_bytes(row) for row in (*train, *val)),
    )
    folder = options.output.with_name(f"{options.output.stem}_model")
    model, rate = options.model_and_rate
    command = training_command(training_overrides(plan, model=model, folder=folder, rate=rate), on_cpu=options.cpu)
    text = card(made, selection, options=options, num_train=len(train), num_val=len(val), command=command)
    _write_text(options.card_output, text)
    sys.stdout.write(_summary(options, made, selection, num_train=len(train), num_val=len(val), command=command))
    return True


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    import pyarrow  # here: `--help` does without
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), partial)
    partial.replace(path)


def _write_text(path: Path, text: str) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _num_bytes(row: Row) -> int:
    return sum(len(message["content"].encode("utf-8", "surrogatepass")) for message in row["messages"])


def _summary(options: Options, made: Made, selection: Selection, *, num_train: int, num_val: int, command: str) -> str:
    breaking = sum(one.num_breaking > 0 for one in selection.kept)
    lines = [
        f"{options.output}: {num_train} demonstrations, {num_val} more for validation, of "
        f"{len({one.question_id for one in selection.kept})} of {made.num_questions} questions",
        f"{breaking} of the suites break the program shown",
        f"counts: {options.card_output}",
    ]
    if made.num_outages and options.run is None:
        lines.append(f"{made.num_outages} questions met an outage of the sandbox; repeat the command to judge them")
    elif made.num_outages:
        lines.append(f"{made.num_outages} programs of the run had been lost to an outage, with their suites")
    lines += ["", "train on them:", f"  {command}", ""]
    return "\n".join(lines)

"""``code-a1 data prepare``: public problem sets -> a checked training set in this project's columns. Resumable."""

import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from ...algorithm.question import Question
from ...files import replacing, write_whole
from ...jobs.jsonl_store import JsonlStore, files_of
from ...jobs.outputs import Report, check_outputs, note_work
from ..dataset_card import card_path, repository_for
from .data_card import Preparation, card_of, summary_text
from .entries import Entry
from .frontier import Frontier
from .options import PrepareOptions
from .pipeline import prepare_questions
from .reading import eval_reader, read_eval_sets, read_inputs, readers_of
from .sources import open_source


def prepare(options: PrepareOptions, *, command: Sequence[str]) -> Report:
    """Write the training set, its card and the list of what was left out; a repeated call resumes.

    Args:
        options: see there.
        command: the command line, for the card.

    Raises:
        InputError, SandboxConfigError: something cannot be used; nothing was written.
        OutageError: the sandbox is down.
    """
    with warnings.catch_warnings():
        for kind in (SyntaxWarning, DeprecationWarning):  # of the data's programs, which are parsed here
            warnings.simplefilter("ignore", kind)
        return _prepare(options, command)


def _prepare(options: PrepareOptions, command: Sequence[str]) -> Report:
    started = time.monotonic()
    options.check()
    check_outputs(
        options.outputs,
        inputs=map(Path, (*options.inputs, *options.against)),
        overwrite=options.overwrite,
        work_files=files_of(options.work_output),
    )
    confinement = options.confinement
    repository = repository_for(options.output, options.push, public=options.public)
    sources = [open_source(text) for text in dict.fromkeys(options.inputs)]
    readers = readers_of(sources, adapter=options.adapter, columns=options.columns)
    eval_sources = [open_source(text) for text in dict.fromkeys(options.against)]
    for source in eval_sources:
        eval_reader(source, options.against_columns)
    frontier = Frontier.of(options) if options.base_model.is_named else None
    with JsonlStore(options.work_output, settings=options.of_judging(), key="key") as store:
        eval_sets = read_eval_sets(eval_sources, options.against_columns)
        read = read_inputs(sources, readers, limit=options.limit)
        prepared = prepare_questions(read, eval_sets, store, options, confinement, frontier)
        preparation = Preparation(
            options=options,
            command=command,
            sources=sources,
            eval_sources=eval_sources,
            read=read,
            eval_sets=eval_sets,
            prepared=prepared,
            frontier=frontier,
            seconds=time.monotonic() - started,
        )
        written = _write_outputs(preparation)
    failure = _failure(preparation)
    note_work(options.outputs, is_finished=not failure)
    text = f"{summary_text(preparation)}wrote {', '.join(map(str, written))}"
    if repository and not failure:
        text += f"\npushed to {repository.push_files([options.output], card=card_path(options.output))}"
    return Report(text=text, failure=failure)


def _write_outputs(preparation: Preparation) -> list[Path]:
    """Write dropped rows, card and, unless nothing was kept, the questions, each whole; the files written.

    Raises:
        OSError: no space, or no permission.
    """
    options, prepared = preparation.options, preparation.prepared
    lines = "".join(json.dumps(dropped.record()) + "\n" for dropped in prepared.dropped)
    write_whole(options.dropped_output, lines)
    write_whole(card_path(options.output), card_of(preparation))
    if not prepared.kept:
        return [options.dropped_output, card_path(options.output)]
    _write_entries(options.output, prepared.kept, preparation.frontier)
    return list(options.outputs)


def _write_entries(path: Path, entries: Sequence[Entry], frontier: Frontier | None) -> None:
    """Questions as parquet with the native columns, in their order, and a base model's rates where they were asked for.

    Raises:
        OSError: no space, or no permission.
    """
    import pyarrow
    import pyarrow.parquet

    text = pyarrow.string()
    kinds = {column.name: text if column.type is str else pyarrow.list_(text) for column in fields(Question)}
    columns = {name: [getattr(entry.question, name) for entry in entries] for name in kinds}
    if frontier is not None:
        kinds |= {"base_pass_rate": pyarrow.float64(), "base_samples": pyarrow.int64(), "base_model": text}
        columns |= frontier.columns(entries)
    with replacing(path) as partial:
        pyarrow.parquet.write_table(pyarrow.table(columns, schema=pyarrow.schema(kinds)), partial)


def _failure(preparation: Preparation) -> str:
    """Why the work is not finished; empty where it is."""
    prepared = preparation.prepared
    output = preparation.options.output
    rates = preparation.frontier.rates if preparation.frontier is not None else ""
    if rates and not prepared.kept and not prepared.num_outages:
        return (
            f"no question is left, so {output} was not written: {rates}. Widen --keep, raise --samples, or take other "
            "questions or another --base-model"
        )
    if prepared.num_outages:
        return f"{prepared.num_outages} rows could not be judged and are left out; repeat the command to try again"
    if not prepared.kept:
        return f"no row is left, so {output} was not written; the reasons are above"
    return ""

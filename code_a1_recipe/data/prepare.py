"""``code-a1 data prepare``: public problem sets -> a checked training set in this project's columns. Resumable."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import SandboxConfigError, SandboxUnavailableError

from ..questions import QuestionError, RowReader
from .data_card import Preparation, summary_text
from .decontaminate import OverlapSettings
from .judged_file import JudgedFile, JudgedFileError
from .options import command_line
from .outputs import card_path, dropped_path, judged_path, write_outputs
from .pipeline import PrepareSettings, prepare_questions
from .reading import eval_reader, read_eval_sets, read_inputs, readers_of
from .reference_checks import limits_for
from .sources import Source, SourceError, open_source

DONE, BROKE_OFF, REFUSED, INTERRUPTED = 0, 1, 2, 130


class PrepareError(ValueError):
    """The command line cannot be followed. Says which rule, where, and what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    sources: list[Source]
    readers: list[RowReader]
    eval_sources: list[Source]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 written, 1 broke off or outages are left, 2 refused before any work, 130 interrupted."""
    options = command_line().parse_args(arguments)
    command = ["code-a1", "data", "prepare", *(sys.argv[1:] if arguments is None else arguments)]
    started = time.monotonic()
    with warnings.catch_warnings():
        for kind in (SyntaxWarning, DeprecationWarning):  # of the data's programs, which are parsed here
            warnings.simplefilter("ignore", kind)
        try:
            settings = settings_of(options)
            _check_output(options.output, [*options.inputs, *options.against], overwrite=options.overwrite)
            inputs = _open_inputs(options)
            judged = JudgedFile(judged_path(options.output), settings=settings.of_judging())
        except (PrepareError, SourceError, QuestionError, JudgedFileError, SandboxConfigError) as error:
            return _told(f"error: {error}", REFUSED)
        except KeyboardInterrupt:
            return _told("\ninterrupted; nothing was done yet", INTERRUPTED)
        with judged:
            return _run(options, settings, inputs, judged, command=command, started=started)


def _run(
    options: argparse.Namespace,
    settings: PrepareSettings,
    inputs: _Inputs,
    judged: JudgedFile,
    *,
    command: Sequence[str],
    started: float,
) -> int:
    try:
        eval_sets = read_eval_sets(inputs.eval_sources, dict(options.against_columns))
        read = read_inputs(inputs.sources, inputs.readers, limit=settings.limit)
        prepared = prepare_questions(read, eval_sets, judged, settings, num_workers=options.workers)
        preparation = Preparation(
            output=options.output,
            command=command,
            settings=settings,
            sources=inputs.sources,
            eval_sources=inputs.eval_sources,
            read=read,
            eval_sets=eval_sets,
            prepared=prepared,
            seconds=time.monotonic() - started,
        )
        written = write_outputs(preparation)
    except (QuestionError, SandboxConfigError) as error:
        return _told(f"error: {error}", REFUSED)
    except SandboxUnavailableError as error:
        go_on = f"{len(judged)} references are judged; try `python -m sandbox check`, then repeat the command to go on"
        return _told(f"error: the sandbox is down: {error}. {go_on}", BROKE_OFF)
    except OSError as error:
        return _told(f"error: {options.output}: {error}. Make room, then repeat the command to go on", BROKE_OFF)
    except KeyboardInterrupt:
        return _told(f"\ninterrupted; {len(judged)} references are judged; repeat the command to go on", INTERRUPTED)
    sys.stdout.write(summary_text(preparation))
    sys.stdout.write(f"wrote {', '.join(str(path) for path in written)}\n")
    if not prepared.kept:
        return _told(f"error: no row is left, so {options.output} was not written; the reasons are above", BROKE_OFF)
    if prepared.num_outages:
        told = f"{prepared.num_outages} references could not be run and are left out"
        return _told(f"error: {told}; repeat the command with --overwrite to try them again", BROKE_OFF)
    return DONE


def settings_of(options: argparse.Namespace) -> PrepareSettings:
    """What the command line decides.

    Raises:
        SandboxConfigError: a limit is out of its range.
    """
    limits_for(options.slow_seconds)
    return PrepareSettings(
        overlap=OverlapSettings(ngram=options.ngram, threshold=options.duplicate_threshold),
        slow_seconds=options.slow_seconds,
        min_tests=options.min_tests,
        drop_tests=options.drop_tests,
        limit=options.limit,
        tier=options.tier,
        allow_missing=tuple(options.allow_missing),
    )


def _check_output(output: Path, inputs: Sequence[str], *, overwrite: bool) -> None:
    if not output.name.endswith(".parquet"):
        raise PrepareError(f"--output {output}: must end in .parquet, the format that is written")
    if output.is_dir():
        raise PrepareError(f"--output {output}: is a folder; name a file")
    written = {path.resolve() for path in (output, card_path(output), dropped_path(output), judged_path(output))}
    for text in inputs:
        if Path(text).resolve() in written:
            raise PrepareError(f"--output {output}: would overwrite the input {text}; choose another output")
    if output.exists() and not overwrite:
        raise PrepareError(
            f"--output {output}: exists; --overwrite replaces it (references that {judged_path(output).name} knows "
            "are not judged again), or choose another"
        )


def _open_inputs(options: argparse.Namespace) -> _Inputs:
    sources = [open_source(text) for text in dict.fromkeys(options.inputs)]
    readers = readers_of(sources, adapter=options.adapter, columns=dict(options.columns) or None)
    eval_sources = [open_source(text) for text in dict.fromkeys(options.against)]
    for source in eval_sources:
        eval_reader(source, dict(options.against_columns))
    return _Inputs(sources=sources, readers=readers, eval_sources=eval_sources)


def _told(message: str, status: int) -> int:
    sys.stderr.write(f"{message}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())

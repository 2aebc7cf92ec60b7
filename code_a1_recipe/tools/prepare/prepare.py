"""``code-a1 data prepare``: public problem sets -> a checked training set in this project's columns. Resumable.

Rows that overlap with an evaluation set go first, since their references need not be judged then. Duplicates go late,
so that of two rows the first *good* one stays. A base model is asked last: its programs cost most.
"""

import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path

import msgspec

from ...algorithm.question import Question
from ...files import json_lines, write_whole
from ...jobs.confinement import judge_confined
from ...jobs.jsonl_store import JsonlStore, files_of
from ...jobs.outputs import Report, check_outputs, note_work
from ...jobs.progress import Progress
from ...runs.folder import versions
from ...stats.tables import counts_text
from .dataset_card import dataset_card, write_parquet
from .duplicates import check_duplicates
from .frontier import Frontier
from .options import PrepareOptions
from .overlap import EvalIndex
from .reading import Source, open_sources, read_eval_sets, read_inputs
from .references import JudgedReference, content_key, decide, judged_row
from .rows import Dropped, Entry, Reason, Stage
from .texts import common_phrases

_PACKAGES = ("code-a1-recipe", "datasketch", "pyarrow", "datasets")


def prepare(options: PrepareOptions, *, command: Sequence[str]) -> Report:
    """Write the training set, its card and the list of what was left out; a repeated call resumes.

    Args:
        options: see there.
        command: the command line, for the card.

    Raises:
        InputError, SandboxConfigError: something cannot be used; nothing was written.
        OutageError: the sandbox or the base model is down; what was found so far is kept.
    """
    options.check()
    check_outputs(
        options.outputs,
        inputs=map(Path, (*options.inputs, *options.against)),
        overwrite=options.overwrite,
        work_files=files_of(options.work_output),
    )
    _ = options.confinement  # refused before any work
    preparation = Preparation(
        options=options,
        sources=open_sources(options.inputs, adapter=options.adapter, columns=options.columns),
        eval_sources=open_sources(options.against, columns=options.against_columns, is_evaluation=True),
        frontier=Frontier.of(options) if options.base_model.is_named else None,
    )
    with (
        warnings.catch_warnings(action="ignore"),  # those of the compiler, of the data's programs
        JsonlStore(options.work_output, settings=options.of_judging()) as store,
    ):
        preparation.run(store)
    preparation.write(command)
    failure = preparation.failure()
    note_work(options.outputs, is_finished=not failure)
    lines = [
        f"{options.output}: {len(preparation.kept)} of {preparation.num_rows} rows kept",
        f"left out: {counts_text(preparation.left_out) or 'none'}",
        f"sources, tests and overlaps: {options.card_output}",
    ]
    if preparation.frontier:
        lines.append(preparation.frontier.rates)
    return Report(text="\n".join(lines), failure=failure)


@dataclass(kw_only=True)
class Preparation:
    """The rows of one command, stage by stage."""

    options: PrepareOptions
    sources: Sequence[Source]
    eval_sources: Sequence[Source]
    frontier: Frontier | None
    eval_questions: list[Question] = field(default_factory=list)
    unreadable: Counter[str] = field(default_factory=Counter)
    """Rows of evaluation sets without a prompt that can be read, by source."""
    kept: list[Entry] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        return len(self.kept) + len(self.dropped)

    @property
    def left_out(self) -> Counter[str]:
        """Rows that were left out, by reason."""
        return Counter(row.reason for row in self.dropped)

    def run(self, store: JsonlStore) -> None:
        """Decide on every row; what was judged before is not judged again.

        Args:
            store: keeps the facts of references as they come.

        Raises:
            InputError: an evaluation set or the base model cannot be used.
            SandboxConfigError: programs cannot be confined on this machine.
            OutageError: the sandbox or the base model is down.
        """
        self.eval_questions, self.unreadable = read_eval_sets(self.eval_sources)
        self._sift("read", read_inputs(self.sources, limit=self.options.limit))
        phrases = common_phrases([entry.question.prompt for entry in self.kept])
        if self.eval_questions:
            self._sift("overlap", EvalIndex(self.eval_questions, phrases).check(self.kept))
        self._sift("tests", self._with_enough_tests())
        self._sift("decide", self._decided(store))
        self._sift("duplicates", check_duplicates(self.kept, phrases))
        if self.frontier:
            self._sift("frontier", list(self.frontier.check(self.kept)))  # it shows its own progress
        order = [source.name for source in self.sources]
        self.dropped.sort(key=lambda row: (order.index(row.file), row.row))

    def _sift(self, what: str, stage: Stage) -> None:
        """Take up the rows that a stage lets stay, and note the others."""
        rows = list(Progress(what, stage, total=len(self.kept) or None, unit="row"))
        self.kept = [row for row in rows if isinstance(row, Entry)]
        self.dropped += [row for row in rows if isinstance(row, Dropped)]

    def _with_enough_tests(self) -> Stage:
        """A row that cannot have enough tests, whatever the judge says of them, needs no judging."""
        for entry in self.kept:
            num_tests = len(set(entry.question.tests))
            if num_tests >= self.options.min_tests:
                yield entry
            else:
                detail = f"{num_tests} tests of the form assert f(literals) == literal"
                yield entry.dropped(Reason.TOO_FEW_TESTS, detail)

    def _decided(self, store: JsonlStore) -> Stage:
        """Each row with the first of its readings that holds, or why the first one does not."""
        decided: dict[int, Entry | Dropped] = {}
        asked = dict(enumerate(self.kept))
        while asked:
            self._judge(store, asked.values())
            further = {}
            for place, entry in asked.items():
                judged = msgspec.convert(store.row(content_key(entry.question)), JudgedReference)
                found = decide(entry, judged, self.options)
                # Another reading may hold; after an outage a repeated command asks the same one again.
                fails = isinstance(found, Dropped) and found.reason != Reason.OUTAGE
                if not fails or place not in decided:
                    decided[place] = found
                if fails and entry.others:
                    further[place] = replace(entry, question=entry.others[0], others=entry.others[1:])
            asked = further
        return decided.values()

    def _judge(self, store: JsonlStore, entries: Iterable[Entry]) -> None:
        judge_confined(
            store,
            list({content_key(entry.question): entry.question for entry in entries}.values()),
            partial(judged_row, with_controls=self.options.control),
            key=content_key,
            confinement=self.options.confinement,
            num_workers=self.options.workers,
            unit="reference",
        )

    # ------------------------------ results ------------------------------

    def failure(self) -> str:
        """Why the work is not finished; empty where it is."""
        if num_outages := self.left_out[Reason.OUTAGE]:
            return f"{num_outages} rows could not be judged and are left out; repeat the command to try again"
        if self.kept:
            return ""
        hint = "the reasons are above"
        if self.frontier:
            hint = "widen --keep, raise --samples, or take other questions or another --base-model"
        return f"no row is left, so {self.options.output} was not written; {hint}"

    def _overlaps(self) -> Iterator[tuple[object, ...]]:
        """For each evaluation set, its questions, those that were met, and the rows that met one."""
        names = {(question.data_source, question.id): None for question in self.eval_questions}
        for set_name, number in Counter(set_name for set_name, _ in names).items():
            met = [{one.id for one in row.overlaps if one.set_name == set_name} for row in self.dropped]
            yield set_name, number, len(set().union(*met)), sum(map(bool, met))

    def write(self, command: Sequence[str]) -> None:
        """Write dropped rows, card and, unless nothing was kept, the questions, each whole.

        Raises:
            OSError: no space, or no permission.
        """
        options = self.options
        write_whole(options.dropped_output, json_lines(map(msgspec.to_builtins, self.dropped)))
        removed = Counter(reason for entry in self.kept for reason in entry.removed_tests)
        card = dataset_card(
            Path(__file__).with_name("data_card.md.jinja"),
            {"train": options.output},
            num_rows=Counter(entry.file for entry in self.kept) + Counter(row.file for row in self.dropped),
            removed=counts_text(removed) or "none",
            overlaps=list(self._overlaps()),
            command=shlex.join(command),
            preparation=self,
            versions=dict(versions(_PACKAGES)),
        )
        write_whole(options.card_output, card)
        if self.kept:
            self._write_questions()

    def _write_questions(self) -> None:
        """Questions in the native columns, in their order, and a base model's rates where it was asked."""
        import pyarrow  # here: `--help` does without

        text = pyarrow.string()
        schema = {column.name: text if column.type is str else pyarrow.list_(text) for column in fields(Question)}
        if self.frontier:
            schema |= {"base_pass_rate": pyarrow.float64(), "base_samples": pyarrow.int64(), "base_model": text}
        rows = [asdict(entry.question) | entry.rates for entry in self.kept]
        write_parquet(self.options.output, rows, pyarrow.schema(schema))

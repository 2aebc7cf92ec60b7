"""``code-a1 data prepare``: makes a checked training set in this project's columns out of public problem sets.

The order of the checks saves work. Rows that overlap with an evaluation set are dropped first, so that their references
need not be judged. Duplicates are dropped after judging, so that the first *good* row stays. The rates of a model come
last, so that their distribution counts only questions that passed all other checks.
"""

import shlex
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path

import msgspec

from ...algorithm.question import Question
from ...files import json_lines, write_whole
from ...jobs.confinement import judge_confined
from ...jobs.jsonl_store import JsonlStore
from ...jobs.outputs import Report, note_work
from ...jobs.progress import Progress
from ...runs.folder import versions
from ...stats.tables import counts_text
from .dataset_card import dataset_card, write_parquet
from .options import PrepareOptions
from .overlap import EvalIndex, check_duplicates
from .rates import USUAL_KEEP, Rates
from .reading import Source, open_sources, read_eval_sets, read_inputs
from .references import JudgedReference, content_key, decide, judged_row
from .rows import Dropped, Entry, Reason, Stage

_PACKAGES = ("code-a1-recipe", "pyarrow", "datasets")


def prepare(options: PrepareOptions, *, command: Sequence[str]) -> Report:
    """Write the training set, its card and the list of dropped rows. A repeated call resumes.

    Args:
        options: the options of the command.
        command: the command line, for the card.

    Raises:
        InputError, SandboxConfigError: an input or an option cannot be used; nothing was written.
        OutageError: the sandbox is down; all results so far are kept.
    """
    options.check(map(Path, (*options.inputs, *options.against)))
    _ = options.confinement  # raises SandboxConfigError before any work starts
    preparation = Preparation(
        options=options,
        sources=open_sources(options.inputs, adapter=options.adapter, columns=options.columns),
        eval_sources=open_sources(options.against, columns=options.against_columns, is_evaluation=True),
        rates=Rates.read(options.rates, options.keep or USUAL_KEEP) if options.rates else None,
    )
    with (
        warnings.catch_warnings(action="ignore"),  # Python warns while it compiles the programs of the data
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
    if preparation.rates:
        lines.append(preparation.rates.summary)
    return Report(text="\n".join(lines), failure=failure)


@dataclass(kw_only=True)
class Preparation:
    """The state of one command: the rows that were kept and dropped so far."""

    options: PrepareOptions
    sources: Sequence[Source]
    eval_sources: Sequence[Source]
    rates: Rates | None
    eval_questions: list[Question] = field(default_factory=list)
    unreadable: Counter[str] = field(default_factory=Counter)
    """Evaluation set -> number of rows whose prompt cannot be read."""
    kept: list[Entry] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        return len(self.kept) + len(self.dropped)

    @property
    def left_out(self) -> Counter[str]:
        """Reason -> number of dropped rows."""
        return Counter(row.reason for row in self.dropped)

    def run(self, store: JsonlStore) -> None:
        """Decide on every row. Rows in ``store`` are not judged again.

        Args:
            store: gets the facts about each reference as soon as they are known.

        Raises:
            InputError: an evaluation set cannot be used.
            SandboxConfigError: programs cannot be confined on this machine.
            OutageError: the sandbox is down.
        """
        self.eval_questions, self.unreadable = read_eval_sets(self.eval_sources)
        self._sift("read", read_inputs(self.sources, limit=self.options.limit))
        if self.eval_questions:
            self._sift("overlap", EvalIndex(self.eval_questions).check(self.kept))
        self._sift("tests", self._with_enough_tests())
        self._sift("decide", self._decided(store))
        self._sift("duplicates", check_duplicates(self.kept))
        if self.rates:
            self._sift("rates", self.rates.check(self.kept))
        order = [source.name for source in self.sources]
        self.dropped.sort(key=lambda row: (order.index(row.file), row.row))

    def _sift(self, what: str, stage: Stage) -> None:
        """Run a stage on the kept rows, and separate its results into kept and dropped rows."""
        total = len(self.kept) or None
        kept = []
        for row in Progress(what, stage, total=total, unit="row"):
            if isinstance(row, Entry):
                kept.append(row)
            else:
                self.dropped.append(row)
        self.kept = kept

    def _with_enough_tests(self) -> Stage:
        """Before any test is judged, drop the rows that have too few tests."""
        for entry in self.kept:
            num_tests = len(set(entry.question.tests))
            if num_tests >= self.options.min_tests:
                yield entry
            else:
                detail = f"{num_tests} tests of the form assert f(literals) == literal"
                yield entry.dropped(Reason.TOO_FEW_TESTS, detail)

    def _decided(self, store: JsonlStore) -> Stage:
        """For each row, keep the first reading that passes the checks. If no reading passes, report the first fault.

        A reading is one of several ways to understand a row, see ``Entry.others``.
        """
        decided: dict[int, Entry | Dropped] = {}
        undecided = dict(enumerate(self.kept))
        while undecided:
            # Rows with the same reference and tests have the same key and are judged once.
            questions = {content_key(entry.question): entry.question for entry in undecided.values()}
            judge_confined(
                store,
                list(questions.values()),
                partial(judged_row, with_controls=self.options.control),
                key=content_key,
                confinement=self.options.confinement,
                num_workers=self.options.workers,
                unit="reference",
            )
            next_readings = {}
            for place, entry in undecided.items():
                judged = msgspec.convert(store.row(content_key(entry.question)), JudgedReference)
                decision = decide(entry, judged, self.options)
                # After an outage, nothing is known about this reading. A repeated command judges the reading again.
                fails = isinstance(decision, Dropped) and decision.reason != Reason.OUTAGE
                if not fails or place not in decided:
                    decided[place] = decision
                if fails and entry.others:
                    question, *others = entry.others
                    next_readings[place] = replace(entry, question=question, others=tuple(others))
            undecided = next_readings
        return decided.values()

    # ------------------------------ results ------------------------------

    def failure(self) -> str:
        """Say why the work is not finished. Returns an empty text if the work is finished."""
        if num_outages := self.left_out[Reason.OUTAGE]:
            return f"{num_outages} rows could not be judged and are left out; repeat the command to judge them again"
        if self.kept:
            return ""
        hint = "see the reasons above"
        if self.rates:
            hint = "widen --keep, or name other questions or another evaluation"
        return f"no row is left, so {self.options.output} was not written; {hint}"

    def _overlaps(self) -> Iterator[tuple[object, ...]]:
        """Yield a row of the card for each evaluation set: its name and three numbers.

        The numbers count the set's questions, the set's questions that rows repeat, and the rows that repeat one of
        them.
        """
        ids_of_set = defaultdict(set)
        for question in self.eval_questions:
            ids_of_set[question.data_source].add(question.id)
        for set_name, ids in ids_of_set.items():
            repeated = set()
            num_removed = 0
            for row in self.dropped:
                ids_of_row = {overlap.id for overlap in row.overlaps if overlap.set_name == set_name}
                repeated |= ids_of_row
                num_removed += bool(ids_of_row)
            yield set_name, len(ids), len(repeated), num_removed

    def write(self, command: Sequence[str]) -> None:
        """Write the dropped rows and the card. If a row was kept, write the questions too.

        Each file is written whole or not at all.

        Raises:
            OSError: a file cannot be written.
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
        """Write the questions in the native columns."""
        import pyarrow  # imported here, so that `--help` does not wait for it

        text = pyarrow.string()
        schema = {column.name: text if column.type is str else pyarrow.list_(text) for column in fields(Question)}
        rows = [asdict(entry.question) for entry in self.kept]
        write_parquet(self.options.output, rows, pyarrow.schema(schema))

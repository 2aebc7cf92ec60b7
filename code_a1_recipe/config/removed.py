"""Keys, commands and options that earlier releases had. A text for each says what takes its place.

`config/keys.py` reads `REMOVED_KEYS`, and the command line reads the other two tables.
"""

from collections.abc import Iterator

from omegaconf import DictConfig, OmegaConf

_FOLLOW = "`code-a1 watch RUN` follows a run in the terminal; in a browser TensorBoard and wandb do"
_OWN_CALLS = "only the calls of the tests are made; leave it out"
_CHOSEN = "write another program with `code-a1 select`, or yourself, and name it with --reference"
_UPLOAD = "`hf upload OWNER/NAME FILE_OR_FOLDER` uploads what was written, with its card as README.md"
_DATES = (
    "`python -m lcb_runner.evaluation.compute_scores --eval_all_file FILE --start_date DATE --end_date DATE` scores "
    "the problems of some contests"
)

REMOVED_KEYS: dict[str, str] = {
    "curriculum": "questions come in verl's order; episode.max_refills replaces those whose programs earn the same",
    "episode.barrier": "programs, suites and verdicts always stream; leave it out",
    "episode.repair_reward": "repair turns have left; for another rule write a reward "
    "function and name it by rewards.code.path",
    "episode.share_suites": "each program has suites of its own; leave it out",
    "mistake_book.counting": "passed replays are subtracted before failures are added, as in the paper's release; "
    "leave it out",
    "mistake_book.max_cases_per_question": "the book has no bound, as in the paper; leave it out",
    "mistake_book.max_lessons": "hindsight.max_lessons says how many lessons are kept",
    "mistake_book.max_size": "the book has no bound, as in the paper; leave it out",
    "mistake_book.sampler": "the most frequent cases are replayed, as in the paper; leave it out",
    "opponents": "programs and suites of earlier policies are met no more; the Mistake Book keeps what broke programs",
    "selection.part": "groups are selected by the whole reward of their suites; for another rule write a reward "
    "function and name it by rewards.test.path",
}
"""Replacements by dotted key. Each replacement is the second half of a message's sentence."""

REMOVED_COMMANDS: dict[str, str] = {
    "experiment": "`python -m studies.experiment run FILE` runs arms and seeds, in a checkout of the repository",
    "micro": "`code-a1 cpu` makes its tiny models and questions itself; `code-a1 eval` measures models",
    "rollouts": "`code-a1 data inspect RUN --outcome NAME` shows programs of a run",
    "eval mutants": "`code-a1 eval test FILE --own-tests --output FOLDER` measures a file's own tests by mutants",
    "eval run": "`code-a1 validate RUN --output FOLDER` runs a run's own validation again",
    "eval table": "`code-a1 eval compare FIRST SECOND` shows two evaluations and their difference",
}
"""Replacements by command, such as `eval table`."""

REMOVED_OPTIONS: dict[str, str] = {
    "attack --mutate": _OWN_CALLS,
    "attack --no-mutate": _OWN_CALLS,
    "attack --max-calls": _OWN_CALLS,
    "attack --entry": "all public functions and classes of the file are tested; leave it out",
    "attack --candidates": _CHOSEN,
    "attack --cases": "as many asserts as in the run, or 8, are asked for; `--num-suites` asks for more suites",
    "attack --code-endpoint": _CHOSEN,
    "attack --code-model": _CHOSEN,
    "attack --max-bugs": "every contradiction is shown; leave it out",
    "attack --num-candidates": _CHOSEN,
    "attack --prompt": "a run's Test LLM is asked by the run's own template, any other by chat_v2; leave it out",
    "attack --workers": "there is a judge for each core; leave it out",
    "data inspect --candidate": "all programs of a step are shown; leave it out",
    "data prepare --drop-tests": "a row with a test that its reference contradicts goes; take the test out of the file",
    "data prepare --public": _UPLOAD,
    "data prepare --push": _UPLOAD,
    "data sft --cpu": "the card has the command that trains, and what takes its place without a GPU; leave it out",
    "data sft --model": "the card has the command that trains: name the model there",
    "data sft --only-breaking": "suites that break the program shown come first; --max-per-question bounds the others",
    "data sft --run": "demonstrations are made of question files, with --mutants of small mistakes in their references",
    "eval compare --output": "the table is Markdown in a pipe: `code-a1 eval compare FIRST SECOND > FILE.md`",
    "eval code --k": "pass@k is given for 1, 5, 10 and all --samples",
    "eval code --since": _DATES,
    "eval code --until": _DATES,
    "eval code --export-evalplus": "the samples are always written, to evalplus_samples.jsonl in --output",
    "eval test --buggy-programs": "a run's validation measures suites by buggy programs; mutants stand for them here",
    "eval test --k": "figures are given for the first 1, 2, 5 and all --tests",
    "eval test --wrong-programs": "a run's validation measures suites by buggy programs; mutants stand for them here",
    "eval test --suites": "a function gets one suite; evaluate with another --seed for another",
    "eval test --mutants-folder": "mutants lie in the folder mutants of --output",
    "eval test --no-coverage": "coverage is always measured; leave it out",
    "eval test --written": "`tools.test_quality.metrics.measure_function` measures suites of another tester",
    "export --public": _UPLOAD,
    "export --push": _UPLOAD,
    "harvest --max-mutants": "at most 200 mutants of a reference are made; leave it out",
    "harvest --min-tests": "a question keeps one test at least; leave it out",
    "harvest --no-minimise": "the tests are always minimised; leave it out",
    "harvest --overwrite": "a repeated command resumes; name another --output, or remove it",
    "harvest --push": _UPLOAD,
    "report --port": _FOLLOW,
    "report --serve": _FOLLOW,
    "score --columns": "`code-a1 data prepare` writes questions of any columns in the project's own",
    "score --role": "a row with a `candidate` holds suites, any other row programs; leave it out",
    "select --repair": "`--samples` asks for more programs; `arm=repair` trains a model to mend its own",
}
"""Replacements by command and option, such as `report --serve`."""

_NOT_SET = object()


def refused_keys(tree: DictConfig) -> Iterator[tuple[str, str]]:
    """Each removed key that a configuration still sets, with the message about it."""
    for key, replacement in REMOVED_KEYS.items():
        value = OmegaConf.select(tree, key, default=_NOT_SET)
        if value is not _NOT_SET:
            yield key, f"{key}={value} was removed: {replacement}"


def drop_removed_keys(tree: DictConfig) -> None:
    """Drop removed keys from the configuration that an earlier release recorded, so that its run can be read."""
    for key, _ in list(refused_keys(tree)):
        block, _, name = key.rpartition(".")
        OmegaConf.select(tree, block).pop(name)

"""``python -m examples.crossplay``: all saved steps of a run's Code LLM against all saved steps of its Test LLM."""

import sys
from collections.abc import Sequence

from code_a1_recipe.cli import status
from code_a1_recipe.cli.declared import with_options
from code_a1_recipe.errors import InputError
from code_a1_recipe.jobs.outputs import Report
from code_a1_recipe.training.checkpoint.folder import CHECKPOINTS, saved_steps
from examples.arguments import run_study, study_app
from examples.recorded_pair import RecordedPair

from .matches import CrossPlay, play
from .options import CrossPlayOptions
from .report import Findings, write_results

app = study_app()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line; see ``code_a1_recipe.cli.status``."""
    return run_study(app, arguments, name="examples.crossplay")


@app.command()
@with_options
def crossplay(options: CrossPlayOptions) -> None:
    """Let all saved steps of a run's Code LLM meet all saved steps of its Test LLM.

    They meet on the run's held-out questions, with the run's own prompts, sampling and judge. Does the newest one also
    win against older opponents, or has it forgotten how? Shows who wins how often, ratings over training, and signs of
    forgetting and cycling; writes a picture (`crossplay.png`), tables (`table.*`, `ratings.*`) and `crossplay.json`.

    `python -m examples.crossplay outputs/my-run --output outputs/crossplay`

    `python -m examples.crossplay outputs/my-run --output outputs/crossplay --steps 0 --steps 40 --questions 50`

    Models are loaded one at a time. A repeated command resumes; more steps, questions, candidates or suites only add to
    what is there.
    """
    status.resume(options.output, run, options)


def run(options: CrossPlayOptions) -> Report:
    """Play all matches that are missing, then write tables, figures and the picture; a repeated call resumes.

    Raises:
        InputError, SandboxConfigError: something cannot be used.
        OutageError, SandboxUnavailableError: a model or the sandbox is down; what is done is kept.
    """
    pair = RecordedPair.open(options.run)
    steps = _steps(pair, options.steps)
    cross = CrossPlay(pair=pair, questions=pair.held_out(options.questions), steps=steps, options=options)
    tally = play(cross, win=options.win)
    text = write_results(Findings.of(tally, steps=steps, win=options.win), cross)
    failure = tally.outages and (
        f"outages are left, the first one: {tally.outages[0]}; repeat the command to judge them again"
    )
    return Report(text=text, failure=failure or "")


def _steps(pair: RecordedPair, wanted: Sequence[str]) -> list[str]:
    """The steps asked for, or 0 and all that were saved; ascending.

    Raises:
        InputError: a step was not saved.
    """
    there = ["0", *map(str, saved_steps(pair.records.folder / CHECKPOINTS))]
    if odd := [step for step in wanted if step not in there]:
        raise InputError(f"{pair.records.folder} has no checkpoint of step {odd[0]}; it has {', '.join(there)}")
    return sorted(set(wanted or there), key=int)


if __name__ == "__main__":
    sys.exit(main())

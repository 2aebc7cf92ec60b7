"""The model card of an exported policy: base model, training questions, held-out figures, training command."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from omegaconf import OmegaConf

from ...errors import InputError
from ...files import file_fingerprint
from ...runs.reader import RunRecords
from ...training.checkpoint.folder import IDENTITY, Checkpoint
from ..prepare.dataset_card import card_file
from .measures import change_table, validations


def model_card(checkpoint: Checkpoint, policy: str) -> bytes:
    """Make the README.md of one policy at one step. The card says which records are missing or unreadable."""
    state = checkpoint.state()
    who = f"{policy.capitalize()} LLM"
    identity = state.get(IDENTITY) or {}
    setting = partial(OmegaConf.select, OmegaConf.create(state.get("config") or {}))
    path = str(setting(f"policies.{policy}.model.path") or setting("actor_rollout_ref.model.path") or "")
    model_hash = identity.get(f"{policy}_model", "")  # the model's id if the model is on the hub
    base = path
    if path != model_hash:
        # In the micro world, the last folder is always named "code" or "test", so the card names its parent too.
        base = "-".join(Path(path).parts[-2 if setting("micro") else -1 :])
    run = RunRecords.find(checkpoint.folder, levels=2)
    problem = "the checkpoint lies outside of its run's folder"
    changes, command, files = "", "", []
    if run:
        command = run.paths.commands()
        try:
            changes = change_table(run, until=checkpoint.step, policy=who)
            files = list(_question_files(run))
            problem = "the run did not validate this policy twice up to this step"
        except InputError as error:
            problem = f"its records cannot be read ({error})"
    front_matter = {
        "base_model": base or None,
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["code-a1", who.lower().replace(" ", "-"), "reinforcement-learning", "verl"],
    }
    return card_file(
        front_matter,
        Path(__file__).with_name("model_card.md.jinja"),
        who=who,
        state=state,
        model_hash=model_hash,
        identity=identity,
        seed=setting("data.seed"),
        model_name=f"{run.folder.name if run else 'run'}-{policy}",
        step=checkpoint.step,
        validated=validations(run, checkpoint.step) if changes and run else (),
        changes=changes,
        problem=problem,
        files=files,
        command=command,
    )


def _question_files(run: RunRecords) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the use and the present fingerprint of each file of questions.

    Raises:
        InputError: the run's configuration cannot be read.
    """
    for key, use in (("train_files", "training"), ("val_files", "held out")):
        for path in run.question_files(key):
            hashed = "the file does not exist any more"
            with contextlib.suppress(InputError):
                hashed = file_fingerprint(path).rpartition(" ")[2]
            yield path.name, use, hashed

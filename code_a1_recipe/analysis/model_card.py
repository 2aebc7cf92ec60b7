"""The model card of an exported policy: what it was trained from and on, its held-out figures, how to make it again."""

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from ..curation.dataset_card import card_path, encoded, table
from ..errors import InputError
from ..files import file_fingerprint
from ..runs.reader import RunRecords
from ..training.checkpoint.folder import IDENTITY, Checkpoint
from .measures import MEASURES, Change, changes_of, validations

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_TEMPLATE = Path(__file__).with_name("model_card.md.jinja")
_POLICIES = {"code": "Code LLM", "test": "Test LLM"}
_HELD_OUT = "held out"


def model_card(checkpoint: Checkpoint, policy: str) -> bytes:
    """The README.md of one policy at one step; records that are gone or cannot be read are said to be."""
    from huggingface_hub import ModelCard, ModelCardData

    state, who = checkpoint.state(), _POLICIES[policy]
    config, identity = state.get("config") or {}, state.get(IDENTITY) or {}
    blocks = ((config.get("policies") or {}).get(policy) or {}, config.get("actor_rollout_ref") or {})
    path = str(next((found for one in blocks if (found := (one.get("model") or {}).get("path"))), ""))
    model_hash = identity.get(f"{policy}_model", "")  # of a hub id the id itself
    # The micro world's folders are all named code and test.
    base = path if path == model_hash else "-".join(Path(path).parts[-2 if config.get("micro") else -1 :])
    run, problem = RunRecords.find(checkpoint.folder, levels=2), "the checkpoint lies outside of its run's folder"
    changes: list[Change] = []
    files: list[tuple[str, ...]] = []
    if run:
        try:
            changes = [one for one in changes_of(run, until=checkpoint.step) if MEASURES[one.measure].startswith(who)]
            files = list(_question_files(run))
            problem = "" if changes else "the run did not validate this policy twice up to this step"
        except InputError as error:
            problem = f"its records cannot be read ({error})"
    command = run.paths.commands() if run else ""
    name = f"{run.folder.name if run else 'run'}-{policy}"
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="text-generation",
        base_model=base or None,
        license=_stated_license(path) if path else None,
        tags=["code-a1", who.lower().replace(" ", "-"), "reinforcement-learning", "verl"],
        model_name=name if changes else None,
        eval_results=[_eval_result(one, files) for one in changes] or None,
    )
    card = ModelCard.from_template(
        data,
        template_str="---\n{{ card_data }}\n---\n" + _TEMPLATE.read_text(encoding="utf-8"),
        table=table,
        who=who,
        state=state,
        model_hash=model_hash,
        identity=identity,
        seed=(config.get("data") or {}).get("seed"),
        arm=_arm(command),
        model_name=name,
        step=checkpoint.step,
        validated=validations(run, checkpoint.step) if changes and run else (),
        changes=changes,
        problem=problem,
        files=files,
        command=command,
    )
    return encoded(card)


def _stated_license(base: str) -> str | None:
    """The licence in the card of a folder, or of an id of the hub in this machine's cache, if any."""
    from huggingface_hub import metadata_load, try_to_load_from_cache

    with contextlib.suppress(OSError, ValueError, yaml.YAMLError):
        card = Path(base) / "README.md"
        if not Path(base).exists():
            card = Path(str(try_to_load_from_cache(base, card.name)))
        stated = (metadata_load(card) or {}).get("license")
        return stated if isinstance(stated, str) else None
    return None


def _arm(command: str) -> str:
    """The arm that the newest command names; that of its preset where it names none."""
    newest = next((line for line in reversed(command.splitlines()) if not line.startswith("#")), "")
    if named := re.findall(r"\sarm=(\w+)", newest):
        return str(named[-1])
    files = re.findall(r"\s([^\s=]+\.ya?ml)\b", newest)
    return f"as {files[0]} says" if files else "code_a1" if newest else "not recorded"


def _question_files(run: RunRecords) -> Iterator[tuple[str, ...]]:
    """Rows of the files as they are now: name, use, number, fingerprint, and what the card beside it says first.

    Raises:
        InputError: the run's configuration cannot be read.
    """
    for key, use in (("train_files", "training"), ("val_files", _HELD_OUT)):
        for path in run.question_files(key):
            lead = ""
            with contextlib.suppress(OSError, UnicodeDecodeError):
                text = card_path(path).read_text(encoding="utf-8").partition("\n# ")[2]
                lead = text.partition("\n\n")[2].partition("\n\n")[0].removesuffix(" Made by")
            try:
                number, hashed = str(len(run.questions_in(path))), file_fingerprint(path).rpartition(" ")[2]
            except InputError:
                number, hashed = "?", "not there any more"
            yield path.name, use, number, hashed, lead


def _eval_result(change: Change, files: list[tuple[str, ...]]) -> "EvalResult":
    from huggingface_hub import EvalResult

    held_out = next((name for name, use, *_ in files if use == _HELD_OUT), "held-out questions")
    after = change.after
    bounds = [round(one, 4) for one in (after.low, after.high) if math.isfinite(one)]
    return EvalResult(
        task_type="text-generation",
        dataset_type=held_out,
        dataset_name=f"{held_out}, {after.num_values} questions",
        metric_type=change.measure,
        metric_name=MEASURES[change.measure],
        metric_value=round(after.value, 4),
        metric_args={"interval_95": bounds} if bounds else None,
    )

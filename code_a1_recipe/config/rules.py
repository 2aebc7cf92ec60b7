"""Rules about values that depend on one another. The bounds of a single value are at its field.

A rule yields a message for each violation. Rules are checked once every value is within its bounds.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from ..algorithm.settings import FUSION, RecipeSettings
from ..errors import SettingsError
from ..extensions.scripted_tester import find_scripted_tester
from .run_config import SEPARATE, RunConfig

Rule = Callable[[RunConfig], Iterable[str]]

_SHARED_ATTENTION = "flash_attention_2"
"""The attention through which verl passes the parts of a sequence. Others attend only within a device's part."""
_MIN_OBJECT_STORE = 75 << 20
"""Smallest size in bytes of the object store with which Ray starts."""


def groups_per_step(config: RunConfig) -> dict[str, int]:
    """Count the GRPO groups that each policy trains on in a step, if no group is masked."""
    questions, selection = config.data.train_batch_size, config.selection
    per_question = config.episode.num_candidates if selection.name == "all" else selection.update_n
    suites = questions * (per_question + config.learns_in_hindsight) if config.episode.num_suites else 0
    return {"code": questions + suites} if config.self_play else {"code": questions, "test": suites}


def _schedule(config: RecipeSettings) -> Iterator[str]:
    if not config.schedule.code_every and not config.schedule.test_every:
        yield "schedule.code_every and schedule.test_every are both 0: nothing would train; set one above 0"


def _selection(config: RecipeSettings) -> Iterator[str]:
    most, count = config.episode.num_candidates, config.selection.update_n
    if count > most:
        yield f"selection.update_n must be at most episode.num_candidates = {most}, got {count}"


def _must_be_off(config: RecipeSettings, why: str, *keys: str) -> Iterator[str]:
    """Yield a message for each key whose value is neither 0 nor false."""
    for key in keys:
        if value := attrgetter(key)(config):
            yield f"{key} must be {'false' if value is True else 0} {why}, got {value}"


def _hindsight(config: RunConfig) -> Iterator[str]:
    if config.self_play or config.prompts.black_box:
        yield from _must_be_off(config, "where the Test LLM is not shown a program", "hindsight.weight")
    if config.algorithm.rollout_correction.bypass_mode:
        key = "algorithm.rollout_correction.bypass_mode"
        why = f"with {key}=true (no server sampled a lesson and knows its probability)"
        yield from _must_be_off(config, why, "hindsight.weight")


def _given_tests(config: RecipeSettings) -> Iterator[str]:
    why = f"with rewards.code_tests={config.rewards.code_tests}"
    if not config.rewards.uses_given_tests:
        if config.episode.num_suites == 0:
            yield f"episode.num_suites must be at least 2 {why}, got 0"
        return
    yield from _must_be_off(
        config,
        f"{why} (no Test LLM takes part)",
        "episode.num_suites",
        "validation.num_suites",
        "validation.num_buggy_program_suites",
        "schedule.test_every",
        "self_play",
    )


def _user_files(config: RunConfig) -> Iterator[str]:
    yield from config.prompts.problems()
    yield from config.rewards.problems()
    yield from config.extension_problems()


def _scripted_tester(config: RecipeSettings) -> Iterator[str]:
    if config.episode.tester is None:
        return
    why = f"with episode.tester={config.episode.tester} (no Test LLM takes part)"
    yield from _must_be_off(config, why, "schedule.test_every", "self_play")
    try:
        find_scripted_tester(config.episode.tester)
    except SettingsError as error:
        yield str(error)


def _self_play(config: RecipeSettings) -> Iterator[str]:
    if not config.self_play:
        return
    episode, schedule = config.episode, config.schedule
    if episode.num_suites != episode.num_candidates:
        size = f"episode.num_candidates = {episode.num_candidates}"
        yield f"episode.num_suites must be {size} with self_play (groups of one size), got {episode.num_suites}"
    if not config.prompts.black_box:
        yield "prompts.black_box must be true with self_play (a model would agree with its own program), got False"
    if schedule.test_every != schedule.code_every:
        every = f"schedule.code_every = {schedule.code_every}"
        yield f"schedule.test_every must be {every} with self_play (one model), got {schedule.test_every}"


def _sandbox(config: RecipeSettings) -> Iterator[str]:
    sandbox = config.sandbox
    runner = f"with sandbox.runner={sandbox.runner}"
    if sandbox.runner != FUSION:
        if sandbox.url is not None:
            yield f"sandbox.url must be null {runner}, got {sandbox.url!r}; it belongs to sandbox.runner=fusion"
        return
    if not sandbox.url:
        yield f"sandbox.url must be the address of the service {runner}, got {sandbox.url!r}; give http://host:port"
    for key, value in (("tier", sandbox.tier), ("allow_missing", sandbox.allow_missing)):
        if value:
            yield f"sandbox.{key} must be left out {runner}, where the service confines programs, got {value!r}"


def _keep_best(config: RunConfig) -> Iterator[str]:
    best = config.checkpoint.keep_best
    for key in ("save_freq", "test_freq"):
        frequency = getattr(config.trainer, key)
        if best is not None and frequency <= 0:
            need = f"above 0 with checkpoint.keep_best={best}, which needs steps that are validated and saved"
            yield f"trainer.{key} must be {need}, got {frequency}"


def _checkpoints(config: RunConfig) -> Iterator[str]:
    for name in config.policy_names:
        saved = config.policy(name).actor.checkpoint.save_contents
        if missing := [part for part in ("model", "optimizer", "extra") if part not in saved]:
            need = "a resumed run would go on without; `code-a1 export` writes the model alone"
            yield f"policies.{name}.actor.checkpoint.save_contents must hold {', '.join(missing)}, got {saved}: {need}"


def _policies(config: RunConfig) -> Iterator[str]:
    for name in config.policy_names:
        key, rollout = f"policies.{name}.rollout", config.policy(name).rollout
        if rollout.name != f"vllm_{name}":
            yield f"{key}.name must be 'vllm_{name}', got {rollout.name!r}; leave it out"
        source = {"code": "num_candidates", "test": "num_suites"}[name]
        size = getattr(config.episode, source)
        if rollout.n != size:
            yield f"{key}.n must be episode.{source} = {size}, got {rollout.n}; set episode.{source} instead"
        prompt, response, limit = rollout.prompt_length, rollout.response_length, rollout.max_model_len
        length = prompt + response
        if limit is not None and length > limit:
            tokens = f"{prompt} + {response} = {length} tokens"
            yield f"{key}: prompt_length + response_length = {tokens} exceed max_model_len {limit}"
        actor = config.policy(name).actor
        budget = actor.ppo_max_token_len_per_gpu or length
        if actor.use_dynamic_bsz and budget * config.sequence_parts(name) < length:
            need = f"at least prompt_length + response_length = {length} or null"
            yield f"policies.{name}.actor.ppo_max_token_len_per_gpu must be {need}, got {budget}"


def _models(config: RunConfig) -> Iterator[str]:
    for name in config.policy_names:
        model, parts = config.for_policy(name).actor_rollout_ref.model, config.sequence_parts(name)
        if rank := config.policy(name).model.lora.get("rank"):
            need = f"which FSDP does not read: all weights would train; set model.lora_rank={rank}"
            yield f"policies.{name}.model.lora.rank must be left out, got {rank}, {need}"
        attention = model.override_config.get("attn_implementation")
        key = f"policies.{name}.actor.fsdp_config.ulysses_sequence_parallel_size"
        if config.num_devices(name) % parts:
            yield f"{key} must divide the {config.num_devices(name)} devices, got {parts}"
        if parts > 1 and attention != _SHARED_ATTENTION:
            need = f"override_config.attn_implementation={_SHARED_ATTENTION}, got {attention}"
            yield f"{key} must be 1, got {parts}: devices share a sequence only with policies.{name}.model.{need}"


def _numbers_of_verl(config: RunConfig) -> Iterator[str]:
    """Check numbers in free-form blocks, which have no fields with bounds."""
    start, bucket = config.ray_kwargs.ray_init, "update_weights_bucket_megabytes"
    bounds = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": _MIN_OBJECT_STORE}
    given = [key for key in bounds if start.get(key) is not None]
    numbers = [(f"ray_kwargs.ray_init.{key}", start[key], bounds[key]) for key in given]
    for name in config.policy_names:
        key = f"policies.{name}.rollout.checkpoint_engine.{bucket}"
        numbers.append((key, config.policy(name).rollout.checkpoint_engine[bucket], 1))
    for key, value, least in numbers:
        if not isinstance(value, int) or value < least:
            yield f"{key} must be an integer of at least {least}, got {value!r}"


def _step_sizes(config: RunConfig) -> Iterator[str]:
    for name, groups in groups_per_step(config).items():
        if name not in config.policy_names:
            continue
        policy, devices = config.policy(name), config.num_devices(name)
        pool = f"pools.{name}" if config.layout == SEPARATE else "trainer"
        rows = groups * (config.episode.num_candidates if name == "code" else config.episode.num_suites)
        if rows % devices:
            yield (
                f"policy {name}: a step's {rows} rows must be a multiple of the {devices} devices "
                f"({pool}.n_gpus_per_node * {pool}.nnodes); change data.train_batch_size or the number of devices"
            )
        batch, parallel = policy.actor.ppo_mini_batch_size, policy.rollout.tensor_model_parallel_size
        mini, size = f"policies.{name}.actor.ppo_mini_batch_size", policy.rollout.n
        ranks = max(1, devices // config.sequence_parts(name))  # devices that share a sequence are one
        if groups % batch:
            fits = next(number for number in range(min(batch, groups), 0, -1) if groups % number == 0)
            yield f"{mini} must divide the step's {groups} groups, got {batch}; set {mini}={fits}"
        elif batch * size % ranks:
            yield f"{mini} * {size} rows must be a multiple of the {ranks} ranks that share them, got {batch} * {size}"
        if devices % parallel:
            key = f"policies.{name}.rollout.tensor_model_parallel_size"
            yield f"{key} must divide the {devices} devices, got {parallel}"


VALUE_RULES: tuple[Rule, ...] = (
    _schedule,
    _selection,
    _hindsight,
    _given_tests,
    _user_files,
    _scripted_tester,
    _self_play,
    _sandbox,
    _keep_best,
    _checkpoints,
    _policies,
    _models,
    _numbers_of_verl,
    _step_sizes,
)
"""Rules that read only the configuration, and need neither a model nor hardware."""

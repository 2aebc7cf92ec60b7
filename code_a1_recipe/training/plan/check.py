"""The plan of a run: what it needs beside what a machine has, and settings that make it fit where it does not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...config.run_config import SEPARATE, RunConfig
from ...errors import SettingsError
from .machine import Machine
from .memory import GIB, MIB, WEIGHT, ModelSize
from .needs import ALWAYS, Need, Place, State, kv_cache, needs_of
from .sizes import size_of

_TIGHT = 0.9
_KV = "KV cache of a"
_BAD = "does not fit"
_COUNTED = (Place.CPUS, Place.GPUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One place: what is needed at the worst moment, and what there is; bytes, or numbers of CPUs and GPUs."""

    place: str
    needed: int
    there: int
    when: str = ""
    largest: str = ""
    """Parts that need most."""

    @property
    def verdict(self) -> str:
        """More than nine tenths of what is there is tight; what is counted fits or does not."""
        if self.needed > self.there:
            return _BAD
        return "tight" if self.place not in _COUNTED and self.needed > _TIGHT * self.there else "fits"

    def text(self) -> str:
        """Both numbers and the moment, as a sentence has them."""
        needed, there = amount_text(self.needed, self.place), amount_text(self.there, self.place)
        return f"{self.place}: {needed} needed{self.when and f' ({self.when})'}, {there} there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run takes of a machine."""

    needs: tuple[Need, ...]
    rows: tuple[Row, ...]

    def bad_places(self) -> set[str]:
        """Places that a run does not fit into."""
        return {row.place for row in self.rows if row.verdict == _BAD}

    def tight(self) -> list[str]:
        """A sentence for each place that has less than a tenth to spare."""
        return [f"tight: {row.text()}" for row in self.rows if row.verdict == "tight"]

    def process_table(self) -> list[dict[str, str]]:
        """The parts of each process in each place; "at once" is the most of them at a moment."""
        rows = []
        for process, place, count in dict.fromkeys((one.process, one.place, one.count) for one in self.needs):
            own = [one for one in self.needs if (one.process, one.place) == (process, place)]
            most = max(sum(one.amount for one in own if state in one.states) for state in ALWAYS)
            row = {"process": process, "number": str(count), "place": place, "at once": amount_text(most, place)}
            for part in dict.fromkeys(one.part for one in own) if place not in _COUNTED else ():
                row[part] = amount_text(sum(one.amount for one in own if one.part == part), place)
            rows.append(row)
        return rows

    def place_table(self) -> list[dict[str, str]]:
        """For each place what is needed and what there is."""
        return [
            {
                "place": row.place,
                "needed": amount_text(row.needed, row.place),
                "there": amount_text(row.there, row.place),
                "used": f"{row.needed / row.there:.0%}" if row.there else "",
                "most needed": row.when,
                "verdict": row.verdict,
            }
            for row in self.rows
        ]


def amount_text(amount: int, place: str) -> str:
    """An amount with its unit."""
    if place in _COUNTED:
        return str(amount)
    return f"{amount / GIB:.1f} GiB" if amount >= GIB else f"{amount / MIB:.0f} MiB"


def plan_of(config: RunConfig, machine: Machine) -> Plan:
    """Count what a run takes of a machine; nothing is started.

    Raises:
        SettingsError: the size of a model cannot be had here.
    """
    sizes = {name: _size(config, name) for name in config.policy_names}
    needs = tuple(needs_of(config, sizes, gpu_memory=machine.gpu_memory))
    there: dict[str, int] = {
        Place.MEMORY: machine.memory,
        Place.SHARED: machine.shared_memory,
        Place.DISK: machine.disk,
        Place.CPUS: int(config.ray_kwargs.ray_init.get("num_cpus") or machine.cores),
        Place.GPUS: machine.num_gpus,
    }
    rows = []
    for place in dict.fromkeys(one.place for one in needs):
        moments = {moment: _taken(needs, place, states) for moment, states in _moments(config).items()}
        worst = max(moments, key=lambda moment: sum(moments[moment].values()))
        largest = sorted(moments[worst].items(), key=lambda item: -item[1])[:3]
        words = ", ".join(f"{name} {amount_text(amount, place)}" for name, amount in largest)
        when = worst if len({sum(taken.values()) for taken in moments.values()}) > 1 else ""
        available = there.get(place, machine.gpu_memory)
        rows.append(Row(place=place, needed=sum(moments[worst].values()), there=available, when=when, largest=words))
    for name, size in sizes.items():
        cache, longest = kv_cache(config, name, size, gpu_memory=machine.gpu_memory)
        rows.append(Row(place=f"{_KV} {name} server", needed=longest, there=cache, when="one longest sequence"))
    return Plan(needs=needs, rows=tuple(rows))


def _size(config: RunConfig, name: str) -> ModelSize:
    path = config.policy(name).model.path
    if path is None and config.micro is None:
        raise SettingsError(f"policies.{name}.model.path is not set, so nothing can be planned; give it")
    return size_of(config.policy(name).model)


def _moments(config: RunConfig) -> dict[str, dict[str, State]]:
    """States of the policies at each moment of a step: new weights go to one after the other, which then is awake."""
    names = config.policy_names
    moments = {"episodes": dict.fromkeys(names, State.SERVING)}
    for number, name in enumerate(names):
        states = [State.SERVING] * number + [State.SYNCING] + [State.ASLEEP] * (len(names) - number - 1)
        moments[f"new weights of {name}"] = dict(zip(names, states, strict=True))
    if config.layout == SEPARATE:
        return moments | {"updates": dict.fromkeys(names, State.UPDATING)}
    return moments | {
        f"update of {name}": {**dict.fromkeys(names, State.ASLEEP), name: State.UPDATING} for name in names
    }


def _taken(needs: tuple[Need, ...], place: str, states: Mapping[str, str]) -> dict[str, int]:
    """What is taken of a place while the policies are in these states, by process and part."""
    taken: dict[str, int] = {}
    for one in needs:
        if one.place == place and (not one.policy or states[one.policy] in one.states):
            name = f"{one.process}'s {one.part}"
            taken[name] = taken.get(name, 0) + one.amount * one.count
    return taken


def problems(config: RunConfig, machine: Machine, plan: Plan) -> Iterator[str]:
    """What cannot fit, with its largest parts and, where some are known, the settings with which it does."""
    for row in plan.rows:
        if row.verdict == _BAD:
            settings = settings_that_fit(config, machine, plan, row.place)
            words = " ".join(f"{key}={str(value).lower()}" for key, value in settings.items())
            otherwise = (
                "a larger /dev/shm (docker run --shm-size=...)" if row.place == Place.SHARED else "a smaller model"
            )
            hint = f"it fits with {words}" if words else f"no setting known here helps; take {otherwise}"
            yield f"{row.text()}{row.largest and f', most of it {row.largest}'}; {hint}"


def settings_that_fit(config: RunConfig, machine: Machine, plan: Plan, place: str) -> dict[str, Any]:
    """Settings with which a place is enough and no other becomes too small; empty where none are known.

    They are tried in the order of what they cost a run, each together with those before it; those that turn out not to
    be needed are left out.
    """
    steps: list[dict[str, Any]] = []

    def bad_places(tried: list[dict[str, Any]]) -> set[str]:
        changed = config.with_values({key: value for step in tried for key, value in step.items()})
        return plan_of(changed, machine).bad_places()

    for step in _steps(config, machine, plan, place):
        left = bad_places([*steps, step])
        if not left <= plan.bad_places():
            continue
        steps.append(step)
        if place not in left:
            for one in [*steps]:
                fewer = [other for other in steps if other is not one]
                steps = fewer if bad_places(fewer) <= plan.bad_places() - {place} else steps
            return {key: value for step in steps for key, value in step.items()}
    return {}


def _steps(config: RunConfig, machine: Machine, plan: Plan, place: str) -> Iterator[dict[str, Any]]:
    policies = {name: config.policy(name) for name in config.policy_names}
    longest = max(policy.rollout.prompt_length + policy.rollout.response_length for policy in policies.values())
    on_card, rollout = place.startswith(Place.CARD), "actor_rollout_ref.rollout"
    if place == Place.CPUS:  # Ray only counts them
        yield {"ray_kwargs.ray_init.num_cpus": next(row.needed for row in plan.rows if row.place == Place.CPUS)}
    elif place == Place.GPUS and machine.num_gpus:
        yield {"trainer.n_gpus_per_node": machine.num_gpus}
    elif place == Place.DISK:
        yield {"trainer.max_actor_ckpt_to_keep": 1}
    elif place == Place.SHARED:
        largest = WEIGHT * max(_size(config, name).largest_weight for name in policies)
        yield {f"{rollout}.checkpoint_engine.update_weights_bucket_megabytes": -(-largest // MIB)}
        yield {"ray_kwargs.ray_init.object_store_memory": 128 * MIB}
    elif place.startswith(_KV):
        yield {f"{rollout}.max_model_len": longest}
        yield {f"{rollout}.gpu_memory_utilization": 0.45}
    if place != Place.MEMORY and not on_card:
        return
    actor, model = "actor_rollout_ref.actor", "actor_rollout_ref.model"
    yield {f"{model}.enable_gradient_checkpointing": True}
    if on_card:
        yield {f"{actor}.fsdp_config.{part}_offload": True for part in ("param", "optimizer")}
    tokens = max(policy.actor.ppo_max_token_len_per_gpu or longest for policy in policies.values()) // 2
    while tokens >= longest:  # which must go in one pass
        yield {f"{actor}.ppo_max_token_len_per_gpu": tokens}
        tokens //= 2
    if on_card:
        yield from ({f"{rollout}.gpu_memory_utilization": share} for share in (0.35, 0.3, 0.25, 0.2))
        yield {f"{model}.use_fused_kernels": True}
        yield {f"{actor}.fsdp_config.offload_policy": True}
    else:
        yield {f"{rollout}.dtype": "bfloat16"}
    yield {f"{model}.lora_rank": 32}

"""The plan of a run: the least memory, disk and devices that the run needs, compared with what a machine has."""

from collections.abc import Iterator
from dataclasses import dataclass

from ...config.run_config import SEPARATE, RunConfig
from ...errors import SettingsError
from .machine import Machine
from .memory import GIB, MIB
from .needs import Need, Place, needs_of
from .sizes import size_of

_HINTS = {
    Place.MEMORY: "a smaller model needs less, as do actor_rollout_ref.model.enable_gradient_checkpointing=true and a "
    "smaller actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
    Place.SHARED: "take a larger /dev/shm (docker run --shm-size=...), or a smaller "
    "ray_kwargs.ray_init.object_store_memory",
    Place.DISK: "trainer.max_actor_ckpt_to_keep=1 keeps one checkpoint alone",
    Place.CPUS: "Ray only counts them, so set ray_kwargs.ray_init.num_cpus={needed}",
    Place.GPUS: "set trainer.n_gpus_per_node={there}",
    Place.CARD: "a smaller actor_rollout_ref.rollout.gpu_memory_utilization needs less, as do "
    "actor_rollout_ref.model.lora_rank=32 and actor_rollout_ref.actor.fsdp_config.param_offload=true with "
    "optimizer_offload=true",
}
"""For each kind of place, a hint for the case that the place is too small."""


@dataclass(frozen=True)
class Row:
    """The room that a run needs in one place, and the room that the machine has in this place: bytes, CPUs or GPUs."""

    place: str
    needed: int
    there: int
    """Room that the machine has."""
    when: str
    """Moment of the run that needs the most room. ``needed`` is the room for this moment."""

    @property
    def fits(self) -> bool:
        return self.needed <= self.there

    def text(self) -> str:
        """Write the needed room, the moment and the room of the machine in one line."""
        needed, there = amount_text(self.needed, self.place), amount_text(self.there, self.place)
        return f"{self.place}: {needed} needed ({self.when}), {there} there"


@dataclass(frozen=True)
class Plan:
    """The least room that a run needs on a machine."""

    needs: list[Need]
    rows: list[Row]

    def problems(self) -> Iterator[str]:
        """Yield a message with a hint for each place that is too small."""
        for row in self.rows:
            if not row.fits:
                hint = next(hint for place, hint in _HINTS.items() if row.place.startswith(place))
                yield f"{row.text()}; {hint.format(needed=row.needed, there=row.there)}"

    def process_table(self) -> list[dict[str, str]]:
        """List the room that one process takes, with one row for each kind of process and each place."""
        rows = []
        for process, place in dict.fromkeys((need.process, need.place) for need in self.needs):
            needs = [need for need in self.needs if (need.process, need.place) == (process, place)]
            row = {
                "process": process,
                "number": str(needs[0].count),
                "place": place,
                "in all": amount_text(sum(need.amount for need in needs), place),
            }
            rows.append(row | {need.part: amount_text(need.amount, place) for need in needs})
        return rows


def amount_text(amount: int, place: str) -> str:
    """Write an amount with its unit."""
    if place in (Place.CPUS, Place.GPUS):
        return str(amount)
    return f"{amount / GIB:.1f} GiB" if amount >= GIB else f"{amount / MIB:.0f} MiB"


def plan_of(config: RunConfig, machine: Machine) -> Plan:
    """Count the room that a run needs on a machine.

    Raises:
        SettingsError: the size of a model cannot be found on this machine.
    """
    sizes = {}
    for name in config.policy_names:
        model = config.policy(name).model
        if model.path is None and config.micro is None:
            raise SettingsError(f"policies.{name}.model.path must be set before a run can be planned, got null")
        sizes[name] = size_of(model)
    needs = needs_of(config, sizes, gpu_memory=machine.gpu_memory)
    # The policies that train in each moment of a step.
    moments: dict[str, tuple[str, ...]] = {"episodes": ()}
    if config.layout == SEPARATE:
        moments["updates"] = config.policy_names
    else:
        moments |= {f"update of {name}": (name,) for name in config.policy_names}
    there: dict[str, int] = {
        Place.MEMORY: machine.memory,
        Place.SHARED: machine.shared_memory,
        Place.DISK: machine.disk,
        Place.CPUS: int(config.ray_kwargs.ray_init.get("num_cpus") or machine.cores),
        Place.GPUS: machine.num_gpus,
    }
    rows = []
    for place in dict.fromkeys(need.place for need in needs):
        taken = dict.fromkeys(moments, 0)
        for need in needs:
            for moment, updating in moments.items():
                if need.place == place and need.is_taken(updating):
                    taken[moment] += need.amount * need.count
        worst = max(taken, key=taken.__getitem__)
        when = worst if len(set(taken.values())) > 1 else "always"
        # A place that is not in ``there`` is the memory of a GPU. Each policy may have GPUs of its own.
        rows.append(Row(place, taken[worst], there.get(place, machine.gpu_memory), when))
    return Plan(needs, rows)

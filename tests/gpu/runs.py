"""The runs: their settings, and what is kept of each when it ended."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from code_a1_recipe.config.run_config import RunConfig
from code_a1_recipe.training.plan.check import Plan
from code_a1_recipe.training.plan.needs import Place

POLICIES = ("code", "test")
QUESTIONS, CANDIDATES, SUITES = 8, 4, 4
SLEEPS_FILE = "sleeps.jsonl"
IN_BFLOAT16 = 0.01
"""Mean difference of a token's probability: above what rounding does (0.003), below what other weights do (0.03)."""

_ROLLOUT = "actor_rollout_ref.rollout"
# Without vLLM's graphs, whose making takes a minute a server.
_SHORT = ("trainer.total_training_steps=2", "trainer.save_freq=-1", f"{_ROLLOUT}.enforce_eager=true")
RUNS: dict[str, tuple[str, ...]] = {
    # With vLLM's graphs, as a user has them, and a checkpoint
    "colocated": ("trainer.total_training_steps=2", "trainer.save_freq=2"),
    # From that checkpoint, in the same folder
    "resumed": ("trainer.total_training_steps=3", "trainer.save_freq=-1"),
    # The Test LLM trains an adapter, the Code LLM all weights
    "lora": (
        "policies.test.model.lora_rank=16",
        "policies.test.model.lora_alpha=16",
        "policies.test.model.target_modules=all-linear",
        "policies.test.actor.optim.lr=2e-5",
        "actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype=bf16",  # as it is on a card
        *_SHORT,
    ),
    "separate": ("layout=separate", "pools.code.n_gpus_per_node=1", "pools.test.n_gpus_per_node=1", *_SHORT),
    "deterministic": ("deterministic=true", *_SHORT),
    "repeated": ("deterministic=true", *_SHORT),
    # Servers keep their first weights while training goes on in large steps. They never sleep: one that slept has none
    "cut": (
        f"{_ROLLOUT}.free_cache_engine=false",
        f"{_ROLLOUT}.enable_sleep_mode=false",
        f"{_ROLLOUT}.gpu_memory_utilization=0.15",
        "episode.max_log_probs_diff=null",  # the run is to go on all the same
        "policies.code.actor.optim.lr=1e-4",
        "policies.test.actor.optim.lr=1e-4",
        *_SHORT,
    ),
}
STEPS = {"colocated": 2, "resumed": 3, "lora": 2, "separate": 2, "deterministic": 2, "repeated": 2}
"""Of the runs that are to end well."""


@dataclass(frozen=True, kw_only=True)
class World:
    """What a run starts from."""

    code_model: Path
    test_model: Path
    questions: Path


def shared_overrides(world: World) -> Iterator[str]:
    """What all runs change of their preset: the policies, and sizes with which a step takes seconds."""
    for policy, model in zip(POLICIES, (world.code_model, world.test_model), strict=True):
        yield f"policies.{policy}.model.path={model}"
        yield f"policies.{policy}.actor.ppo_mini_batch_size={QUESTIONS}"
        yield f"policies.{policy}.actor.optim.lr=1e-6"
    yield from (
        "micro=null",
        "prompts.name=micro",
        f"data.train_files={world.questions}",
        f"data.val_files={world.questions}",
        f"data.train_batch_size={QUESTIONS}",
        "data.max_prompt_length=256",
        "data.max_response_length=8",
        "policies.test.rollout.prompt_length=1024",
        f"{_ROLLOUT}.max_model_len=null",
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4096",
        f"episode.num_candidates={CANDIDATES}",
        f"episode.num_suites={SUITES}",
        "episode.cases_per_suite=8",
        "episode.num_workers=1",
        "episode.generation_timeout_seconds=600",  # a run that waits for a lost server ends by itself
        "sandbox.num_workers=2",
        "check_resources=false",  # the tests look at the plan themselves
        "trainer.test_freq=-1",
        "trainer.val_before_train=false",
        "ray_kwargs.ray_init.num_cpus=64",
    )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run, what it took, and what it left behind. Bytes, and seconds."""

    name: str
    run: Any
    """As the end-to-end tests have it."""
    config: RunConfig
    plan: Plan
    seconds: float
    peak: int
    processes_left: list[str]
    memory_left: int
    rows: list[dict[str, Any]]
    """Of metrics.jsonl when it ended."""
    sleeps: list[dict[str, Any]]
    """Sleeps and wakes in their order."""
    facts: dict[str, Any]
    """What another run with the same seed has too, if it is deterministic."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def planned(self) -> int:
        """Most memory of a card at a moment, by `code-a1 plan`."""
        return max((row.needed for row in self.plan.rows if row.place.startswith(Place.CARD)), default=0)

    def values(self, figure: str) -> list[float]:
        """One figure of both policies, in all steps."""
        names = [f"{policy}/{figure}" for policy in POLICIES]
        return [row[name] for row in self.rows for name in names if name in row]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Objects of a JSONL file; none where a run ended before it wrote one."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def facts_of(run: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Every response and reward, and every figure of the updates, by what it is.

    Differences between servers and training are none of them: a server's last digits depend on what else it computes.
    """
    facts: dict[str, Any] = {}
    for row in rows:
        step = f"step {row['step']}"
        for record in run.rollouts(row["step"]):
            suites = [(suite.response, suite.reward and suite.reward.total) for suite in record.suites]
            place = f"{step}, program {record.candidate} of {record.question}"
            facts[place] = (record.response, record.reward and record.reward.total, suites)
        figures = {name for name in row if "/actor/" in name and "/perf/" not in name}
        facts |= {f"{step}, {name}": row[name] for name in figures}
    return facts

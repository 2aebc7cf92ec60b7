"""What a step's parts cost on a machine: frozen blocks, read from YAML with strict keys.

All seconds are those that the work takes where nothing else wants the same GPU or cores; what sharing adds is the
simulator's part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from .blocks import SimulationError, read_block, require, require_ranges
from .workload import WorkloadShape

SHIPPED = Path(__file__).parent / "rates_yaml"
BASES = {"measured": "fitted to runs", "assumed": "derived by arithmetic, not measured"}
"""What the numbers of a file rest on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRates:
    """One replica of a policy's server: continuous batching, one iteration a token.

    An iteration takes ``iteration_seconds + request_seconds * n + context_token_seconds * t``, with ``n`` requests
    running and ``t`` tokens in their contexts, and in the iteration that admits requests also ``admission_seconds``
    for each and ``prefill_token_seconds`` for each prompt token that is not in the prefix cache.
    """

    iteration_seconds: float
    """Of every iteration: reading the weights, starting the kernels, scheduling."""
    request_seconds: float
    """For each running request: its share of the matrix products, sampling, detokenizing."""
    context_token_seconds: float
    """For each token in the contexts of the running requests: reading its keys and values."""
    prefill_token_seconds: float
    admission_seconds: float
    """For each admitted request, once."""
    demand: float
    """Share of a GPU, or cores of a host, that the server keeps busy while it has requests."""
    max_num_seqs: int
    """Requests that run at once."""
    max_num_batched_tokens: int
    """Prompt tokens that one iteration may prefill."""
    kv_tokens: int
    """Tokens the KV cache holds; requests wait while a new one would not fit."""
    cache_block_tokens: int
    """Granularity of the prefix cache: only whole blocks of a prompt are found again."""

    def check(self, where: str) -> None:
        """Raises SimulationError for a value out of its range."""
        counts = ("max_num_seqs", "max_num_batched_tokens", "kv_tokens", "cache_block_tokens")
        require_ranges(self, where, positive=("demand",), counts=counts)
        alone = self.iteration_seconds + self.request_seconds
        require(alone > 0, f"{where}.iteration_seconds + request_seconds", "above 0", alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRates:
    """One policy's GRPO update: old and reference log-probabilities, advantage, actor update."""

    fixed_seconds: float
    mini_batch_seconds: float
    """For each optimizer step."""
    row_seconds: float
    """For each response, divided by the GPUs."""
    token_seconds: float
    """For each token of prompts and responses, divided by the GPUs."""

    def seconds(self, *, rows: int, tokens: int, mini_batches: int, gpus: int) -> float:
        """Of the whole update; 0 without rows."""
        if not rows:
            return 0.0
        shared = (self.row_seconds * rows + self.token_seconds * tokens) / gpus
        return self.fixed_seconds + self.mini_batch_seconds * mini_batches + shared


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRates:
    server: ServerRates
    update: UpdateRates
    sync_seconds: float
    """Waking the servers with new weights, once a step."""
    sleep_seconds: float
    """Freeing the servers' memory for training, once a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRates:
    """Episode workers: one event loop each, which prepares requests and takes responses one after another."""

    workers: int
    send_seconds: float
    """For each request to a server or a judge: rendering, tokenizing, sending."""
    receive_seconds: float
    """For each response and verdict: decoding, parsing."""
    question_seconds: float
    """For each question at its end: rewards, selection, storing rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRates:
    workers: int
    programs_per_worker: int
    """Programs that one worker judges at the same time."""
    question_seconds: float
    """For each question's first program: starting the references."""
    program_seconds: float
    """For each program: starting it."""
    case_seconds: float
    """For each assert that it meets, the reference's answer included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    gpus: int
    """Unless the command line says otherwise."""
    gpu_capacity: float
    """How much of the demands of two servers on one GPU runs at once: 1 where their kernels take turns, less where
    taking turns costs time."""
    host_cores: float
    servers_on_host: bool
    """No GPUs: servers run on the cores that client and judge want too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """One file: the machine, what everything costs on it, and the workload unless stated otherwise."""

    basis: str
    """"measured" or "assumed"; tables say which."""
    source: str
    """Where the numbers come from, in a sentence."""
    machine: Machine
    code: PolicyRates
    test: PolicyRates
    client: ClientRates
    judge: JudgeRates
    step_seconds: float
    """Of a step beside everything else: fetching questions, the Mistake Book, metrics."""
    workload: WorkloadShape

    def __post_init__(self) -> None:
        if self.basis not in BASES:
            raise SimulationError(f"basis: unknown name {self.basis!r}; known: {', '.join(sorted(BASES))}")
        require_ranges(self, "rates")
        require_ranges(self.machine, "machine", positive=("gpu_capacity", "host_cores"), counts=("gpus",))
        require_ranges(self.client, "client", counts=("workers",))
        require_ranges(self.judge, "judge", counts=("workers", "programs_per_worker"))
        for name, policy in (("code", self.code), ("test", self.test)):
            require_ranges(policy, name)
            require_ranges(policy.update, f"{name}.update")
            policy.server.check(f"{name}.server")
        self.workload.check("workload")

    def plain(self) -> dict[str, Any]:
        """Nested plain values, as in YAML."""
        return asdict(self)


def rates_from(raw: object) -> Rates:
    """Raises SimulationError for an unknown or missing key and for a value out of its range."""
    return read_block(Rates, raw, where="rates")


def read_rates(name: str) -> Mapping[str, Any]:
    """Plain values of a shipped file by its name, or of a YAML file by its path.

    Raises:
        SimulationError: there is no such file, or it is no YAML mapping.
    """
    shipped = {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}
    path = shipped.get(name, Path(name))
    if not path.is_file():
        raise SimulationError(f"no rates {name!r}; give a YAML file or one of: {', '.join(shipped)}")
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SimulationError(f"{path} cannot be read: {error}") from error
    if not isinstance(raw, dict):
        raise SimulationError(f"{path} must be a mapping of keys, got {type(raw).__name__}")
    return raw

"""Thousands of rows on eight ranks, through verl's own padding, dealing and advantage: lessons included."""

import math
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.trainer.ppo import padding_utils
from verl.trainer.ppo.v1 import trainer_base

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.policy import Policy
from code_a1_recipe.verl_plugin import phases as phases_module
from code_a1_recipe.verl_plugin.phases import UpdatePhases, worst_difference
from code_a1_recipe.verl_plugin.trajectories import is_lesson

RANKS = 8


class Queue:
    """verl's queue in one process: fields of rows by their keys."""

    def __init__(self):
        self.rows = {}

    def kv_batch_put(self, *, keys, partition_id, fields, tags=None):
        for name, column in fields.items():
            values = column.unbind() if isinstance(column, torch.Tensor) else column
            for key, value in zip(keys, values, strict=True):
                self.rows.setdefault(key, {})[name] = value
        return KVBatchMeta(keys=list(keys), tags=tags or [{} for _ in keys], partition_id=partition_id)

    def kv_batch_get(self, *, keys, partition_id, select_fields=None):
        del partition_id
        if select_fields is None:
            return [self.rows[key] for key in keys]
        columns = {}
        for name in set(select_fields) & self.rows[keys[0]].keys():
            values = [self.rows[key][name] for key in keys]
            columns[name] = values if name == "uid" else torch.nested.as_nested_tensor(values, layout=torch.jagged)
        return TensorDict(columns, batch_size=[len(keys)])


@pytest.fixture
def queue(monkeypatch):
    queue = Queue()
    monkeypatch.setattr(trainer_base, "tq", queue)
    monkeypatch.setattr(padding_utils, "tq", queue)
    return queue


def phases_of(*overrides):
    config = read_config("qwen2.5-coder-1.5b", ["run_dir=/nowhere/x", *overrides])
    phases = UpdatePhases(
        Policy("code", config, pool=None, total_updates=4).config,
        name="code",
        workers=SimpleNamespace(_dispatch_info={"actor": list(range(RANKS))}),
        tokenizer=SimpleNamespace(eos_token_id=0),
        has_adapter=False,
        num_gpus=RANKS,
    )
    phases.global_steps = 1
    return phases


def stored(queue, groups):
    """A batch whose rows have the lengths and rewards of nothing real; of a group of ``n`` the first is right."""
    keys, tags = [], []
    for group, size in groups.items():
        for member in range(size):
            length, key = 3 + (len(keys) * 7) % 40, f"{group}_{member}_0"
            mask = torch.ones(length, dtype=torch.long)
            scores = torch.zeros(length)
            scores[-1] = 0.5 if is_lesson(key) else float(member == 0)
            queue.rows[key] = {
                "uid": group,
                "response_mask": mask,
                "rm_scores": scores,
                "rollout_log_probs": torch.zeros(length),
            }
            keys.append(key)
            tags.append({"seq_len": 100 + length, "is_padding": is_lesson(key)})
    return KVBatchMeta(keys=keys, tags=tags, partition_id="code")


@pytest.mark.parametrize(
    ("override", "more"),
    [
        # 32 lessons, each a group of one, beside the step's own rows
        ("data.train_batch_size=256", {f"{n}-0!": 1 for n in range(32)}),
        ("algorithm.adv_estimator=grpo_vectorized", {"3-0!": 1}),
        ("algorithm.adv_estimator=rloo", {"3-0!": 1}),
    ],
)
def test_every_optimizer_step_has_its_share_and_no_advantage_is_missing(queue, override, more):
    phases = phases_of("actor_rollout_ref.actor.ppo_mini_batch_size=128", "data.train_batch_size=256", override)
    groups = {f"{n}": 8 for n in range(256)} | more
    rows_a_step = phases.config.actor_rollout_ref.actor.ppo_mini_batch_size * 8
    metrics = {}
    batch = phases._balance_batch(stored(queue, groups), metrics)
    num_real, num_steps = sum(groups.values()), len(batch) // rows_a_step
    is_real = [key.partition("_")[0] in groups for key in batch.keys]
    assert sum(is_real) == num_real
    of_steps = torch.tensor(is_real).view(RANKS, num_steps, -1).sum(dim=(0, 2))
    assert of_steps.max() - of_steps.min() <= 8
    for key in batch.keys:
        queue.rows[key]["old_log_probs"] = torch.zeros(len(queue.rows[key]["response_mask"]))
    phases._compute_advantage(batch, metrics)
    assert all(queue.rows[key]["advantages"].isfinite().all() for key in batch.keys)
    assert not [name for name, value in metrics.items() if not math.isfinite(value)]
    first, second = (queue.rows[f"0_{member}_0"]["advantages"][0] for member in (0, 1))
    assert first > 0 > second
    lessons = [queue.rows[key]["advantages"][0] for key in batch.keys if is_lesson(key)]
    assert lessons == pytest.approx([0.5] * len(lessons), abs=1e-5)  # their own reward, whatever the estimator


def test_a_difference_that_is_no_number_is_not_lost():
    for rows in ([(math.nan, 20), (0.1, 20)], [(0.1, 20), (math.nan, 20)]):
        assert math.isnan(worst_difference(columns(*rows)))


def columns(*rows):
    """Rows of (difference of log-probabilities, number of tokens)."""
    served = [torch.full((length,), -1.0 - difference) for difference, length in rows]
    trained = [torch.full((length,), -1.0) for _, length in rows]
    masks = [torch.ones(length, dtype=torch.long) for _, length in rows]
    named = {"rollout_log_probs": served, "old_log_probs": trained, "response_mask": masks}
    return {name: torch.nested.as_nested_tensor(values, layout=torch.jagged) for name, values in named.items()}


@pytest.mark.parametrize(
    ("rows", "worst"),
    [
        ([(0.01, 400), (0.9, 16), (0.02, 30)], 0.9),  # the mean over all tokens would be 0.04
        ([(0.01, 400), (0.9, 15)], 0.01),
        ([(0.3, 5), (0.2, 4)], 0.3),  # no longer row
    ],
)
def test_the_worst_response_counts_unless_it_is_short(rows, worst):
    assert worst_difference(columns(*rows)) == pytest.approx(worst, rel=1e-5)


@pytest.mark.parametrize("bypasses", [False, True])
def test_a_few_rows_are_compared_where_no_update_compares_all(queue, monkeypatch, bypasses):
    phases = phases_of(f"algorithm.rollout_correction.bypass_mode={str(bypasses).lower()}")
    batch = stored(queue, {f"{n}": 8 for n in range(16)} | {"3-0!": 1})
    computed = []

    def compute(batch):
        computed.append(list(batch.keys))
        for key in batch.keys:
            length = len(queue.rows[key]["response_mask"])
            queue.rows[key] |= {"log_probs": torch.zeros(length), "entropy": torch.zeros(length)}
        return batch

    monkeypatch.setattr(trainer_base, "response_from_nested", lambda values, mask: values)
    monkeypatch.setattr(phases_module, "get_fields", queue.kv_batch_get)
    monkeypatch.setattr(phases_module, "put_rows", queue.kv_batch_put)
    phases.actor_rollout_wg.compute_log_prob = compute
    for key in batch.keys:
        queue.rows[key]["responses"] = torch.ones_like(queue.rows[key]["response_mask"])
        queue.rows[key]["rollout_log_probs"] = torch.full((len(queue.rows[key]["response_mask"]),), -0.25)
    metrics = {}
    if bypasses:
        phases._compute_old_log_prob(batch, metrics)
        assert queue.rows[batch.keys[0]]["old_log_probs"][0] == -0.25  # verl's: those of the servers
        assert phases.config.algorithm.rollout_correction.bypass_mode
    else:
        phases.compare(batch, metrics)
    assert metrics["training/rollout_log_probs_diff_worst"] == 0.25
    (keys,) = computed
    assert len(keys) == 8 * RANKS
    assert not any(map(is_lesson, keys))

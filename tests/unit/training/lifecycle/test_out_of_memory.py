"""A GPU without memory in a process of Ray's, real but for the GPU, ends with a message and no traceback."""

import sys

import pytest
import ray

from code_a1_recipe.training.lifecycle.failures import explain

pytestmark = pytest.mark.e2e  # starts Ray


@pytest.fixture(scope="module")
def cluster():
    ray.init(
        "local", num_cpus=1, object_store_memory=80 << 20, include_dashboard=False, log_to_driver=False,
        logging_level="error",
    )  # fmt: skip
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Ray's workers cannot import a test
    yield
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    ray.shutdown()


def out_of_memory():
    import torch

    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.1 GiB"
    )


class Worker:
    def __init__(self, *, fails=False):
        if fails:
            out_of_memory()

    def train(self):
        out_of_memory()

    async def update_weights(self):
        out_of_memory()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ray.remote(out_of_memory).remote(),
        lambda: ray.remote(Worker).remote().train.remote(),
        lambda: ray.remote(Worker).remote().update_weights.remote(),
        lambda: ray.remote(Worker).remote(fails=True).train.remote(),
    ],
    ids=["task", "actor", "asynchronous actor", "start of an actor"],
)
def test_a_card_without_memory_is_told_with_what_to_lower(cluster, ask):
    with pytest.raises(ray.exceptions.RayError) as raised:
        ray.get(ask())
    told = explain(raised.value, run_dir="r")
    assert told is not None
    assert told.startswith("a machine ran out of memory, and Ray or CUDA ended what used most")
    assert "gpu_memory_utilization" in told

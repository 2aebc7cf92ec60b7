"""What an engine of the commands is started with, on GPUs and on a CPU."""

import os

import pytest
import torch

pytest.importorskip("vllm", reason="vLLM is not installed: bash run_codea1.sh setup")

from code_a1_recipe.algorithm.sampling import SamplingParameters
from code_a1_recipe.tools.evaluate.models import engine as engine_module
from code_a1_recipe.tools.evaluate.models.engine import EngineModel, set_cpu_environment

PARAMETERS = SamplingParameters(temperature=0.7, top_p=0.95, top_k=-1, max_prompt_tokens=5000, max_response_tokens=16)
ONLY_ON_A_CPU = {
    "enforce_eager", "distributed_executor_backend", "worker_extension_cls", "enable_chunked_prefill",
    "max_num_batched_tokens",
}  # fmt: skip


@pytest.fixture
def machine(monkeypatch):
    def has(*, gpu, **variables):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
        monkeypatch.setattr(engine_module.os, "environ", dict(variables))
        return os.environ

    return has


def test_on_gpus_nothing_of_a_cpu_is_set_and_no_kernel_is_compiled_at_the_start(machine):
    environment = machine(gpu=True)
    assert set_cpu_environment() is False
    assert environment["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
    assert {name for name in environment if "CPU" in name or name == "VERL_PLATFORM"} == set()
    environment = machine(gpu=False)
    assert set_cpu_environment() is True
    assert environment["VERL_PLATFORM"] == "cpu"


def test_what_a_user_has_set_stays(machine):
    environment = machine(gpu=True, VLLM_USE_FLASHINFER_SAMPLER="1", VLLM_LOGGING_LEVEL="INFO")
    set_cpu_environment()
    assert (environment["VLLM_USE_FLASHINFER_SAMPLER"], environment["VLLM_LOGGING_LEVEL"]) == ("1", "INFO")


@pytest.mark.parametrize("gpu", [True, False])
def test_on_gpus_vllm_chooses_executor_graphs_and_chunks_itself(machine, monkeypatch, gpu):
    from vllm.engine import arg_utils
    from vllm.v1.engine.async_llm import AsyncLLM

    started = []
    monkeypatch.setattr(arg_utils, "AsyncEngineArgs", lambda **arguments: arguments)
    monkeypatch.setattr(AsyncLLM, "from_engine_args", started.append)
    monkeypatch.setattr(engine_module, "chat_tokenizer", lambda path, parameters, options: None)
    machine(gpu=gpu)
    EngineModel.start("/nowhere", parameters=PARAMETERS, options={"gpu_memory_utilization": 0.5})
    (arguments,) = started
    assert (arguments["model"], arguments["max_model_len"]) == ("/nowhere", 5016)
    assert arguments["gpu_memory_utilization"] == 0.5
    assert ONLY_ON_A_CPU & set(arguments) == (set() if gpu else ONLY_ON_A_CPU)
    assert gpu or arguments["max_num_batched_tokens"] == 5016

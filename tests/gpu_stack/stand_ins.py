"""Stand-ins for what this machine lacks: NVIDIA's driver library, the card, and the model folders of the presets."""

import itertools
import json
import re
import subprocess
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from code_a1_recipe.micro_world.demonstrations import draw_code_demonstrations
from code_a1_recipe.micro_world.settings import NoiseSettings
from code_a1_recipe.micro_world.sft import corpus_texts
from code_a1_recipe.micro_world.tokenizer import build_tokenizer
from code_a1_recipe.micro_world.world import draw_questions, write_rows
from code_a1_recipe.training.plan.sizes import KNOWN

NUM_QUESTIONS = 256
_POSITIONS = 32_768
_HEADS = {"0.5B": (14, 2), "1.5B": (12, 2), "3B": (16, 2), "7B": (28, 4)}
"""Attention heads, and those of keys and values, by size."""
"""As many as a step of the paper's presets takes."""

_DRIVER_NAME = re.compile(rb"(?<=\0)cu[A-Z]\w+(?=\0)")
_NO_DEVICE = 100
"""CUDA_ERROR_NO_DEVICE: what the real library answers on a machine without a card."""


def build_driver(folder: Path) -> None:
    """Make a folder with a ``libcuda.so.1`` whose every function says that there is no device.

    vLLM's compiled modules cannot be loaded without a driver library. Which functions they ask for is read from them.
    """
    modules = [path for path in distribution("vllm").files or () if path.suffix == ".so"]
    names = {name for path in modules for name in _DRIVER_NAME.findall(Path(path.locate()).read_bytes())}
    functions = (f"int {name.decode()}(void) {{ return {_NO_DEVICE}; }}" for name in sorted(names | {b"cuInit"}))
    folder.mkdir()
    source = folder / "driver.c"
    source.write_text("\n".join(functions) + "\n")
    library = folder / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source], check=True)


def write_model(model_id: str, folder: Path) -> None:
    """Make a model folder of a preset's model: its real shape, a tokenizer of the synthetic task suite, one weight."""
    import torch
    from safetensors.torch import save_file
    from transformers import GenerationConfig, Qwen2Config

    size = KNOWN[model_id]
    heads, kv_heads = _HEADS[model_id.split("-")[-2]]
    questions = draw_questions(seed=0, num_questions=20)
    shown = itertools.islice(draw_code_demonstrations(questions, seed=0, noise=NoiseSettings()), 200)  # it has no end
    tokenizer = build_tokenizer("both", corpus_texts(shown), max_length=_POSITIONS)
    config = Qwen2Config(
        hidden_size=size.hidden, intermediate_size=size.ffn, num_hidden_layers=size.layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, vocab_size=size.vocabulary,
        tie_word_embeddings="7B" not in model_id, max_position_embeddings=_POSITIONS, dtype="bfloat16",
        architectures=["Qwen2ForCausalLM"], eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    config.save_pretrained(folder)
    GenerationConfig(eos_token_id=tokenizer.eos_token_id).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_file({"model.norm.weight": torch.ones(size.hidden)}, folder / "model.safetensors")


def write_questions(path: Path) -> None:
    write_rows(draw_questions(seed=0, num_questions=NUM_QUESTIONS), path)


def use_fake_h100() -> None:
    """Make vLLM believe that it runs on an H100; before anything of vLLM's is imported, in a process of its own."""
    import vllm.platforms
    from vllm.platforms.cuda import NonNvmlCudaPlatform
    from vllm.platforms.interface import DeviceCapability

    class FakeH100(NonNvmlCudaPlatform):
        @classmethod
        def get_device_capability(cls, device_id: int = 0) -> DeviceCapability:
            return DeviceCapability(major=9, minor=0)

        @classmethod
        def get_device_name(cls, device_id: int = 0) -> str:
            return "NVIDIA H100 80GB HBM3"

        @classmethod
        def get_device_total_memory(cls, device_id: int = 0) -> int:
            return 80 << 30

    vllm.platforms._current_platform = FakeH100()


def plain(value: Any) -> Any:
    """A value as JSON has it; text of what JSON does not know."""
    return json.loads(json.dumps(value, default=str))

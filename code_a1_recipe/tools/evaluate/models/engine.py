"""A vLLM engine in this process, on GPUs or on a CPU."""

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....algorithm.episode_types import Message, PromptTooLongError, Response
from ....algorithm.sampling import SamplingParameters, beginning_of_answer, prompt_token_ids
from ....errors import InputError, OutageError
from ....jobs.cores import usable_cores
from ....verl_plugin.cpu.environment import cpu_environment

LOADING_ERRORS = (OSError, ValueError, RuntimeError, TypeError)
"""Errors that vLLM and transformers raise for a model that they cannot load."""
_request_numbers = itertools.count()


def set_cpu_environment() -> bool:
    """Set the environment variables that vLLM reads at its import. Returns True on a machine without an NVIDIA GPU."""
    import torch

    variables = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_USE_FLASHINFER_SAMPLER": "0",  # nvcc would compile this sampler at every start of an engine
        "TRANSFORMERS_VERBOSITY": "error",
    }
    on_cpu = not torch.cuda.is_available()
    if on_cpu:
        # Logits of many sequences are blocks of 100 MiB and more, each of another size. If glibc kept them, the engine
        # of a 0.5B model would grow to 22 GB within 15 minutes; it stays at 5 GB.
        returned = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**28)}
        variables = cpu_environment(threads=usable_cores()) | returned | variables
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    return on_cpu


def check_context(path: str, parameters: SamplingParameters, options: Mapping[str, Any]) -> None:
    """Refuse lengths that a model's context cannot hold. Only a model in a folder is checked; vLLM checks a hub id.

    Raises:
        InputError: prompt and response together exceed the context.
    """
    try:
        config = json.loads((Path(path) / "config.json").read_bytes())
    except (OSError, ValueError):
        return
    most = config.get("max_position_embeddings")
    wanted = parameters.max_prompt_tokens + parameters.max_response_tokens
    if isinstance(most, int) and "max_model_len" not in options and wanted > most:
        raise InputError(
            f"--model={path} has a context of {most} tokens, less than --max-prompt-tokens "
            f"{parameters.max_prompt_tokens} + --max-tokens {parameters.max_response_tokens}; lower them"
        )


def chat_tokenizer(path: str, parameters: SamplingParameters, options: Mapping[str, Any]) -> Any:
    """Load a model's tokenizer, and check that the model's context is long enough.

    Args:
        path: folder or hub id.
        parameters: how the model will sample.
        options: arguments of vLLM's engine.

    Raises:
        InputError: the model's context is too short, or its tokenizer cannot be loaded or has no chat template.
    """
    check_context(path, parameters, options)
    from transformers import AutoTokenizer

    revision = options.get("tokenizer_revision") or options.get("revision")
    try:
        tokenizer = AutoTokenizer.from_pretrained(options.get("tokenizer") or path, revision=revision)
    except LOADING_ERRORS as error:
        raise InputError(f"--model={path} cannot be loaded: {type(error).__name__}: {error}") from error
    if not tokenizer.chat_template:
        raise InputError(
            f"--model={path} has no chat template; give its tokenizer one, or take the model's -Instruct form"
        )
    return tokenizer


@dataclass(frozen=True)
class EngineModel:
    """A model in a vLLM engine, which serves many requests at once."""

    engine: Any
    tokenizer: Any
    parameters: SamplingParameters

    @classmethod
    def start(cls, path: str, *, parameters: SamplingParameters, options: Mapping[str, Any]) -> "EngineModel":
        """Load tokenizer and weights.

        Args:
            path: folder or hub id.
            parameters: how the model samples. Their token limits set the length of the context, unless ``options`` sets
                it.
            options: further arguments of vLLM's engine.

        Raises:
            InputError: the model cannot be loaded, or :func:`chat_tokenizer` refuses it.
        """
        on_cpu = set_cpu_environment()
        tokenizer = chat_tokenizer(path, parameters, options)
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        defaults: dict[str, Any] = {
            "max_model_len": parameters.max_prompt_tokens + parameters.max_response_tokens,
            "enable_prefix_caching": True,
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
        }
        if on_cpu:
            defaults |= {
                "enforce_eager": True,
                "distributed_executor_backend": "vllm.v1.executor.uniproc_executor.UniProcExecutor",
                "worker_extension_cls": "code_a1_recipe.verl_plugin.cpu.sampling.InversionSampling",
                # If vLLM splits a prompt into chunks, it rewinds the seeded generator, which torch cannot do on a CPU.
                "enable_chunked_prefill": False,
                "max_num_batched_tokens": max(4096, defaults["max_model_len"]),
            }
        try:
            engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=path, **{**defaults, **options}))
        except LOADING_ERRORS as error:
            raise InputError(f"--model={path} cannot be loaded: {type(error).__name__}: {error}") from error
        return cls(engine, tokenizer, parameters)

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        """Sample one response.

        Raises:
            PromptTooLongError: the prompt exceeds ``parameters.max_prompt_tokens``.
            OutageError: the engine has died.
            InputError: the engine refuses the prompt.
        """
        from vllm import SamplingParams
        from vllm.v1.engine.exceptions import EngineDeadError

        parameters = self.parameters
        prompt_ids = prompt_token_ids(self.tokenizer, messages)
        if len(prompt_ids) > parameters.max_prompt_tokens:
            raise PromptTooLongError(f"{len(prompt_ids)} tokens, --max-prompt-tokens={parameters.max_prompt_tokens}")
        sampling = SamplingParams(
            temperature=parameters.temperature,
            top_p=parameters.top_p,
            top_k=parameters.top_k,
            max_tokens=parameters.max_response_tokens,
            seed=seed,
            detokenize=False,
        )
        final: Any = None
        try:
            number = f"{session}-{next(_request_numbers)}"
            async for output in self.engine.generate({"prompt_token_ids": prompt_ids}, sampling, number):
                final = output
        except EngineDeadError as error:
            raise OutageError(f"the vLLM engine has died: {error}; too little memory?") from error
        except ValueError as error:
            raise InputError(
                f"vLLM refuses the prompt of question {session!r}: {error}; lower --max-prompt-tokens or --max-tokens, "
                "or raise --engine max_model_len="
            ) from error
        token_ids = tuple(final.outputs[0].token_ids)
        return Response(
            prompt_ids=tuple(prompt_ids),
            token_ids=token_ids,
            log_probs=(),
            text=beginning_of_answer(messages) + self.tokenizer.decode(token_ids, skip_special_tokens=True),
            policy_version=0,
        )

    async def close(self) -> None:
        """Stop the engine. Idempotent."""
        self.engine.shutdown()

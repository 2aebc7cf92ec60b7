"""Sampling of one response from a policy's vLLM servers, through verl's client."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from verl.utils import hf_tokenizer
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput

from ..algorithm.episode_types import Message, PromptTooLongError, Response
from ..algorithm.sampling import SamplingParameters, beginning_of_answer, prompt_token_ids
from ..config.run_config import RunConfig
from ..errors import CodeA1Error, OutageError

_KEPT_PROMPTS = 64


def load_tokenizer(config: RunConfig, name: str) -> Any:
    """Load a policy's tokenizer, with the run's own chat template and template arguments if there are any."""
    model = config.policy(name).model
    tokenizer = hf_tokenizer(model.tokenizer_path or model.path, trust_remote_code=model.trust_remote_code)
    if model.custom_chat_template is not None:
        tokenizer.chat_template = model.custom_chat_template
    if arguments := config.data.apply_chat_template_kwargs:
        # verl and the servers call the method without arguments for the template, so the arguments are bound to the
        # method.
        tokenizer.apply_chat_template = partial(tokenizer.apply_chat_template, **arguments)
    return tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEndpoint:
    """What an episode worker needs to sample from one policy."""

    client: LLMServerClient
    is_seeded: bool
    """Whether each request carries a seed. On GPUs seeds are slow, since vLLM samples seeded requests one by one."""
    max_calls: int
    """Largest number of open requests of one worker. Further requests wait in the worker, not in a server's queue."""
    training: SamplingParameters
    validation: SamplingParameters


@dataclass(eq=False, kw_only=True)
class ServerSampler:
    """A ``Sampler`` with one policy's servers and tokenizer."""

    endpoint: PolicyEndpoint
    tokenizer: Any
    parameters: SamplingParameters
    timeout_seconds: float
    """Time limit of one response, counted from the moment of the request."""

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.endpoint.max_calls)
        # A group samples one prompt many times, so the token ids of the newest prompts are cached.
        self._prompt_ids = lru_cache(_KEPT_PROMPTS)(self._encoded)

    def _encoded(self, *messages: tuple[str, str]) -> list[int]:
        """Return the token ids of a prompt. Each message of the prompt is a pair (role, content)."""
        chat: list[Message] = [{"role": role, "content": text} for role, text in messages]
        return prompt_token_ids(self.tokenizer, chat)

    async def _generate(self, session: str, prompt_ids: list[int], sampling: dict[str, Any]) -> TokenOutput:
        limit = self.timeout_seconds
        try:
            async with asyncio.timeout(limit):
                for _ in range(2):
                    output = await self.endpoint.client.generate(
                        session, prompt_ids=prompt_ids, sampling_params=sampling
                    )
                    if output.stop_reason != "aborted":
                        return output
        except TimeoutError as error:
            raise OutageError(
                f"a response for {session!r} (step and question) took longer than "
                f"episode.generation_timeout_seconds={limit:g}: its server hangs, or the limit is too low for its load"
            ) from error
        # An aborted response is empty or cut off, so it must not get a reward.
        raise OutageError(f"a server gave up the response for {session!r} twice")

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        """Sample one response.

        Raises:
            PromptTooLongError: the prompt exceeds ``parameters.max_prompt_tokens``.
            OutageError: the server gave up the response twice, or took too long.
            CodeA1Error: the response does not have one log-probability for each token.
        """
        parameters = self.parameters
        prompt_ids = self._prompt_ids(*((message["role"], message["content"]) for message in messages))
        if len(prompt_ids) > parameters.max_prompt_tokens:
            raise PromptTooLongError(f"{len(prompt_ids)} tokens, rollout.prompt_length={parameters.max_prompt_tokens}")
        sampling = {
            "temperature": parameters.temperature,
            "top_p": parameters.top_p,
            "top_k": parameters.top_k,
            "max_tokens": parameters.max_response_tokens,
            "logprobs": True,
        }
        if self.endpoint.is_seeded:
            sampling["seed"] = seed
        async with self._places:
            output = await self._generate(session, prompt_ids, sampling)
        token_ids = tuple(output.token_ids)
        log_probs = tuple(output.log_probs or ())
        if len(log_probs) != len(token_ids):
            raise CodeA1Error(f"a server returned {len(token_ids)} tokens with {len(log_probs)} log-probabilities")
        # A response of the largest length is truncated, unless its last token is the end token.
        last_place = token_ids[parameters.max_response_tokens - 1 :]
        written = self.tokenizer.decode(token_ids, skip_special_tokens=True)
        return Response(
            prompt_ids=tuple(prompt_ids),
            token_ids=token_ids,
            log_probs=log_probs,
            text=beginning_of_answer(messages) + written,
            policy_version=int(output.extra_fields.get("global_steps") or 0),
            cached_tokens=int(output.extra_fields.get("num_cached_tokens") or 0),
            is_truncated=last_place not in ((), (self.tokenizer.eos_token_id,)),
        )

"""A hosted model behind an OpenAI-compatible endpoint: vLLM, SGLang, Ollama, llama.cpp, commercial APIs."""

import os
from collections.abc import Sequence
from typing import Any

from ....algorithm.episode_types import Message, PromptTooLongError, Response
from ....algorithm.sampling import SamplingParameters, beginning_of_answer
from ....errors import InputError, OutageError

KEY_VARIABLE = "OPENAI_API_KEY"
_TRIES = 6
_TIMEOUT_SECONDS = 600.0
"""Longest time that one request may take."""
_TOO_LONG = ("context_length_exceeded", "maximum context length", "max_model_len", "prompt is too long")
"""Texts by which servers say that a prompt is too long."""


class EndpointModel:
    """A model at an endpoint, asked for chat completions. The client library retries failed requests."""

    length_is_settled = False
    """False, because a later server at this address may take longer prompts. So a refused prompt is not stored."""

    def __init__(self, *, url: str, name: str, parameters: SamplingParameters) -> None:
        from openai import AsyncOpenAI  # imported here, because judging alone does not need the package

        self._name = name
        self._url = url
        is_greedy = parameters.top_k == 1  # the protocol has no top_k
        self._sampling = {
            "max_tokens": parameters.max_response_tokens,
            "temperature": 0.0 if is_greedy else parameters.temperature,
            "top_p": parameters.top_p,
        }
        self._client = AsyncOpenAI(
            base_url=url, api_key=os.environ.get(KEY_VARIABLE) or "none", max_retries=_TRIES, timeout=_TIMEOUT_SECONDS
        )

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        """Return one response. The endpoint counts the tokens; if it does not, the number of tokens is 0.

        Raises:
            PromptTooLongError: the prompt does not fit, even with a response of a single token.
            InputError: the endpoint refuses the request, and would refuse it again.
            OutageError: the endpoint does not answer. A later call may succeed.
        """
        if beginning_of_answer(messages):  # most endpoints cannot continue an answer
            messages = messages[:-1]
        try:
            answer = await self._asked(messages, seed=seed, session=session)
        except PromptTooLongError:
            # Prompt and answer share the context. If the prompt alone is too long, this call raises PromptTooLongError.
            await self._asked(messages, seed=seed, session=session, max_tokens=1)
            raise InputError(
                f"--endpoint={self._url}: the prompt of question {session!r} and --max-tokens "
                f"{self._sampling['max_tokens']} together exceed the model's context; lower --max-tokens"
            ) from None
        if not getattr(answer, "choices", None):
            raise OutageError(
                f"--endpoint={self._url} answered without a choice for question {session!r}: {str(answer)[:200]}; "
                "no response is stored; repeat the command"
            )
        usage = answer.usage
        return Response(
            prompt_ids=(0,) * (usage.prompt_tokens if usage else 0),
            token_ids=(0,) * (usage.completion_tokens if usage else 0),
            log_probs=(),
            text=answer.choices[0].message.content or "",
            policy_version=0,
        )

    async def _asked(self, messages: Sequence[Message], *, seed: int, session: str, **changed: Any) -> Any:
        import openai

        try:
            return await self._client.chat.completions.create(
                model=self._name,
                messages=list(messages),  # type: ignore[arg-type]  # the client has a type of its own
                seed=seed,
                **(self._sampling | changed),
            )
        except openai.BadRequestError as error:
            if any(sign in str(error) for sign in _TOO_LONG):
                raise PromptTooLongError(f"by {self._url}: {error}") from error
            raise InputError(f"--endpoint={self._url} refuses the request for question {session!r}: {error}") from error
        except (openai.AuthenticationError, openai.NotFoundError) as error:
            raise InputError(
                f"--endpoint={self._url} knows no model {self._name!r}, or the address lacks its /v1, or the key is "
                f"wrong: {error}; correct --endpoint-model, --endpoint or the variable {KEY_VARIABLE}"
            ) from error
        except openai.APIConnectionError as error:
            raise OutageError(
                f"--endpoint={self._url} does not answer: {error.__cause__ or error}; start the server, or correct the "
                "address"
            ) from error
        except openai.APIError as error:
            raise OutageError(
                f"--endpoint={self._url} failed: {type(error).__name__}: {error}; repeat the command"
            ) from error

    async def close(self) -> None:
        await self._client.close()

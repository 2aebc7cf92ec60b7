"""A hosted model behind an OpenAI-compatible endpoint (vLLM, SGLang, Ollama, llama.cpp, commercial APIs)."""

import os
from collections.abc import Sequence
from typing import Any

from ....algorithm.episode_types import Message, PromptTooLongError, Response
from ....algorithm.sampling import SamplingParameters, beginning_of_answer
from ....errors import InputError, OutageError

KEY_VARIABLE = "OPENAI_API_KEY"
_TRIES = 6
_TIMEOUT_SECONDS = 600.0
"""The limit of one request."""
_TOO_LONG = ("context_length_exceeded", "maximum context length", "max_model_len", "prompt is too long")


class EndpointModel:
    """Chat completions of one model. The client library retries failed requests."""

    length_is_settled = False
    """False, because another server at the same address may take longer prompts."""

    def __init__(self, *, url: str, name: str, parameters: SamplingParameters) -> None:
        from openai import AsyncOpenAI  # imported here, since judging alone needs no such package

        self._name = name
        self._url = url
        is_greedy = parameters.top_k == 1  # the protocol has no top_k of its own
        self._sampling = {
            "max_tokens": parameters.max_response_tokens,
            "temperature": 0.0 if is_greedy else parameters.temperature,
            "top_p": parameters.top_p,
        }
        self._client = AsyncOpenAI(
            base_url=url, api_key=os.environ.get(KEY_VARIABLE) or "none", max_retries=_TRIES, timeout=_TIMEOUT_SECONDS
        )

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        """Return one answer. Its token counts are the endpoint's own, or 0 if it gives none.

        Raises:
            PromptTooLongError: the prompt does not fit, even with an answer of a single token.
            InputError: the endpoint refuses the request, and would refuse it again.
            OutageError: the endpoint does not answer; a later call may succeed.
        """
        if beginning_of_answer(messages):  # most endpoints cannot continue an answer
            messages = messages[:-1]
        try:
            answer = await self._asked(messages, seed=seed, session=session)
        except PromptTooLongError:
            # Prompt and answer share the context, so the prompt may fit without the answer. Then no error follows here.
            await self._asked(messages, seed=seed, session=session, max_tokens=1)
            raise InputError(
                f"--endpoint={self._url}: the prompt of question {session!r} and --max-tokens "
                f"{self._sampling['max_tokens']} exceed the model's context together; lower --max-tokens"
            ) from None
        if not getattr(answer, "choices", None):
            raise OutageError(
                f"--endpoint={self._url} answered without a choice for question {session!r}: {str(answer)[:200]}; "
                "nothing is stored for it"
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
                messages=list(messages),  # type: ignore[arg-type]  # the client's own dictionaries, field by field
                seed=seed,
                **(self._sampling | changed),
            )
        except openai.BadRequestError as error:
            if any(sign in str(error) for sign in _TOO_LONG):
                raise PromptTooLongError(f"by {self._url}: {error}") from error
            raise InputError(f"--endpoint={self._url} refuses the request for question {session!r}: {error}") from error
        except (openai.AuthenticationError, openai.NotFoundError) as error:
            raise InputError(
                f"--endpoint={self._url} knows no model {self._name!r} (--endpoint-model), lacks its /v1, or wants a "
                f"key in {KEY_VARIABLE}: {error}"
            ) from error
        except openai.APIConnectionError as error:
            raise OutageError(
                f"--endpoint={self._url} does not answer: {error.__cause__ or error}; start the server, or correct the "
                "address"
            ) from error
        except openai.APIError as error:
            raise OutageError(f"--endpoint={self._url}: {type(error).__name__}: {error}") from error

    async def close(self) -> None:
        await self._client.close()

"""Responses on disk. A stored response is never sampled again, and can be judged without the model."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ....algorithm.episode_types import Message, PromptTooLongError, Response, Sampler
from ....algorithm.sampling import SamplingParameters
from ....errors import InputError
from ....jobs.jsonl_store import JsonlStore, Row

Result = TypeVar("Result")

RESPONSES = "responses.jsonl"
REQUESTS_AT_ONCE = 256
"""Largest number of open requests to one model: enough for full batches, and not too many for an endpoint."""


class OpenModel(Sampler, Protocol):
    """A started model, as ``ModelChoice.open`` returns it."""

    async def close(self) -> None: ...


class ResponseStore(JsonlStore):
    """A file of responses. The model, prompt, seed and sampling parameters make the key of a response.

    Args:
        path: the file of JSON lines. A missing file is made.

    Raises:
        OutputError: the file is no file of responses, or another process writes it.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, settings={"format": 1})


async def finish_all(
    work: Iterable[Coroutine[Any, Any, Result]], *, samplers: "Iterable[StoredSampler]"
) -> list[Result]:
    """Return the results in the order of ``work``, and close the models. The first error cancels the other work."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = list(map(group.create_task, work))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        for sampler in samplers:
            await sampler.close()
    return [task.result() for task in tasks]


@dataclass
class StoredSampler:
    """A ``Sampler`` that reads stored responses, and asks a model only for missing responses."""

    store: ResponseStore
    """The responses. All samplers of an evaluation share the store."""
    model: str
    """Fingerprint of the weights, which is a part of every key."""
    parameters: SamplingParameters
    """Sampling parameters, which are a part of every key."""
    open_model: Callable[[SamplingParameters], Awaitable[OpenModel]] | None
    """Starts the model at the first missing response. Without this function, a missing response is an error."""
    _opening: asyncio.Future[OpenModel] | None = None
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(REQUESTS_AT_ONCE))

    def key(self, messages: Sequence[Message], *, seed: int) -> str:
        """Return the key of a response, which has 32 hexadecimal digits."""
        salt = json.dumps([self.model, asdict(self.parameters)], sort_keys=True)
        text = json.dumps([salt, list(messages), seed], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        """Return a response. All token ids of the response are 0, because the store keeps only the number of tokens.

        Raises:
            PromptTooLongError: the model finds the prompt too long, now or in an earlier call.
            InputError: the response is not stored, and no model may be asked.
        """
        key = self.key(messages, seed=seed)
        if key not in self.store:
            answer: Row = {"text": "", "too_long": ""}
            async with self._room:
                model = await self._model()
                try:
                    response = await model.sample(messages, seed=seed, session=session)
                    answer |= {
                        "text": response.text,
                        "prompt_tokens": len(response.prompt_ids),
                        "response_tokens": len(response.token_ids),
                    }
                except PromptTooLongError as error:
                    if not getattr(model, "length_is_settled", True):
                        raise
                    answer["too_long"] = str(error)
            self.store.append({"key": key, "session": session, "seed": seed, **answer})
        row = self.store.row(key)
        if row["too_long"]:
            raise PromptTooLongError(row["too_long"])
        return replace(Response.scripted(row["text"]), token_ids=(0,) * row["response_tokens"])

    async def _model(self) -> OpenModel:
        if self.open_model is None:
            raise InputError(
                f"{self.store.path} lacks a response that --judge-only asks for; leave the option out to sample it"
            )
        if self._opening is None:
            self._opening = asyncio.ensure_future(self.open_model(self.parameters))
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Stop the model if it was started."""
        opening, self._opening = self._opening, None
        if opening is None:
            return
        if opening.done() and (opening.cancelled() or opening.exception()):
            return  # the callers of ``sample`` already got this error
        await (await opening).close()

"""What a policy's server is asked, and what becomes of its tokens."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.algorithm.sampling import SamplingParameters
from code_a1_recipe.errors import OutageError
from code_a1_recipe.verl_plugin.sampler import PolicyEndpoint, ServerSampler

MESSAGES = [{"role": "user", "content": "q"}]
PARAMETERS = SamplingParameters(temperature=1.0, top_p=1.0, top_k=-1, max_prompt_tokens=99, max_response_tokens=9)


def ask(client, messages=MESSAGES, *, times=1, timeout_seconds=60.0, is_seeded=True, max_calls=99, room=9):
    """Sample ``times`` responses at the same time, with the seeds 0, 1, ...; return the first."""
    parameters = replace(PARAMETERS, max_response_tokens=room)
    endpoint = PolicyEndpoint(
        client=client, is_seeded=is_seeded, max_calls=max_calls, training=PARAMETERS, validation=PARAMETERS
    )

    async def sample():
        sampler = ServerSampler(
            endpoint=endpoint, tokenizer=Letters(), parameters=parameters, timeout_seconds=timeout_seconds
        )
        sampled = [sampler.sample(messages, seed=seed, session="1/q1") for seed in range(times)]
        return (await asyncio.gather(*sampled))[0]

    return asyncio.run(sample())


class Letters:
    """A tokenizer whose tokens are characters."""

    eos_token_id = ord(")")

    def apply_chat_template(self, chats, **options):
        return {
            "input_ids": [[ord(letter) for message in messages for letter in message["content"]] for messages in chats]
        }

    def decode(self, token_ids, *, skip_special_tokens):
        return "".join(map(chr, token_ids))


class Server:
    def __init__(self, *stop_reasons):
        self.stop_reasons, self.asked, self.running, self.most = list(stop_reasons), [], 0, 0

    async def generate(self, session, *, prompt_ids, sampling_params):
        self.prompt_ids = prompt_ids
        self.asked.append(sampling_params)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        reason = self.stop_reasons.pop(0) if self.stop_reasons else "completed"
        text = "" if reason == "aborted" else " f(1)"
        tokens = [ord(letter) for letter in text]
        return SimpleNamespace(token_ids=tokens, log_probs=[0.0] * len(tokens), extra_fields={}, stop_reason=reason)


@pytest.mark.parametrize(("beginning", "text"), [(None, " f(1)"), ("assert", "assert f(1)")])
def test_an_answer_has_the_beginning_that_its_prompt_gave_it(beginning, text):
    messages = [*MESSAGES, {"role": "assistant", "content": beginning}] if beginning else MESSAGES
    server = Server()
    response = ask(server, messages)
    assert response.text == text
    assert len(response.token_ids) == 5
    assert server.prompt_ids == [ord(letter) for letter in "q" + (beginning or "")]


@pytest.mark.parametrize(("room", "end", "expected"), [(6, 0, False), (5, ord(")"), False), (5, 0, True)])
def test_a_response_that_ends_for_want_of_room_is_truncated(monkeypatch, room, end, expected):
    monkeypatch.setattr(Letters, "eos_token_id", end)  # " f(1)" has five tokens
    assert ask(Server(), room=room).is_truncated is expected


def test_a_response_that_its_server_gave_up_is_asked_for_once_more_as_it_was():
    server = Server("aborted", "completed")
    assert ask(server).text == " f(1)"
    assert server.asked[0] == server.asked[1]
    assert server.asked[0]["seed"] == 0


def test_a_response_that_is_given_up_twice_is_an_outage_and_never_an_empty_one():
    with pytest.raises(OutageError, match="gave up the response for '1/q1' twice"):
        ask(Server("aborted", "aborted"))


def test_the_limit_of_a_response_is_counted_from_its_place_and_named_where_it_is_passed():
    class SlowServer(Server):
        async def generate(self, session, **given):
            await asyncio.sleep(0.1)
            return await super().generate(session, **given)

    ask(SlowServer(), times=8, max_calls=1, timeout_seconds=0.5)  # all of them together take longer
    limit = r"'1/q1' .step and question. took longer than episode.generation_timeout_seconds=0.01"
    with pytest.raises(OutageError, match=limit):
        ask(SlowServer(), timeout_seconds=0.01)


def test_requests_have_no_seed_where_none_is_asked_for():
    server = Server()
    ask(server, is_seeded=False)
    assert "seed" not in server.asked[0]


def test_only_so_many_responses_are_asked_for_at_a_time():
    server = Server()
    ask(server, times=10, max_calls=3)
    assert (server.most, len(server.asked)) == (3, 10)

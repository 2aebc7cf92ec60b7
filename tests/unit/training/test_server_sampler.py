"""What a policy's server is asked, and what becomes of its tokens."""

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.algorithm.sampling import SamplingParameters
from code_a1_recipe.training.sampler import ServerSampler

PARAMETERS = SamplingParameters(temperature=1.0, top_p=1.0, top_k=-1, max_prompt_tokens=99, max_response_tokens=9)


class Letters:
    """A tokenizer whose tokens are characters."""

    def apply_chat_template(self, messages, **options):
        return {"input_ids": [ord(letter) for message in messages for letter in message["content"]]}

    def decode(self, token_ids, *, skip_special_tokens):
        return "".join(map(chr, token_ids))


class Server:
    async def generate(self, session, *, prompt_ids, sampling_params):
        self.prompt_ids = prompt_ids
        return SimpleNamespace(token_ids=[ord(letter) for letter in " f(1)"], log_probs=[0.0] * 5, extra_fields={})


@pytest.mark.parametrize(("beginning", "text"), [(None, " f(1)"), ("assert", "assert f(1)")])
def test_an_answer_has_the_beginning_that_its_prompt_gave_it(beginning, text):
    messages = [{"role": "user", "content": "q"}]
    messages += [{"role": "assistant", "content": beginning}] if beginning else []
    server = Server()
    sampler = ServerSampler(client=server, tokenizer=Letters(), parameters=PARAMETERS)
    response = asyncio.run(sampler.sample(messages, seed=1, session="one"))
    assert response.text == text
    assert len(response.token_ids) == 5
    assert server.prompt_ids == [ord(letter) for letter in "q" + (beginning or "")]

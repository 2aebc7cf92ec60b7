"""Which model answers, and responses that are sampled once."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.episode_types import PromptTooLongError, Response
from code_a1_recipe.algorithm.sampling import SamplingParameters
from code_a1_recipe.cli.app import main
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import InputError, OutageError
from code_a1_recipe.files import files_fingerprint
from code_a1_recipe.tools.evaluate.benchmarks.tasks import CodeTask
from code_a1_recipe.tools.evaluate.models.engine import check_context
from code_a1_recipe.tools.evaluate.models.options import ModelOptions, run_of, usual_prompt
from code_a1_recipe.tools.evaluate.models.prompt_styles import ask_code, check_style, evalplus_phrases
from code_a1_recipe.tools.evaluate.models.response_store import ResponseStore, StoredSampler
from code_a1_recipe.tools.evaluate.models.source import choose_model, sample_all

from ..stand_in_endpoint import RefusedError, StandInEndpoint

ASK = [("0", [{"role": "user", "content": "one"}]), ("1", [{"role": "user", "content": "two"}])]
PARAMETERS = SamplingParameters(temperature=0.7, top_p=0.95, top_k=-1, max_prompt_tokens=64, max_response_tokens=16)


def chosen(tmp_path, **options):
    return choose_model(ModelOptions(**options), policy="code", work_folder=tmp_path)


class CountingModel:
    def __init__(self):
        self.asked = []
        self.is_closed = False

    async def sample(self, messages, *, seed, session):
        self.asked.append((messages[0]["content"], seed))
        if messages[0]["content"] == "long":
            raise PromptTooLongError("99 tokens")
        text = f"{messages[0]['content']} {seed}"
        return Response(prompt_ids=(1, 2), token_ids=(3,), log_probs=(), text=text, policy_version=0)

    async def close(self):
        self.is_closed = True


def ask(store, answering, content="one", seed=1, **changes):
    """The text that a sampler of its own gets from the store, or from a model that answers."""

    async def open_model(parameters):
        return answering

    options = {"model": "m", "parameters": PARAMETERS, "open_model": open_model if answering else None}
    sampler = StoredSampler(store, **options | changes)

    async def sample():
        try:
            return (await sampler.sample([{"role": "user", "content": content}], seed=seed, session="q")).text
        finally:
            await sampler.close()

    return asyncio.run(sample())


@pytest.fixture
def store(tmp_path):
    with ResponseStore(tmp_path / "r.jsonl") as opened:
        yield opened


# ------------------------------ responses ------------------------------


def test_a_response_is_sampled_once_and_survives_the_process(tmp_path):
    model = CountingModel()
    with ResponseStore(tmp_path / "r.jsonl") as store:
        assert ask(store, model) == ask(store, model) == "one 1"
    with ResponseStore(tmp_path / "r.jsonl") as store:
        assert ask(store, None) == "one 1"
    assert model.asked == [("one", 1)]
    assert model.is_closed
    row = json.loads((tmp_path / "r.jsonl").read_text())
    told = {"session": "q", "seed": 1, "text": "one 1", "prompt_tokens": 2, "response_tokens": 1}
    assert row | told == row


@pytest.mark.parametrize(
    "changes", [{"model": "other"}, {"parameters": PARAMETERS.greedy()}], ids=["other weights", "other parameters"]
)
def test_another_model_or_other_parameters_are_other_responses(store, changes):
    model = CountingModel()
    for asked in ({}, changes, {"seed": 2}, {"content": "two"}):
        ask(store, model, **asked)
    assert len(model.asked) == 4


def test_a_prompt_that_is_too_long_is_remembered(store):
    model = CountingModel()
    for _ in range(2):
        with pytest.raises(PromptTooLongError, match="99 tokens"):
            ask(store, model, content="long")
    assert len(model.asked) == 1


def test_a_missing_response_is_an_error_where_no_model_may_be_asked(store):
    with pytest.raises(InputError, match="--judge-only"):
        ask(store, None)


# ------------------------------ endpoints ------------------------------


@pytest.fixture
def sampled(tmp_path, store):
    """Responses of a server to prompts, by default one to each of ASK."""

    def sample(server, prompts=ASK, *, seeds=None, parameters=PARAMETERS, name="stand-in"):
        model = chosen(tmp_path, endpoint=server.url, endpoint_model=name)
        return sample_all(model, prompts, seeds=seeds or [[1]] * len(prompts), parameters=parameters, store=store)

    return sample


def test_an_endpoint_is_asked_with_the_parameters_and_seeds_of_the_command_line(sampled):
    parameters = ModelOptions(temperature=0.5).sampling("code")
    with StandInEndpoint(lambda messages, seed: f"{messages[0]['content']} {seed}") as server:
        found = sampled(server, seeds=[[1, 2], [3]], parameters=parameters)
    assert [[one.text for one in row] for row in found] == [["one 1", "one 2"], ["two 3"]]
    assert [[len(one.token_ids) for one in row] for row in found] == [[3, 3], [3]]  # as the endpoint counts them
    assert {(request["temperature"], request["max_tokens"]) for request in server.requests} == {(0.5, 4096)}
    assert sorted(request["seed"] for request in server.requests) == [1, 2, 3]


def test_an_endpoint_is_not_asked_to_go_on_from_a_beginning(sampled):
    prompt = ({"role": "user", "content": "one"}, {"role": "assistant", "content": "begun"})
    with StandInEndpoint(lambda messages, seed: messages[-1]["content"]) as server:
        [[found]] = sampled(server, [("0", prompt)])
    assert found.text == "one"
    assert [message["role"] for message in server.requests[0]["messages"]] == ["user"]


def test_temperature_zero_is_greedy_at_an_endpoint(sampled):
    with StandInEndpoint(lambda messages, seed: "x") as server:
        sampled(server, ASK[:1], parameters=ModelOptions(temperature=0.0).sampling("code"))
    assert server.requests[0]["temperature"] == 0.0
    assert "top_k" not in server.requests[0]


def test_a_prompt_that_the_endpoint_finds_too_long_costs_that_prompt_alone(sampled, store):
    def answer(messages, seed):
        if messages[0]["content"] == "two":
            raise RefusedError("This model's maximum context length is 8 tokens")
        return "fine"

    with StandInEndpoint(answer) as server:
        assert [[one and one.text for one in row] for row in sampled(server)] == [["fine"], [None]]
    assert len(store) == 1  # another server there may have more room


class FullEndpoint(StandInEndpoint):
    """Has room for one token beside the prompt."""

    def respond(self, request):
        fine = {"choices": [{"message": {"content": "x"}}]}
        return super().respond(request) if request["max_tokens"] > 1 else (200, fine)


class OverloadedEndpoint(StandInEndpoint):
    def respond(self, request):
        return 200, {"error": {"message": "overloaded"}}


@pytest.mark.parametrize(
    ("kind", "refusal", "name", "error", "told"),
    [
        (StandInEndpoint, "seed is not supported", "stand-in", InputError, "seed is not supported"),
        (StandInEndpoint, "", "nobody", InputError, "knows no model 'nobody'"),
        (FullEndpoint, "This model's maximum context length is 9 tokens", "stand-in", InputError, "lower --max-tokens"),
        (OverloadedEndpoint, "", "stand-in", OutageError, "without a choice"),
    ],
)
def test_what_an_endpoint_refuses_is_told_with_the_cure_and_not_stored(
    sampled, store, kind, refusal, name, error, told
):
    def answer(messages, seed):
        raise RefusedError(refusal)

    with kind(answer) as server, pytest.raises(error, match=told):
        sampled(server, name=name)
    assert len(store) == 0


def test_an_endpoint_that_is_not_there_is_down_not_wrong(sampled, monkeypatch):
    monkeypatch.setattr("code_a1_recipe.tools.evaluate.models.endpoint._TRIES", 0)
    with pytest.raises(OutageError, match=r"does not answer.*start the server"):
        sampled(SimpleNamespace(url="http://127.0.0.1:9/v1"))


# ------------------------------ the command line ------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "got neither"),
        ({"model": "a/b", "endpoint": "http://x"}, "got both"),
        ({"endpoint": "http://x", "prefix": "test-"}, "--test-endpoint needs --test-endpoint-model"),
        ({"endpoint": "localhost:8000", "endpoint_model": "m"}, "begin with http"),
        ({"model": "./nowhere"}, "no folder here"),
        ({"model": "nowhere"}, "nor a hub id"),
        ({"model": str(Path(__file__).parent)}, "neither a model"),
    ],
)
def test_a_model_that_cannot_be_is_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        chosen(tmp_path, **options)


def test_a_hub_id_and_a_folder_are_taken_as_they_are(tmp_path):
    assert chosen(tmp_path, model="org/name").path == "org/name"
    (tmp_path / "config.json").write_text("{}")
    model = chosen(tmp_path, model=str(tmp_path), engine={"dtype": "bfloat16", "tensor_parallel_size": 2})
    assert model.path == str(tmp_path)
    assert dict(model.engine) == {"dtype": "bfloat16", "tensor_parallel_size": 2}


def test_a_fingerprint_changes_with_any_matrix_and_any_small_file(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    weights = tmp_path / "model.safetensors"
    size = 80 << 20
    seen = set()
    for start in (size, 0, size // 3, size - 4):  # the first file has no change
        changed = b"b" * min(1 << 20, size - start)
        data = bytearray(size)
        data[start : start + len(changed)] = changed
        weights.write_bytes(data)
        seen.add(files_fingerprint(tmp_path, tmp_path.iterdir()))
    (tmp_path / "generation_config.json").write_text("{}")
    seen.add(files_fingerprint(tmp_path, tmp_path.iterdir()))
    assert len(seen) == 5


def test_engine_arguments_that_change_responses_are_part_of_the_model_and_placement_is_not(tmp_path):
    (tmp_path / "config.json").write_text("{}")

    def fingerprint(**engine):
        return chosen(tmp_path, model=str(tmp_path), engine=engine).fingerprint

    plain = fingerprint()
    assert fingerprint(tensor_parallel_size=4, gpu_memory_utilization=0.5) == plain
    assert len({plain, fingerprint(dtype="bfloat16"), fingerprint(load_format="dummy")}) == 3


@pytest.mark.parametrize(
    "words", ["--temperature 3", "--top-p 0", "--max-tokens 0", "--engine novalue", "--engine a-b=1"]
)
def test_numbers_out_of_range_are_refused_by_the_command_line(tmp_path, words, capsys):
    assert main(["eval", "code", "nowhere.jsonl", "--output", str(tmp_path), *words.split()]) == 2
    assert "Invalid value" in capsys.readouterr().err


@pytest.mark.parametrize("inside", [".", "checkpoints/global_step_3"])
def test_a_run_is_asked_as_it_validated_unless_told_otherwise(tmp_path, inside):
    run = read_config("cpu", ["data.max_prompt_length=512", "actor_rollout_ref.rollout.val_kwargs.top_p=0.9"])
    (tmp_path / "resolved_config.yaml").write_text(run.to_yaml())
    folder = tmp_path / inside
    folder.mkdir(parents=True, exist_ok=True)
    found = ModelOptions(model=str(folder), top_p=0.5)
    sampling, run = found.sampling("test"), run_of(ModelOptions(), found)
    assert (sampling.temperature, sampling.top_p) == (1.0, 0.5)
    assert (sampling.max_prompt_tokens, sampling.max_response_tokens) == (704, 64)
    assert (usual_prompt(run, "test"), run.episode.cases_per_suite) == ("micro", 1)


def test_a_model_that_is_no_run_gets_the_usual_values():
    found = ModelOptions(model="org/name")
    sampling, run = found.sampling("code"), run_of(found)
    assert (sampling.temperature, sampling.top_p) == (0.7, 0.95)
    assert (sampling.max_prompt_tokens, sampling.max_response_tokens) == (8192, 4096)
    assert (run, usual_prompt(run, "test")) == (None, "chat_v2")


def test_lengths_that_a_model_does_not_have_are_refused_before_it_is_started(tmp_path):
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 1024}')
    with pytest.raises(InputError, match="context of 1024 tokens"):
        check_context(str(tmp_path), ModelOptions().sampling("code"), {})
    check_context(str(tmp_path), PARAMETERS, {})
    check_context(str(tmp_path), ModelOptions().sampling("code"), {"max_model_len": 512})


# ------------------------------ prompts ------------------------------


def test_evalplus_prompts_come_from_its_package_and_begin_the_answer_where_that_can_be():
    pytest.importorskip("evalplus", reason="EvalPlus's package is not installed")
    task = CodeTask(id="0", data_source="d", prompt="def f(x):\n")
    begun = ask_code("evalplus", task, can_prefill=True)
    instruction, beginning, _ = evalplus_phrases()
    assert begun.messages == (
        {"role": "user", "content": f"{instruction}\n```\ndef f(x):\n```\n"},
        {"role": "assistant", "content": f"{beginning}\n```python\n"},
    )
    assert begun.program_text("def f(x):\n    return x\n```\nIt works:\n```python\nf(1)\n```") == (
        "```python\ndef f(x):\n    return x\n```\n"
    )
    program = "def f(x):\n    return x\n"
    assert begun.program_text(begun.prefix + program) == begun.program_text(program)
    assert begun.answer(begun.prefix + program) == program
    plain = ask_code("evalplus", task, can_prefill=False)
    assert len(plain.messages) == 1
    assert plain.program_text("as it is") == "as it is"


def test_templates_are_prompts_too(tmp_path):
    template = tmp_path / "mine.txt"
    template.write_text("Solve: {{prompt}}\n")
    task = CodeTask(id="0", data_source="d", prompt="p")
    assert ask_code(str(template), task, can_prefill=True).messages[0]["content"] == "Solve: p"
    check_style(str(template))

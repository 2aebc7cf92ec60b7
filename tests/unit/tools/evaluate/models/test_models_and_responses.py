"""Which model answers, and responses that are sampled once."""

import asyncio
import json

import pytest

from code_a1_recipe.algorithm.episode_types import PromptTooLongError, Response
from code_a1_recipe.algorithm.sampling import SamplingParameters, prompt_token_ids
from code_a1_recipe.cli.app import main
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import InputError, OutageError, OutputError
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


def sampler(store, answering, **changes):
    async def open_model(parameters):
        return answering

    options = {"model": "m", "parameters": PARAMETERS, "open_model": open_model if answering else None, **changes}
    return StoredSampler(store, **options)


def ask(one, content="one", seed=1):
    return asyncio.run(_ask(one, content, seed))


async def _ask(one, content, seed):
    try:
        return (await one.sample([{"role": "user", "content": content}], seed=seed, session="q")).text
    finally:
        await one.close()


# ------------------------------ responses ------------------------------


def test_a_response_is_sampled_once_and_survives_the_process(tmp_path):
    model = CountingModel()
    with ResponseStore(tmp_path / "r.jsonl") as store:
        assert ask(sampler(store, model)) == "one 1"
        assert ask(sampler(store, model)) == "one 1"
    with ResponseStore(tmp_path / "r.jsonl") as store:
        assert ask(sampler(store, None)) == "one 1"
    assert model.asked == [("one", 1)]
    assert model.is_closed


@pytest.mark.parametrize(
    "changes", [{"model": "other"}, {"parameters": PARAMETERS.greedy()}], ids=["other weights", "other parameters"]
)
def test_another_model_or_other_parameters_are_other_responses(tmp_path, changes):
    model = CountingModel()
    with ResponseStore(tmp_path / "r.jsonl") as store:
        ask(sampler(store, model))
        ask(sampler(store, model, **changes))
        ask(sampler(store, model), seed=2)
        ask(sampler(store, model), content="two")
    assert len(model.asked) == 4


def test_a_prompt_that_is_too_long_is_remembered(tmp_path):
    model = CountingModel()
    with ResponseStore(tmp_path / "r.jsonl") as store:
        for _ in range(2):
            with pytest.raises(PromptTooLongError, match="99 tokens"):
                ask(sampler(store, model), content="long")
    assert len(model.asked) == 1


def test_a_missing_response_is_an_error_where_no_model_may_be_asked(tmp_path):
    with ResponseStore(tmp_path / "r.jsonl") as store, pytest.raises(InputError, match="--judge-only"):
        ask(sampler(store, None))


def test_two_processes_do_not_write_one_store(tmp_path):
    with ResponseStore(tmp_path / "r.jsonl"), pytest.raises(OutputError, match="another process"):
        ResponseStore(tmp_path / "r.jsonl")


def test_a_line_that_was_cut_off_is_sampled_again(tmp_path):
    path = tmp_path / "r.jsonl"
    model = CountingModel()
    with ResponseStore(path) as store:
        ask(sampler(store, model))
        ask(sampler(store, model), seed=2)
    path.write_bytes(path.read_bytes()[:-5])
    with ResponseStore(path) as store:
        assert len(store) == 1
        assert ask(sampler(store, model), seed=2) == "one 2"
    assert model.asked == [("one", 1), ("one", 2), ("one", 2)]


# ------------------------------ endpoints ------------------------------

FINE = {
    "id": "x",
    "object": "chat.completion",
    "created": 0,
    "model": "stand-in",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
}


def of_endpoint(tmp_path, url, *, name="stand-in"):
    return chosen(tmp_path, endpoint=url, endpoint_model=name)


def test_an_endpoint_is_asked_with_the_parameters_and_seeds_of_the_command_line(tmp_path):
    with (
        StandInEndpoint(lambda messages, seed: f"{messages[0]['content']} {seed}") as server,
        ResponseStore(tmp_path / "r.jsonl") as store,
    ):
        options = ModelOptions(endpoint=server.url, endpoint_model="stand-in", temperature=0.5)
        model = choose_model(options, policy="code", work_folder=tmp_path)
        found = sample_all(model, ASK, seeds=[[1, 2], [3]], parameters=options.sampling("code"), store=store)
    assert [[one.text for one in row] for row in found] == [["one 1", "one 2"], ["two 3"]]
    assert [[len(one.token_ids) for one in row] for row in found] == [[3, 3], [3]]  # as the endpoint counts them
    assert {request["temperature"] for request in server.requests} == {0.5}
    assert {request["max_tokens"] for request in server.requests} == {4096}
    assert sorted(request["seed"] for request in server.requests) == [1, 2, 3]


def test_an_endpoint_is_not_asked_to_go_on_from_a_beginning(tmp_path):
    prompt = ({"role": "user", "content": "one"}, {"role": "assistant", "content": "begun"})
    with (
        StandInEndpoint(lambda messages, seed: messages[-1]["content"]) as server,
        ResponseStore(tmp_path / "r.jsonl") as store,
    ):
        model = of_endpoint(tmp_path, server.url)
        parameters = ModelOptions().sampling("code")
        [[found]] = sample_all(model, [("0", prompt)], seeds=[[1]], parameters=parameters, store=store)
    assert found.text == "one"
    assert [message["role"] for message in server.requests[0]["messages"]] == ["user"]


def test_temperature_zero_is_greedy_at_an_endpoint(tmp_path):
    with StandInEndpoint(lambda messages, seed: "x") as server, ResponseStore(tmp_path / "r.jsonl") as store:
        model = of_endpoint(tmp_path, server.url)
        parameters = ModelOptions(temperature=0.0).sampling("code")
        sample_all(model, ASK[:1], seeds=[[1]], parameters=parameters, store=store)
    assert server.requests[0]["temperature"] == 0.0
    assert "top_k" not in server.requests[0]


def test_a_prompt_that_the_endpoint_finds_too_long_costs_that_prompt_alone(tmp_path):
    def answer(messages, seed):
        if messages[0]["content"] == "two":
            raise RefusedError("This model's maximum context length is 8 tokens")
        return "fine"

    with StandInEndpoint(answer) as server, ResponseStore(tmp_path / "r.jsonl") as store:
        model = of_endpoint(tmp_path, server.url)
        found = sample_all(model, ASK, seeds=[[1], [1]], parameters=PARAMETERS, store=store)
        assert [[one and one.text for one in row] for row in found] == [["fine"], [None]]
        assert len(store) == 1  # another server there may have more room


def test_an_answer_that_does_not_fit_beside_its_prompt_is_no_prompt_that_is_too_long(tmp_path):
    def answer(messages, seed):
        raise RefusedError("This model's maximum context length is 4096 tokens")

    class Roomy(StandInEndpoint):
        def respond(self, request):
            return super().respond(request) if request["max_tokens"] > 1 else (200, FINE)

    with Roomy(answer) as server, ResponseStore(tmp_path / "r.jsonl") as store:
        with pytest.raises(InputError, match="lower --max-tokens"):
            sample_all(of_endpoint(tmp_path, server.url), ASK, seeds=[[1], [1]], parameters=PARAMETERS, store=store)
        assert len(store) == 0


def test_an_endpoint_that_answers_with_an_error_in_place_of_a_choice_is_down(tmp_path):
    class Overloaded(StandInEndpoint):
        def respond(self, request):
            return 200, {"error": {"message": "overloaded"}}

    with Overloaded(lambda messages, seed: "x") as server, ResponseStore(tmp_path / "r.jsonl") as store:
        with pytest.raises(OutageError, match="without a choice"):
            sample_all(of_endpoint(tmp_path, server.url), ASK, seeds=[[1], [1]], parameters=PARAMETERS, store=store)
        assert len(store) == 0


def test_what_an_endpoint_refuses_is_told_with_the_cure(tmp_path):
    def answer(messages, seed):
        raise RefusedError("seed is not supported")

    with StandInEndpoint(answer) as server, ResponseStore(tmp_path / "r.jsonl") as store:
        for model, told in (
            (of_endpoint(tmp_path, server.url), "seed is not supported"),
            (of_endpoint(tmp_path, server.url, name="nobody"), "knows no model 'nobody'"),
        ):
            with pytest.raises(InputError, match=told):
                sample_all(model, ASK, seeds=[[1], [1]], parameters=PARAMETERS, store=store)


def test_an_endpoint_that_is_not_there_is_down_not_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr("code_a1_recipe.tools.evaluate.models.endpoint._TRIES", 0)
    with ResponseStore(tmp_path / "r.jsonl") as store:
        model = of_endpoint(tmp_path, "http://127.0.0.1:9/v1")
        with pytest.raises(OutageError, match=r"does not answer.*start the server"):
            sample_all(model, ASK, seeds=[[1], [1]], parameters=PARAMETERS, store=store)


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
    ],
)
def test_a_model_that_cannot_be_is_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        chosen(tmp_path, **options)


def test_a_folder_that_is_neither_a_model_nor_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="neither a model"):
        chosen(tmp_path, model=str(tmp_path))


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
    for changed in (None, slice(0, 4), slice(size // 3, size // 3 + (1 << 20)), slice(size - 4, size)):
        data = bytearray(size)
        if changed:
            data[changed] = b"b" * (changed.stop - changed.start)
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
    "words",
    [("--temperature", "3"), ("--top-p", "0"), ("--max-tokens", "0"), ("--engine", "novalue"), ("--engine", "a-b=1")],
)
def test_numbers_out_of_range_are_refused_by_the_command_line(tmp_path, words, capsys):
    assert main(["eval", "code", "nowhere.jsonl", "--output", str(tmp_path), *words]) == 2
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
        check_context(str(tmp_path), ModelOptions().sampling("code"), {}, prefix="")
    check_context(str(tmp_path), PARAMETERS, {}, prefix="")
    check_context(str(tmp_path), ModelOptions().sampling("code"), {"max_model_len": 512}, prefix="")


# ------------------------------ prompts ------------------------------


def test_evalplus_prompts_come_from_its_package_and_begin_the_answer_where_that_can_be():
    pytest.importorskip("evalplus", reason="EvalPlus's package is not installed")
    task = CodeTask(id="0", data_source="d", prompt="def f(x):\n")
    begun = ask_code("evalplus", task, can_prefill=True)
    instruction, beginning, _ = evalplus_phrases()
    assert begun.messages[0]["content"] == f"{instruction}\n```\ndef f(x):\n```\n"
    assert begun.messages[1]["content"].startswith(beginning)
    assert begun.messages[1]["role"] == "assistant"
    assert begun.messages[1]["content"].endswith("```python\n")
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
    with pytest.raises(InputError, match="must be one of"):
        check_style("nobody")


class RecordingTokenizer:
    def apply_chat_template(self, chats, **options):
        self.options = options
        return {"input_ids": [[len(messages)] for messages in chats]}


def test_a_begun_answer_is_continued_and_nothing_else_is():
    tokenizer = RecordingTokenizer()
    user, begun = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    assert prompt_token_ids(tokenizer, [user, begun]) == [2]
    assert (tokenizer.options["continue_final_message"], tokenizer.options["add_generation_prompt"]) == (True, False)
    prompt_token_ids(tokenizer, [user])
    assert (tokenizer.options["continue_final_message"], tokenizer.options["add_generation_prompt"]) == (False, True)


def test_stored_rows_say_what_was_asked(tmp_path):
    with ResponseStore(tmp_path / "r.jsonl") as store:
        ask(sampler(store, CountingModel()))
    row = json.loads((tmp_path / "r.jsonl").read_text())
    assert {name: row[name] for name in ("session", "seed", "text", "prompt_tokens", "response_tokens")} == {
        "session": "q",
        "seed": 1,
        "text": "one 1",
        "prompt_tokens": 2,
        "response_tokens": 1,
    }

"""What cannot work is refused before anything starts, with the key, the rule and the value."""

import json
from pathlib import Path

import pytest

from code_a1_recipe.algorithm.sampling import prompt_token_ids
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.config.run_config import RunConfig
from code_a1_recipe.data.torch_dataset import QuestionDataset
from code_a1_recipe.errors import CheckpointError, SettingsError
from code_a1_recipe.training.checkpoint.fingerprints import check_weights
from code_a1_recipe.training.checkpoint.folder import write_state, writing
from code_a1_recipe.training.lifecycle import launch
from code_a1_recipe.training.plan.machine import Machine
from code_a1_recipe.training.preflight import START_RULES, check_run, run_identity
from code_a1_recipe.training.resolve import left_out_questions, resolve


def refusal(*overrides: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read_config("cpu", ["run_dir=outputs/x", *overrides])
    return str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["rewards.alpha=1.5"], "rewards.alpha must be at most 1, got 1.5 (Weight of validity"),
        (["rewards.adversarial=paper"], "rewards.adversarial must be one of figure, release, got 'paper'"),
        (["rewards.code.name=best"], "rewards.code: unknown code reward 'best'; known: pass_rate"),
        (["rewards.test.name=best"], "unknown test reward 'best'; known: adversary, valid_and_adversarial"),
        (["rewards.test.path=/nowhere.py"], "rewards.test: /nowhere.py cannot be loaded: FileNotFoundError"),
        (["rewards.code.path=pkg://math"], "rewards.code: pkg://math has no function 'pass_rate'"),
        (["rewards.code.path=3"], "rewards.code.path must be a text or null, got 3"),
        (["rewards.code.kwargs={alpha: 1}"], "rewards.code: pass_rate(question: "),
        (["rewards.code.kwargs=3"], "rewards.code.kwargs must be a block of keys, got 3"),
        (["rewards.test.kwargs={alpha: 1}"], "rewards.test.kwargs must not contain ['alpha']"),
        (["prompts.code=/nowhere.txt"], "prompts.code: prompt template '/nowhere.txt' cannot be read"),
        (["prompts.test=mine.md"], "prompts.test must be the path of a .txt template, or null, got '"),
        (["selection.name=best"], "selection.name must be one of all, topvar, got 'best'"),
        (["prompts.name=poetry"], "prompts.name must be one of chat_v2, micro, got 'poetry'"),
        (["episode.num_suites=1"], "episode.num_suites must be at least 2"),
        (["selection.update_n=5"], "selection.update_n must be at most episode.num_candidates = 4, got 5"),
        (["schedule.code_every=0", "schedule.test_every=0"], "nothing would train"),
        (["data.seed=null"], "data.seed must be an integer"),
        (["sandbox.max_outage_rate=2"], "sandbox.max_outage_rate must be at most 1, got 2"),
        (["sandbox.limits={memory: 5}"], "sandbox.limits"),
        (["trainer.n_gpus_per_node=3"], "a multiple of the 3 devices (trainer.n_gpus_per_node * trainer.nnodes)"),
        (["actor_rollout_ref.actor.ppo_mini_batch_size=3"], "must divide the step's 8 groups, got 3"),
        (["data.max_response_length=600"], "exceed max_model_len 1024"),
        (
            ["actor_rollout_ref.actor.ppo_mini_batch_size=0"],
            "actor_rollout_ref.actor.ppo_mini_batch_size must be at least 1, got 0",
        ),
        (["trainer.n_gpus_per_node=0"], "trainer.n_gpus_per_node must be at least 1, got 0"),
        (["trainer.total_training_steps=-1"], "trainer.total_training_steps must be at least 1 or null, got -1"),
        (["episode.num_candidates=2.5"], "episode.num_candidates must be an integer, got 2.5"),
        (["episode.num_candidates=three"], "episode.num_candidates must be an integer, got 'three'"),
        (["schedule.test_every=1.5"], "schedule.test_every must be an integer, got 1.5"),
        (["mistake_book.enabled=nope"], "mistake_book.enabled must be true or false, got 'nope'"),
        (["schedule=null"], "schedule must be a block of keys"),
        (["algorithm.adv_estimator=gae"], "adv_estimator must be 'grpo', 'grpo_vectorized' or 'rloo', got 'gae'"),
        (["trainer.v1.trainer_mode=sync"], "trainer.v1.trainer_mode must be 'code_a1', got 'sync'"),
        (["policies.code.rollout.name=vllm"], "policies.code.rollout.name must be 'vllm_code'"),
        (["policies.code.rollout.n=16"], "policies.code.rollout.n must be episode.num_candidates = 4, got 16"),
        (["policies.test.actor.optim.lr=abc"], "policies.test.actor.optim.lr must be a number"),
        (["selection.name=all", "policies.test.actor.ppo_mini_batch_size=12"], "must divide the step's 32 groups"),
        (
            ["rewards.code_tests=silver"],
            "rewards.code_tests must be one of golden, hidden, pooled, suites, got 'silver'",
        ),
        (["rewards.code_tests=golden"], "episode.num_suites must be 0 with rewards.code_tests=golden"),
        (["arm=golden", "episode.num_suites=4"], "episode.num_suites must be 0 with rewards.code_tests=golden"),
        (["arm=golden", "schedule.test_every=1"], "schedule.test_every must be 0 with rewards.code_tests=golden"),
        (["arm=golden", "rewards.num_golden=0"], "rewards.num_golden must be at least 1, got 0"),
        (["episode.tester=pkg://math:floor"], "schedule.test_every must be 0 with episode.tester=pkg://math:floor"),
        (["schedule.test_every=0", "episode.tester=pkg://math:flor"], "math has no function 'flor'"),
        (
            ["schedule.test_every=0", "episode.tester=flor"],
            "must name a module and a function; give pkg://package.module:function",
        ),
        (["arm=golden", "self_play=true"], "self_play must be false with rewards.code_tests=golden"),
        (["episode.num_suites=0"], "episode.num_suites must be at least 2 with rewards.code_tests=suites"),
        (["arm=self_play", "episode.num_suites=3"], "episode.num_suites must be episode.num_candidates = 4"),
        (["arm=self_play", "schedule.test_every=2"], "schedule.test_every must be schedule.code_every = 1"),
        (["arm=self_play", "hindsight.weight=1.0"], "hindsight.weight must be 0 where the Test LLM is not shown"),
        (
            ["hindsight.weight=1.0", "algorithm.rollout_correction.bypass_mode=true"],
            "hindsight.weight must be 0 with algorithm.rollout_correction.bypass_mode=true",
        ),
        (
            ["actor_rollout_ref.actor.checkpoint.save_contents=[model]"],
            "policies.code.actor.checkpoint.save_contents must hold optimizer, extra, got ['model']",
        ),
        (
            ["rewards.test.name=adversary", "rewards.test.kwargs={crowding: -1}"],
            "crowding (exponent of a repeated call's",
        ),
        (
            ["rewards.test.name=adversary", "rewards.test.kwargs={fitness: set}"],
            "unexpected keyword argument 'fitness'",
        ),
        (["arm=self_play", "prompts.black_box=false"], "prompts.black_box must be true with self_play"),
        (["self_play=maybe"], "self_play must be true or false, got 'maybe'"),
        (["actor_rollout_ref.model.lora_rank=-1"], "actor_rollout_ref.model.lora_rank must be at least 0, got -1"),
        (["actor_rollout_ref.rollout.dtype=float8"], "actor_rollout_ref.rollout.dtype must be 'auto', 'float32', "),
        (["actor_rollout_ref.actor.fsdp_config.model_dtype=flaot32"], "'float16', got 'flaot32'"),
        (
            ["actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype=bf17"],
            "actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype must be 'fp32', 'float32', 'bf16', ",
        ),
        (["actor_rollout_ref.rollout.max_num_seqs=0"], "actor_rollout_ref.rollout.max_num_seqs must be at least 1"),
        (["actor_rollout_ref.rollout.gpu_memory_utilization=3"], "gpu_memory_utilization must be at most 1, got 3"),
        (["policies.test.rollout.top_p=2"], "policies.test.rollout.top_p must be at most 1, got 2"),
        (
            ["policies.code.actor.ppo_max_token_len_per_gpu=100"],
            "actor.ppo_max_token_len_per_gpu must be at least prompt_length + response_length = 576 or null, got 100",
        ),
        (
            ["actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes=big"],
            "checkpoint_engine.update_weights_bucket_megabytes must be an integer of at least 1, got 'big'",
        ),
        (["ray_kwargs.ray_init.num_cpus=many"], "ray_kwargs.ray_init.num_cpus must be an integer of at least 1, got '"),
        (["ray_kwargs.ray_init.object_store_memory=100"], "must be an integer of at least 78643200, got 100"),
        (["data.train_files=my (1).jsonl"], """; quote special characters: "data.train_files='...'\""""),
        (["validation.num_buggy_program_suites=-1"], "validation.num_buggy_program_suites must be at least 0, got -1"),
    ],
)
def test_a_value_that_cannot_work_is_refused(overrides, words):
    assert words in refusal(*overrides)


PARTS = "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size=2"


@pytest.mark.parametrize("parts", [PARTS, "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2"])
def test_devices_share_a_sequence_only_with_the_attention_that_passes_its_parts(parts):
    budget, devices = "policies.code.actor.ppo_max_token_len_per_gpu=300", "trainer.n_gpus_per_node=2"
    words = "ulysses_sequence_parallel_size must be 1, got 2: devices share a sequence only with policies.test.model."
    assert words in refusal(devices, parts)
    read_config(
        "cpu", [budget, devices, parts, "actor_rollout_ref.model.override_config.attn_implementation=flash_attention_2"]
    )


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("actor_rollout_ref.model.lora.rank=32",), "policies.code.model.lora.rank must be left out, got 32"),
        (
            ("trainer.n_gpus_per_node=6", "data.train_batch_size=48", "actor_rollout_ref.actor.ppo_mini_batch_size=16"),
            "policies.code.actor.ppo_mini_batch_size * 4 rows must be a multiple of the 6 ranks that share them, got",
        ),
    ],
)
def test_settings_that_would_train_something_else_or_never_end_are_refused(overrides, words):
    assert words in refusal(*overrides)


def test_a_prompt_template_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_bytes(b"\xfc {{prompt}}")
    assert f"prompts.code: prompt template '{tmp_path / 'mine.txt'}' cannot be read" in refusal(
        f"prompts.code={tmp_path / 'mine.txt'}"
    )


@pytest.fixture
def tiny_model(tmp_path: Path) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path / "model"
    config = LlamaConfig(
        vocab_size=8, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=1024,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({"a": 0, "<unk>": 1, "</s>": 2}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    wrapped = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="</s>")
    wrapped.save_pretrained(folder)
    return folder


def started(preset: str, overrides: list[str]) -> RunConfig:
    return read_config(preset, overrides, rules=START_RULES)


def refused_run(tmp_path: Path, *overrides: str) -> str:
    with pytest.raises(SettingsError) as caught:
        check_run(started("cpu", [f"run_dir={tmp_path / 'run'}", "micro=null", *overrides]))
    return str(caught.value)


def test_a_model_that_is_not_there_is_named_with_a_hint(tmp_path):
    words = refused_run(
        tmp_path,
        "data.train_files=x",
        "data.val_files=x",
        "policies.code.model.path=/nowhere",
        "policies.test.model.path=no/where/at-all",
    )
    assert "policies.code.model.path='/nowhere': there is no such folder; give one with config.json" in words
    assert "policies.test.model.path='no/where/at-all': there is no such folder" in words
    assert "data.train_files='x': there is no such file" in words
    assert words.startswith("4 problems:")


def test_a_folder_without_a_model_is_named_with_a_hint(tmp_path):
    (tmp_path / "empty").mkdir()
    paths = [f"policies.{name}.model.path={tmp_path / 'empty'}" for name in ("code", "test")]
    words = refused_run(tmp_path, *two_files(tmp_path), *paths)
    assert f"policies.code.model.path='{tmp_path / 'empty'}' cannot be used" in words
    assert "give a folder with config.json" in words


@pytest.mark.parametrize(
    ("preset", "command"),
    [
        ("smollm2-135m", "`python -m studies.real_model smollm2-135m --output FOLDER`"),
        ("qwen2.5-coder-0.5b-cpu", "`hf download ID --local-dir FOLDER`"),
    ],
)
def test_without_the_hub_a_line_names_the_key_and_the_command_before_work_starts(
    tmp_path, monkeypatch, preset, command
):
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no connection\nto the hub")

    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", unreachable)
    monkeypatch.setattr("code_a1_recipe.training.resolve.micro_assets", lambda _: pytest.fail("work has started"))
    with pytest.raises(SettingsError) as caught:
        resolve(started(preset, [f"run_dir={tmp_path / 'run'}"]))
    words = str(caught.value)
    assert "\n" not in words
    assert f"policies.code.model.path=FOLDER): {command}" in words


def test_a_run_folder_with_somebody_elses_files_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("")
    assert "holds files that are no run's; choose another" in refused_run(tmp_path)


def test_golden_tests_that_are_not_there_are_asked_for(tmp_path, whole_model):
    path = questions_file(tmp_path, *map(str, range(8)))
    words = refused_run(tmp_path, "arm=golden", f"data.train_files={path}", f"data.val_files={path}", *whole_model)
    assert "needs the column 'golden_tests', which 8 of 8 questions" in words
    assert "the first is '0'" in words


def test_listed_outputs_train_the_code_llm_alone(tmp_path, whole_model):
    path = tmp_path / "listed.jsonl"
    rows = [{"id": n, "prompt": "p", "oracle": "listed", "tests": [f"assert f({n}) == 1"]} for n in range(8)]
    path.write_text("\n".join(map(json.dumps, rows)))
    files = [f"data.train_files={path}", f"data.val_files={path}", f"run_dir={tmp_path / 'run'}", "micro=null"]
    words = refused_run(tmp_path, *files, *whole_model)
    assert "data.train_files: 8 questions have listed outputs and no reference, the first is '0'" in words
    assert "data.val_files: 8 questions" in words
    check_run(started("cpu", [*files, "arm=golden_full", *whole_model]))


def test_a_tokenizer_without_chat_template_is_refused(tmp_path, tiny_model):
    paths = [f"policies.{name}.model.path={tiny_model}" for name in ("code", "test")]
    words = refused_run(tmp_path, *two_files(tmp_path), *paths)
    assert "the model has no chat template" in words


def change_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut_weights(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-1])


def lose_a_shard(folder: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: change_json(folder / "tokenizer_config.json", eos_token=None), "names no end token"),
        (lambda folder: change_json(folder / "config.json", vocab_size=2), "the tokenizer has 3 tokens, the model 2"),
        (lambda folder: change_json(folder / "config.json", hidden_size="many"), "hidden_size"),
        (lambda folder: (folder / "model.safetensors").unlink(), "(model.safetensors or pytorch_model.bin)"),
        (lose_a_shard, "its weights (model-2.safetensors) are missing"),
        (lambda folder: (folder / "model.safetensors.index.json").write_text("{"), "Expecting property name"),
        (cut_weights, "file not fully covered"),
    ],
)
def test_a_model_folder_that_cannot_be_trained_is_refused(tmp_path, tiny_model, whole_model, damage, words):
    damage(tiny_model)
    refused = refused_run(tmp_path, *two_files(tmp_path), *whole_model)
    assert f"policies.code.model.path='{tiny_model}' cannot be used" in refused
    assert words in refused


def test_missing_weights_are_refused_before_verl_is_imported(tmp_path, tiny_model):
    (tiny_model / "model.safetensors").unlink()
    with pytest.raises(SettingsError, match="are missing; give a folder with config"):
        started("cpu", [f"run_dir={tmp_path / 'run'}", f"policies.code.model.path={tiny_model}"])


def test_an_index_of_weights_that_transformers_does_not_load_may_name_missing_files(tiny_model):
    (tiny_model / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "pytorch_model-1.bin"}}')
    check_weights(str(tiny_model))
    (tiny_model / "model.safetensors").unlink()
    with pytest.raises(OSError, match="pytorch_model-1"):
        check_weights(str(tiny_model))


def test_a_path_left_open_is_asked_for(tmp_path):
    assert "policies.code.model.path is not set" in refused_run(tmp_path)


def two_files(tmp_path: Path) -> list[str]:
    path = questions_file(tmp_path, *map(str, range(8)))
    return [f"data.train_files={path}", f"data.val_files={path}"]


def questions_file(tmp_path: Path, *ids: str, prompt: str = "Add one.") -> Path:
    path = tmp_path / "questions.jsonl"
    rows = [{"id": name, "prompt": prompt, "reference": "def f(x):\n    return x + 1"} for name in ids]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture
def whole_model(tiny_model: Path) -> list[str]:
    (tiny_model / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    return [f"policies.{name}.model.path={tiny_model}" for name in ("code", "test")]


def test_a_prompt_that_does_not_fit_is_refused_with_its_question(tmp_path, whole_model):
    path = questions_file(tmp_path, *(f"q{i}" for i in range(8)), prompt="a " * 600)
    words = refused_run(tmp_path, f"data.train_files={path}", f"data.val_files={path}", *whole_model)
    assert "data.train_files: 8 of 8 questions exceed the Code LLM's prompt length of 512 tokens" in words


def test_questions_that_are_too_long_are_left_out_where_that_is_asked_for(tmp_path, whole_model, capfd):
    path = questions_file(tmp_path, *(f"q{i}" for i in range(8)))
    path.write_text(
        path.read_text() + "\n" + json.dumps({"id": "long", "prompt": "a " * 600, "reference": "def f(x): pass"})
    )
    files = [f"data.train_files={path}", f"data.val_files={path}", "data.filter_overlong_prompts=true"]
    run = ["micro=null", f"run_dir={tmp_path / 'run'}", *whole_model]
    config = started("cpu", [*run, *files])
    config = config.with_values(left_out_questions(config))
    assert config.data.left_out == ("long",)
    assert (
        "data.train_files: 1 of 9 questions left out, longer than data.max_prompt_length=512" in capfd.readouterr().out
    )
    check_run(config)
    kept = QuestionDataset(str(path), config=dict(config.data)).questions
    assert [question.id for question in kept] == [f"q{i}" for i in range(8)]
    assert left_out_questions(config) == {"data.left_out": ["long"]}  # a resumed run leaves out the same


def test_prompts_are_written_by_the_template_and_arguments_of_the_run_as_verl_would(tmp_path, tiny_model, whole_model):
    """A template of verl's key instead of the model's, with ``data.apply_chat_template_kwargs``; counted as sampled."""
    from verl.utils import omega_conf_to_dataclass

    from code_a1_recipe.training.episode_worker import load_tokenizer

    template = "{{ messages[0]['content'] }}{% if thinking %} a a{% endif %}"
    path = tmp_path / "run.yaml"
    path.write_text(
        "defaults: [cpu, _self_]\nmicro: null\nactor_rollout_ref:\n  model:\n    custom_chat_template: "
        + json.dumps(template)
        + "\ndata:\n  apply_chat_template_kwargs: {thinking: true}\n"
    )
    config = started(str(path), [f"run_dir={tmp_path / 'run'}", *two_files(tmp_path), *whole_model])
    verls = omega_conf_to_dataclass(config.for_policy("code").actor_rollout_ref.model).tokenizer
    messages = [{"role": "user", "content": "a"}]
    expected = verls.apply_chat_template(messages, thinking=True, tokenize=True, return_dict=True)["input_ids"]
    assert prompt_token_ids(load_tokenizer(config, "code"), messages) == list(expected) == [0, 0, 0]
    check_run(config)


def test_a_model_with_code_of_its_own_needs_the_users_trust(tmp_path, tiny_model, whole_model):
    config = json.loads((tiny_model / "config.json").read_text())
    own = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    (tiny_model / "config.json").write_text(json.dumps({**config, "model_type": "own", "auto_map": own}))
    (tiny_model / "own.py").write_text(
        "from transformers import LlamaConfig, LlamaForCausalLM\n"
        "class OwnConfig(LlamaConfig):\n    model_type = 'own'\n"
        "class OwnModel(LlamaForCausalLM):\n    config_class = OwnConfig\n"
    )
    run = [*two_files(tmp_path), *whole_model]
    assert "trust_remote_code" in refused_run(tmp_path, *run)
    trusted = [f"run_dir={tmp_path / 'run'}", "micro=null", "actor_rollout_ref.model.trust_remote_code=true"]
    check_run(started("cpu", [*trusted, *run]))


def test_a_prompt_that_the_chat_template_refuses_is_named(tmp_path, tiny_model, whole_model):
    refuses = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    (tiny_model / "chat_template.jinja").write_text(refuses)
    (tmp_path / "mine.txt").write_text("[system]\nBe brief.\n[user]\n{{prompt}}\n")
    words = refused_run(tmp_path, *two_files(tmp_path), *whole_model, f"prompts.code={tmp_path / 'mine.txt'}")
    assert f"its chat template refuses prompt '{tmp_path / 'mine.txt'}': no system role" in words


def small_machine(monkeypatch, **changes: int) -> None:
    has = {"cores": 2, "memory": 24 << 30, "shared_memory": 12 << 30, "disk": 64 << 30, "num_gpus": 0, "gpu_memory": 0}
    monkeypatch.setattr(Machine, "here", lambda *given, **named: Machine(**(has | changes)))


def test_a_run_that_the_machine_has_no_room_for_is_refused_with_the_numbers(tmp_path, whole_model, monkeypatch):
    small_machine(monkeypatch, memory=4 << 30, disk=1 << 20)
    words = refused_run(tmp_path, *two_files(tmp_path), *whole_model)
    assert "2 problems:" in words
    assert ", 4.0 GiB there; a smaller model needs less" in words
    assert words.endswith("`code-a1 plan` shows all of it; check_resources=false starts it all the same")
    small_machine(monkeypatch)
    words = refused_run(tmp_path, *two_files(tmp_path), *whole_model, "ray_kwargs.ray_init.num_cpus=7")
    assert "logical CPUs: 8 needed (always), 7 there" in words


def test_a_user_may_start_it_all_the_same_and_a_cluster_is_not_measured_here(tmp_path, whole_model, monkeypatch, capfd):
    small_machine(monkeypatch, memory=4 << 30)
    overrides = [f"run_dir={tmp_path / 'run'}", *two_files(tmp_path), *whole_model]
    check_run(started("cpu", [*overrides, "check_resources=false"]))
    assert "4.0 GiB there" in capfd.readouterr().out
    check_run(started("cpu", [*overrides, "+ray_kwargs.ray_init.address=auto"]))


def test_ids_must_be_unique_over_all_files(tmp_path, whole_model):
    path = questions_file(tmp_path, "q1")
    words = refused_run(tmp_path, f"data.train_files=[{path},{path}]", f"data.val_files={path}", *whole_model)
    assert "2 questions have the id 'q1'" in words


def other_questions(folder: Path) -> list[str]:
    path = questions_file(folder, *(f"q{i}" for i in range(8)), prompt="Another task.")
    return [f"data.train_files={path}"]


def other_tokenizer(folder: Path) -> list[str]:
    path = folder / "model" / "tokenizer_config.json"
    path.write_text(path.read_text() + "\n")
    return []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: ["data.seed=7"], "seed: saved 1, now 7"),
        (other_questions, "questions: saved '8 questions, digest "),
        (other_tokenizer, "code_model: saved "),
        (lambda folder: ["policies.test.model.lora_rank=8"], "test_lora_rank: saved 0, now 8"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_before_anything_starts(tmp_path, whole_model, change, words):
    path = questions_file(tmp_path, *(f"q{i}" for i in range(8)))
    overrides = [f"data.train_files={path}", f"data.val_files={path}", *whole_model]
    config = started("cpu", [f"run_dir={tmp_path / 'run'}", *overrides])
    questions = QuestionDataset(config.data.train_files, config=dict(config.data)).questions
    with writing(tmp_path / "run" / "checkpoints", 2) as folder:
        write_state(folder, {"step": 2, "identity": run_identity(config, questions)})
        for name in ("mistake_book.json", "data.pt", "random_states.pt", "metrics.json"):
            (folder / name).write_text("{}")
    check_run(config)
    with pytest.raises(CheckpointError) as caught:
        refused_run(tmp_path, *overrides, *change(tmp_path))
    assert "does not fit this run (" in str(caught.value)
    assert words in str(caught.value)
    assert not (tmp_path / "run" / "resolved_config.yaml").exists()


@pytest.mark.parametrize(
    ("resume", "mode", "path"),
    [("auto", "auto", None), ("never", "disable", None), ("/a/global_step_3", "resume_path", "/a/global_step_3")],
)
def test_resume_is_put_into_verls_keys(resume, mode, path):
    config = read_config("cpu", [f"resume={resume}"])
    assert (config.trainer.resume_mode, config.trainer.resume_from_path) == (mode, path)


def test_verls_own_keys_hold_where_resume_says_auto():
    config = read_config("cpu", ["trainer.resume_mode=disable"])
    assert config.trainer.resume_mode == "disable"


def test_never_refuses_a_folder_with_checkpoints_alone(tmp_path):
    with writing(tmp_path / "run" / "checkpoints", 2) as folder:
        write_state(folder, {"step": 2})
    never = "trainer.resume_mode=disable"
    assert "holds steps [2] in " in refused_run(tmp_path, never)
    elsewhere = (f"run_dir={tmp_path / 'other'}", f"trainer.default_local_dir={tmp_path / 'run' / 'checkpoints'}")
    assert "holds steps [2] in " in refused_run(tmp_path, never, *elsewhere)


def test_a_run_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "run").write_text("")
    assert "is not a folder" in refused_run(tmp_path)


def test_a_run_folder_of_another_run_is_refused_where_nothing_may_be_resumed(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text("{}\n")
    words = refused_run(tmp_path, "trainer.resume_mode=disable")
    assert "holds another run, and resume=never (trainer.resume_mode=disable) would write over it" in words


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["trainer.logger=foo"], "trainer.logger must be of wandb, mlflow"),
        (["trainer.logger=clearml"], "trainer.logger=clearml needs its package: pip install clearml"),
        (["global_profiler.steps=3"], "global_profiler.steps must be a list of steps from 1 on, or null, got 3"),
        (["global_profiler.steps=[a]"], "global_profiler.steps must be a list of steps from 1 on"),
        (["global_profiler.steps=[1]", "global_profiler.tool=foo"], "global_profiler.tool must be one of nsys, npu"),
        (
            ["checkpoint.keep_best=val/code/pass@1", "trainer.test_freq=-1"],
            "trainer.test_freq must be above 0 with checkpoint.keep_best=val/code/pass@1",
        ),
        (["checkpoint.keep_best=code/reward"], "checkpoint.keep_best must be a validation metric (val/...) or null"),
        (
            ["trainer.max_actor_ckpt_to_keep=two"],
            "trainer.max_actor_ckpt_to_keep must be an integer or null, got 'two'",
        ),
        (["trainer.max_actor_ckpt_to_keep=0"], "must be at least 1 or null, got 0"),
        (["deterministic=maybe"], "deterministic must be true or false, got 'maybe'"),
        (
            ["actor_rollout_ref.rollout.max_model_len=null", "policies.code.rollout.prompt_length=2000"],
            "1024 positions (max_position_embeddings)",
        ),
        (
            ["actor_rollout_ref.rollout.max_model_len=2000"],
            "policies.code.rollout: max_model_len (null: prompt_length + response_length) is 2000 tokens",
        ),
        (
            ["actor_rollout_ref.model.lora_rank=4", "actor_rollout_ref.model.target_modules=[nothing]"],
            "LoRA with target_modules=['nothing'] does not fit",
        ),
        (["policies.code.model.custom_chat_template=hello"], "its chat template leaves the question out of prompt"),
        (
            ["data.left_out=['1',qq]"],
            "data.left_out names ['qq']: no question of data.train_files or data.val_files has it",
        ),
    ],
)
def test_what_would_fail_late_is_refused_before_the_start(tmp_path, whole_model, overrides, words):
    assert words in refused_run(tmp_path, *two_files(tmp_path), *whole_model, *overrides)


def test_a_chat_template_that_fails_is_named_for_the_policy_that_has_it(tmp_path, whole_model):
    broken = "policies.test.model.custom_chat_template='{% for m in'"
    words = refused_run(tmp_path, *two_files(tmp_path), *whole_model, broken)
    assert words.startswith("policies.test.model.custom_chat_template='{% for m in': its chat template refuses prompt")


def test_questions_that_move_up_in_place_of_long_ones_fit_too(tmp_path, whole_model):
    path = questions_file(tmp_path, *(f"q{i}" for i in range(8)))
    long = [json.dumps({"id": f"long{i}", "prompt": "a " * 600, "reference": "def f(x): pass"}) for i in range(20)]
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*long[:10], *lines[:4], *long[10:], *lines[4:]]))
    given = [f"data.train_files={path}", f"data.val_files={path}", "data.filter_overlong_prompts=true"]
    limits = ["data.train_max_samples=8", "data.val_max_samples=8"]
    run = ["micro=null", f"run_dir={tmp_path / 'run'}", *whole_model]
    config = started("cpu", [*run, *given, *limits])
    check_run(config.with_values(left_out_questions(config)))


def test_folders_of_copies_are_made_before_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    config = started("cpu", [f"run_dir={tmp_path / 'run'}", f"trainer.rollout_data_dir={tmp_path / 'file' / 'x'}"])
    with pytest.raises(SettingsError, match=r"trainer\.rollout_data_dir=.*cannot be written"):
        launch._create_folder(config)

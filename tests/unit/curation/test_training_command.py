"""The printed command against the installed verl: its keys, its data set, and, with ``e2e``, its trainer."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.curation.demonstrations import SuiteDemonstration
from code_a1_recipe.curation.options import SftOptions
from code_a1_recipe.curation.training_command import training_command
from code_a1_recipe.verl_plugin.cpu.sft import OVERRIDES

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")


def words(output="/d/t.parquet", *, num_train=300, num_val=20, longest_bytes=5000, **options):
    """The words of the command for demonstrations of these sizes."""
    row = {"messages": [{"role": "user", "content": "x" * longest_bytes}]}
    options = SftOptions(files=(), output=Path(output), **options)
    return shlex.split(training_command(options, [row] * num_train, [row] * num_val))


def overrides(*arguments, model="some/model", **options):
    return [word for word in words(*arguments, model=model, **options) if "=" in word and not word.startswith("--")]


def value_of(key, **options):
    return dict(word.split("=", 1) for word in overrides(**options))[key]


def composed(*keys):
    """verl's own configuration with these keys; unknown ones are refused by hydra."""
    import verl.trainer
    from hydra import compose, initialize_config_dir

    folder = str(Path(verl.trainer.__file__).parent / "config")
    with initialize_config_dir(folder, version_base=None):
        return compose("sft_trainer_engine", overrides=list(keys))


def test_batches_fit_into_both_parts():
    assert value_of("data.train_batch_size") == "16"
    assert value_of("data.train_batch_size", num_val=500) == "64"
    assert value_of("data.train_batch_size", num_train=1, num_val=0) == "1"
    few = [value_of(key, num_val=3) for key in ("data.train_batch_size", "data.val_files")]
    assert few == ["64", "null"], "verl drops batches that are not full"


def test_no_row_can_be_longer_than_the_limit():
    assert value_of("data.max_length", longest_bytes=100) == "1024"
    assert value_of("data.max_length", longest_bytes=768) == "1024"
    assert value_of("data.max_length", longest_bytes=769) == "2048"


def test_verl_knows_every_key():
    config = composed(*overrides())
    assert config.data.train_files == "/d/t.parquet"
    assert config.data.val_files == "/d/t.val.parquet"
    assert config.data.max_token_len_per_gpu >= config.data.max_length == 6144
    assert config.data.enable_thinking_default is None, 'verl\'s own "none" is a text, and so it is true'
    assert config.optim.lr == 1e-5
    assert "hf_model" in config.checkpoint.save_contents
    assert config.model.path == "some/model"
    assert config.trainer.test_freq == "after_each_epoch"


def test_verl_knows_the_keys_for_a_processor():
    config = composed(*OVERRIDES, *overrides())
    assert (config.trainer.device, config.engine.strategy) == ("cpu", "fsdp2")
    assert config.model.external_lib == "code_a1_recipe.verl_plugin.engine"


@pytest.mark.parametrize("odd", ["/d/a b", "/d/it's", "/d/a,b=c", "/d/[x]{y}", "/d/a\\b", "/d/ü"])
def test_paths_survive_the_shell_and_hydra(odd):
    config = composed(*overrides(f"{odd}/t.parquet", model=odd))
    assert (config.model.path, config.data.train_files) == (odd, f"{odd}/t.parquet")


def test_the_command_starts_verls_trainer():
    assert words()[:6] == [
        "torchrun",
        "--standalone",
        "--nnodes=1",
        "--nproc_per_node=1",
        "-m",
        "verl.trainer.sft_trainer",
    ]
    assert words(cpu=True)[:3] == ["python", "-m", "code_a1_recipe.verl_plugin.cpu.sft"]


# ------------------------------ with a tokenizer, and a model ------------------------------

ANSWERS = [f"assert f({x}) == {x + 1}" for x in range(16)]


@pytest.mark.parametrize(("num_val", "cpu"), [(0, True), (64, False)])
def test_no_word_of_the_command_is_empty(tmp_path, num_val, cpu):
    assert all(words(tmp_path / "d.parquet", num_train=64, num_val=num_val, longest_bytes=400, model="", cpu=cpu))


@pytest.fixture(scope="module")
def test_model():
    from code_a1_recipe.micro_world.assets import ensure_assets

    return ensure_assets().test_model


@pytest.fixture
def parquet(tmp_path):
    question = Question(id="q", prompt="Return x plus 1.", reference="def f(x): return x + 1")

    def write(pair):
        rows = [
            SuiteDemonstration(question, "reference", question.reference, (answer,), 0).row(pair) for answer in ANSWERS
        ]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "d.parquet")
        return tmp_path / "d.parquet"

    return write


QWEN_LIKE = """\
{%- if messages[0]['role'] == 'system' %}{{ '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}\
{%- else %}{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{%- endif %}\
{%- for message in messages %}{%- if not (message.role == 'system' and loop.first) %}\
{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{%- endif %}{%- endfor %}\
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{%- endif %}"""
"""A template with a default system message, which verl must take out of later turns."""


@pytest.mark.parametrize("pair", ["micro", "chat_v2"])
def test_verls_data_set_learns_the_suite_and_nothing_else(parquet, test_model, pair):
    from transformers import AutoTokenizer
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    tokenizer = AutoTokenizer.from_pretrained(test_model)
    if pair == "chat_v2":
        tokenizer.chat_template = QWEN_LIKE
    path = parquet(pair)
    config = composed(*overrides(longest_bytes=9000)).data
    dataset = MultiTurnSFTDataset(parquet_files=[str(path)], tokenizer=tokenizer, config=config)
    assert len(dataset) == len(ANSWERS)
    messages = pyarrow.parquet.read_table(path).to_pylist()[3]["messages"]
    row = dataset[3]
    learned = tokenizer.decode(row["input_ids"][row["loss_mask"].bool()])
    assert messages[-1]["content"] in learned
    assert "def f(x)" not in learned
    whole = tokenizer.apply_chat_template(messages, tokenize=False)
    assert tokenizer.decode(row["input_ids"]) == tokenizer.decode(
        tokenizer(whole, add_special_tokens=False)["input_ids"]
    )


@pytest.mark.e2e
@pytest.mark.nightly
def test_verls_sft_trainer_trains_the_tiny_test_llm_without_a_gpu(parquet, test_model, tmp_path):
    path = parquet("micro")
    _, *rest = words(path, num_train=16, num_val=0, longest_bytes=400, model=str(test_model), cpu=True)
    done = subprocess.run(
        [sys.executable, *rest, "data.train_batch_size=8", "optim.lr=1e-3", "trainer.total_training_steps=2"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    losses = [float(found) for found in re.findall(r"train/loss:([\d.]+)", done.stdout)]
    assert len(losses) == 2
    assert losses[1] < losses[0]
    assert (tmp_path / "d_model" / "global_step_2" / "huggingface" / "model.safetensors").is_file()

"""The command on a card of demonstrations against the installed verl: its keys, its data set, and its trainer."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.prepare.demonstrations import SuiteDemonstration
from code_a1_recipe.tools.prepare.options import SftOptions
from code_a1_recipe.tools.prepare.sft import _written
from code_a1_recipe.verl_plugin.cpu.sft import OVERRIDES

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")
ANSWERS = [f"assert f({x}) == {x + 1}" for x in range(16)]


@pytest.fixture
def words(tmp_path):
    """The words of the command for so many demonstrations of a pair of prompts, which are written too."""

    def write(num=16, *, pair="micro", name="d.parquet", val_frac=0.0):
        options = SftOptions(files=(), output=tmp_path / name, prompt=pair, val_frac=val_frac)
        reference = "def f(x): return x + 1"
        shown = [
            SuiteDemonstration(
                Question(id=f"q{n}", prompt="Return x plus 1.", reference=reference), "reference", reference,
                (ANSWERS[n % 16],), 0,
            )
            for n in range(num)
        ]  # fmt: skip
        _written(shown, options, num_questions=num, num_outages=0, left_out=[])
        card = options.card_output.read_text()
        return shlex.split(card.partition("```bash\n")[2].partition("```")[0])

    return write


def overrides(words):
    return [word for word in words if "=" in word and not word.startswith("--")]


def composed(words, *keys):
    """verl's configuration with the keys of a command, and others before them; hydra refuses unknown ones."""
    import verl.trainer
    from hydra import compose, initialize_config_dir

    folder = str(Path(verl.trainer.__file__).parent / "config")
    with initialize_config_dir(folder, version_base=None):
        return compose("sft_trainer_engine", overrides=[*keys, *overrides(words)])


def test_verl_knows_every_key(words):
    found = words(100, val_frac=0.5)
    assert found[:6] == [
        "torchrun", "--standalone", "--nnodes=1", "--nproc_per_node=1", "-m", "verl.trainer.sft_trainer",
    ]  # fmt: skip
    config = composed(found)
    assert (config.data.train_files, config.data.val_files) == ("d.parquet", "d.val.parquet")
    assert config.data.enable_thinking_default is None, 'verl\'s own "none" is a text, and so it is true'
    assert "hf_model" in config.checkpoint.save_contents
    assert config.trainer.test_freq == "after_each_epoch"
    assert composed(found, *OVERRIDES).engine.strategy == "fsdp2"


def test_batches_fit_into_the_part_that_trains(words):
    few = composed(words(10))
    assert (few.data.train_batch_size, few.data.val_files, few.trainer.test_freq) == (10, None, -1)
    assert composed(words(200)).data.train_batch_size == 64


@pytest.mark.parametrize("odd", ["a b", "it's", "a,b=c", "[x]{y}", "a\\b", "ü"])
def test_names_survive_the_shell_and_hydra(words, odd):
    assert composed(words(name=f"{odd}.parquet")).data.train_files == f"{odd}.parquet"


# ------------------------------ with a tokenizer, and a model ------------------------------


@pytest.fixture(scope="module")
def test_model():
    from code_a1_recipe.micro_world.assets import ensure_assets

    return ensure_assets().test_model


QWEN_LIKE = """\
{%- if messages[0]['role'] == 'system' %}{{ '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}\
{%- else %}{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{%- endif %}\
{%- for message in messages %}{%- if not (message.role == 'system' and loop.first) %}\
{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{%- endif %}{%- endfor %}\
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{%- endif %}"""
"""A template with a default system message, which verl must take out of later turns."""


@pytest.mark.parametrize("pair", ["micro", "chat_v2"])
def test_verls_data_set_learns_the_suite_and_nothing_else(words, test_model, tmp_path, pair):
    from transformers import AutoTokenizer
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    tokenizer = AutoTokenizer.from_pretrained(test_model)
    if pair == "chat_v2":
        tokenizer.chat_template = QWEN_LIKE
    config = composed(words(pair=pair)).data
    path = tmp_path / "d.parquet"
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
def test_verls_sft_trainer_trains_the_tiny_test_llm_without_a_gpu(words, test_model, tmp_path):
    keys = [*overrides(words()), f"model.path={test_model}", "data.train_batch_size=8", "optim.lr=1e-3"]
    done = subprocess.run(
        [sys.executable, "-m", "code_a1_recipe.verl_plugin.cpu.sft", *keys, "trainer.total_training_steps=2"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    losses = [float(found) for found in re.findall(r"train/loss:([\d.]+)", done.stdout)]
    assert len(losses) == 2
    assert losses[1] < losses[0]
    assert (tmp_path / "d_model" / "global_step_2" / "huggingface" / "model.safetensors").is_file()

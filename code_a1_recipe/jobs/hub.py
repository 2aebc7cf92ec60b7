"""A repository of the Hugging Face hub: whether it may be written, asked before the work, and the upload.

The library is imported where it is needed, for it takes half a second.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import InputError, OutageError
from ..files import portable

if TYPE_CHECKING:
    from huggingface_hub import RepoCard

Push = Annotated[str | None, typer.Option(metavar="OWNER/NAME", help="upload to this repository of the hub; private")]
Public = Annotated[bool, typer.Option("--public", help="the repository of --push is open to all")]
Kind = Literal["model", "dataset"]

README = "README.md"
HOLDS = "code_a1"
"""Key of a card's front matter: what the repository holds. Nothing else is pushed over it."""
_WEIGHTS = ["*.safetensors", "*.safetensors.index.json"]
"""An upload takes the place of all earlier ones: another number of shards has other names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """One repository that is there and may be written."""

    name: str
    """``OWNER/NAME``."""
    kind: Kind

    @classmethod
    def open(cls, push: str | None, *, kind: Kind, public: bool, holds: str) -> "Repository | None":
        """The repository of ``--push``, made where it is missing; None without the option. Called before any work.

        Raises:
            InputError: the name is none, no token may write there, or it holds something else than ``holds``.
            OutageError: the hub does not answer.
        """
        if push is None:
            if public:
                raise InputError("--public says how --push OWNER/NAME makes its repository; give both or neither")
            return None
        from huggingface_hub import HfApi
        from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

        with _asking_for(push):
            validate_repo_id(push)
            if "/" not in push:
                raise InputError(f"--push={push} must be OWNER/NAME, with the user or organisation that owns it")
            api = HfApi()
            if (api.whoami().get("auth", {}).get("accessToken") or {}).get("role") == "read":
                raise InputError(f"--push={push}: the token may only read; `hf auth login` with one that may write")
            api.create_repo(push, repo_type=kind, private=not public, exist_ok=True)
            found = api.model_info(push) if kind == "model" else api.dataset_info(push)
        if found.private == public:
            is_now, hint = ("private", "leave --public out") if public else ("public", "--public says that you mean it")
            raise InputError(f"--push={push} exists and is {is_now}; {hint}, or change that on the hub")
        files = [file.rfilename for file in found.siblings or () if file.rfilename != ".gitattributes"]
        held = found.card_data.get(HOLDS) if found.card_data else None
        if files and held != holds:
            there = f"holds {held!r}" if held else f"has files of somebody else's ({files[0]}, ...)"
            raise InputError(f"--push={push} {there}, and this is {holds!r}; name another repository")
        return cls(name=push, kind=kind)

    def push(self, folder: Path, *, kept: str = "") -> str:
        """Upload a folder; returns the repository's address. ``kept``: where it all is, if not in ``folder``.

        Raises:
            InputError, OutageError: the hub refused it or did not answer.
        """
        from huggingface_hub import HfApi

        api, prefix = HfApi(), "" if self.kind == "model" else "datasets/"
        try:
            with _asking_for(self.name):
                api.upload_folder(repo_id=self.name, repo_type=self.kind, folder_path=folder, delete_patterns=_WEIGHTS)
        except (InputError, OutageError) as error:
            error.add_note(f"what was made is in {kept or folder}; `hf upload` uploads it without making it again")
            raise
        return f"{api.endpoint}/{prefix}{self.name}"

    def push_files(self, files: Sequence[Path], *, card: Path) -> str:
        """Upload files, and their card as the README; see ``push``."""
        with tempfile.TemporaryDirectory() as folder:
            for name, file in [(README, card), *((file.name, file) for file in files)]:
                (Path(folder) / name).symlink_to(file.absolute())
            return self.push(Path(folder), kept=", ".join(map(str, (*files, card))))


@contextmanager
def _asking_for(name: str) -> Iterator[None]:
    """Turn the library's errors into ours."""
    from huggingface_hub import errors

    place = f"--push={name}"
    try:
        yield
    except InputError:
        raise
    except errors.HFValidationError as error:
        raise InputError(f"{place} must be OWNER/NAME: {_line(error)}") from error
    except errors.LocalTokenNotFoundError as error:
        raise InputError(f"{place} needs a token of the hub and finds none; `hf auth login`, or HF_TOKEN") from error
    except UnicodeError as error:  # a ValueError too, before anything is sent
        raise InputError(f"{place}: the token holds characters that no token has; `hf auth login`") from error
    except (errors.HfHubHTTPError, ValueError) as error:  # the latter of a card's front matter
        if isinstance(error, errors.HfHubHTTPError) and error.response.status_code not in (400, 401, 403, 404):
            raise OutageError(f"{place}: the hub failed: {_line(error)}; repeat the command later") from error
        raise InputError(f"{place}: the hub refuses: {_line(error)}; see `hf auth whoami`") from error
    except (errors.HTTPError, OSError) as error:  # type: ignore[attr-defined]  # httpx's, with which it asks
        raise OutageError(f"{place}: no answer of the hub: {_line(error)}; see network and HF_ENDPOINT") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def encoded(card: "RepoCard") -> bytes:
    """The content of a card's file, made to be passed on; half characters, which data may hold, become "?"."""
    return f"{portable(str(card)).rstrip()}\n".encode("utf-8", "replace")

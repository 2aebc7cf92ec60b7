"""Cards of question sets in the form of the Hugging Face hub, and what other cards say."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..jobs.hub import README, Kind, Repository, encoded
from ..stats.tables import table_with_head

_SIZES = {10**3: "n<1K", 10**4: "1K<n<10K", 10**5: "10K<n<100K", 10**6: "100K<n<1M", 10**7: "1M<n<10M"}


def card_path(output: Path) -> Path:
    """The card beside a set; it is the README where the set is pushed."""
    return output.with_name(f"{output.name}.card.md")


def repository_for(output: Path, push: str | None, *, public: bool) -> Repository | None:
    """Where a set is to be pushed, see ``Repository.open``."""
    return Repository.open(push, kind="dataset", public=public, holds=_holds(output))


def _holds(output: Path) -> str:
    return f"questions {output.name}"


def dataset_card(
    output: Path,
    template: Path,
    *,
    num_rows: int,
    sources: Iterable[Sequence[object]],
    splits: Mapping[str, Path] | None = None,
    **values: Any,
) -> bytes:
    """The card of a set.

    Args:
        output: the file of the set.
        template: what follows the front matter, in jinja; it gets ``values``, ``name``, ``num_rows``, ``sources`` with
            the licence of each at the end, and ``table``.
        num_rows: rows of all splits.
        sources: each begins with its name. The front matter has their licences where all state one.
        splits: files by split; without them ``output`` is "train".
    """
    from huggingface_hub import DatasetCard, DatasetCardData

    files = [{"split": split, "path": file.name} for split, file in (splits or {"train": output}).items()]
    licensed = [(*source, stated_license(str(source[0])) or "not stated") for source in sources]
    stated = sorted({str(source[-1]) for source in licensed})
    data = DatasetCardData(
        license=None if "not stated" in stated or not stated else stated[0] if len(stated) == 1 else stated,
        task_categories=["text-generation"],
        size_categories=[next((name for bound, name in _SIZES.items() if num_rows < bound), "n>10M")],
        tags=["code-a1", "code", "reinforcement-learning"],
        configs=[{"config_name": "default", "data_files": files}],
        code_a1=_holds(output),
    )
    text = "---\n{{ card_data }}\n---\n" + template.read_text(encoding="utf-8")
    given = {"name": output.name, "num_rows": num_rows, "sources": licensed, "table": table, **values}
    return encoded(DatasetCard.from_template(data, template_str=text, **given))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, for a card's template."""
    return table_with_head([heads, *(tuple(map(str, row)) for row in rows)]).markdown()


def stated_license(place: str, *, kind: Kind = "dataset") -> str | None:
    """What the front matter of a set's or a model's card says; None where there is no card, or it says nothing.

    Args:
        place: a folder with a README.md; a file with a card beside it, or in such a folder; or an id of the hub, of
            which only this machine's cache is asked. All may end in ``:split``.
        kind: of the id.
    """
    from huggingface_hub import metadata_load, try_to_load_from_cache

    path = Path(place if Path(place).exists() else place.rpartition(":")[0] or place)
    folder = path if path.is_dir() else path.parent
    cards = [card_path(path), folder / README]
    if not path.exists() and not path.is_absolute() and place.count("/") <= 1:
        cards = [Path(str(try_to_load_from_cache(str(path), README, repo_type=kind)))]
    for card in cards:
        with contextlib.suppress(OSError, ValueError, yaml.YAMLError):
            if isinstance(found := (metadata_load(card) or {}).get("license"), str):
                return found
    return None

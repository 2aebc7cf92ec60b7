"""Sets as parquet, and their cards in the form of the Hugging Face hub, ready to be the README.md of a set."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml

from ..files import portable, replacing
from ..stats.tables import table_with_head

README = "README.md"
_FRONT_MATTER = "---\n{{ card_data }}\n---\n"
_NOT_STATED = "not stated"


def write_parquet(path: Path, rows: Sequence[Mapping[str, object]], schema: Any = None) -> None:
    """Write a set, whole or not at all; without a schema the types are those of the rows."""
    import pyarrow  # here: `--help` does without
    import pyarrow.parquet

    with replacing(path) as partial:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), partial)


def card_path(output: Path) -> Path:
    """The card beside a set."""
    return output.with_name(f"{output.name}.card.md")


def dataset_card(
    output: Path,
    template: Path,
    *,
    sources: Iterable[Sequence[object]],
    splits: Mapping[str, Path] | None = None,
    **values: Any,
) -> bytes:
    """The content of a set's card.

    Args:
        output: the file of the set.
        template: the text after the front matter, in jinja. It gets ``values``, ``name``, ``table``, and ``sources``
            with the licence of each at the end.
        sources: each begins with its name. The front matter has their licences where all state one.
        splits: files by split; without them ``output`` is "train".
    """
    from huggingface_hub import DatasetCard, DatasetCardData  # here: half a second that few commands need

    files = [{"split": split, "path": file.name} for split, file in (splits or {"train": output}).items()]
    licensed = [(*source, stated_license(str(source[0])) or _NOT_STATED) for source in sources]
    licenses = sorted({str(source[-1]) for source in licensed})
    data = DatasetCardData(
        license=_joint_license(licenses),
        task_categories=["text-generation"],
        tags=["code-a1", "code", "reinforcement-learning"],
        configs=[{"config_name": "default", "data_files": files}],
    )
    card = DatasetCard.from_template(
        data,
        template_str=_FRONT_MATTER + template.read_text(encoding="utf-8"),
        name=output.name,
        sources=licensed,
        table=table,
        **values,
    )
    return encoded(card)


def _joint_license(licenses: list[str]) -> str | list[str] | None:
    if not licenses or _NOT_STATED in licenses:
        return None
    return licenses if len(licenses) > 1 else licenses[0]


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, for a card's template."""
    return table_with_head([heads, *(tuple(map(str, row)) for row in rows)]).markdown()


def encoded(card: object) -> bytes:
    """The content of a card's file, without this machine's folders; half characters of the data become "?"."""
    return f"{portable(str(card)).rstrip()}\n".encode("utf-8", "replace")


def stated_license(place: str, *, kind: Literal["model", "dataset"] = "dataset") -> str | None:
    """The licence in the front matter of a set's or a model's card; None where it states none, or there is no card.

    Args:
        place: a folder with a README.md; a file with a card beside it, or in such a folder; or an id of the hub, for
            which only this machine's cache is asked. All may end in ``:split``.
        kind: of the id.
    """
    from huggingface_hub import metadata_load, try_to_load_from_cache

    path = Path(place if Path(place).exists() else place.rpartition(":")[0] or place)
    folder = path if path.is_dir() else path.parent
    cards = [card_path(path), folder / README]
    for card in cards:
        with contextlib.suppress(OSError, ValueError, yaml.YAMLError):
            if not path.exists():  # an id of the hub; of anything else it is a ValueError
                card = Path(str(try_to_load_from_cache(str(path), README, repo_type=kind)))
            stated = (metadata_load(card) or {}).get("license")
            if isinstance(stated, str):
                return stated
    return None

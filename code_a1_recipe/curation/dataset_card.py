"""Sets as parquet, and their cards in the form of the Hugging Face hub, ready to be the README.md of a set."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..files import portable, replacing
from ..stats.tables import table_with_head


def write_parquet(path: Path, rows: Sequence[Mapping[str, object]], schema: Any = None) -> None:
    """Write a set, whole or not at all; without a schema the types are those of the rows."""
    import pyarrow  # here: `--help` does without
    import pyarrow.parquet

    with replacing(path) as partial:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), partial)


def dataset_card(
    output: Path,
    template: Path,
    *,
    splits: Mapping[str, Path] | None = None,
    **values: Any,
) -> bytes:
    """The content of a set's card. Its owner adds the licence.

    Args:
        output: the file of the set.
        template: the text after the front matter, in jinja. It gets ``values``, ``name`` and ``table``.
        splits: files by split; without them ``output`` is "train".
    """
    from huggingface_hub import DatasetCard, DatasetCardData  # here: half a second that few commands need

    files = [{"split": split, "path": file.name} for split, file in (splits or {"train": output}).items()]
    data = DatasetCardData(
        task_categories=["text-generation"],
        tags=["code-a1", "code", "reinforcement-learning"],
        configs=[{"config_name": "default", "data_files": files}],
    )
    front_matter = "---\n{{ card_data }}\n---\n"
    card = DatasetCard.from_template(
        data,
        template_str=front_matter + template.read_text(encoding="utf-8"),
        name=output.name,
        table=table,
        **values,
    )
    return encoded(card)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, for a card's template."""
    return table_with_head([heads, *(map(str, row) for row in rows)]).markdown()


def encoded(card: object) -> bytes:
    """The content of a card's file, without this machine's folders; half characters of the data become "?"."""
    return f"{portable(str(card)).rstrip()}\n".encode("utf-8", "replace")

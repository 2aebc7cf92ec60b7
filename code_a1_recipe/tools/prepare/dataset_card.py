"""Writes data sets as parquet files, and cards for them. A card is the README.md of a set on the Hugging Face hub."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...files import portable, replacing
from ...stats.tables import table_with_head


def write_parquet(path: Path, rows: Sequence[Mapping[str, object]], schema: Any = None) -> None:
    """Write a parquet file, whole or not at all. Without a schema, pyarrow infers the types from the rows."""
    import pyarrow  # imported here, so that `--help` does not wait for it
    import pyarrow.parquet

    arrow_table = pyarrow.Table.from_pylist(rows, schema)
    with replacing(path) as partial:
        pyarrow.parquet.write_table(arrow_table, partial)


def dataset_card(
    template: Path,
    splits: Mapping[str, Path],
    **values: Any,
) -> bytes:
    """Make the content of a data set's card. The card names no licence, because only the set's owner can choose one.

    Args:
        template: the text after the front matter, in jinja. The template can use ``values``, ``name`` and ``table``.
        splits: split -> file. The set is named after the file of the split "train".
        values: further variables of the template.
    """
    files = [{"split": split, "path": file.name} for split, file in splits.items()]
    front_matter = {
        "task_categories": ["text-generation"],
        "tags": ["code-a1", "code", "reinforcement-learning"],
        "configs": [{"config_name": "default", "data_files": files}],
    }
    return card_file(front_matter, template, name=splits["train"].name, **values)


def card_file(front_matter: Mapping[str, Any], template: Path, **values: Any) -> bytes:
    """Make the content of a card's file. Lone surrogates become "?", and ``portable`` shortens paths of this machine.

    Args:
        front_matter: metadata for the hub; a key whose value is None is left out.
        template: the text after the front matter, in jinja. The template can use ``values`` and ``table``.
        values: further variables of the template.
    """
    # imported here, because the import takes half a second, and few commands need it
    from huggingface_hub import CardData, RepoCard

    text = "---\n{{ card_data }}\n---\n" + template.read_text(encoding="utf-8")
    card = RepoCard.from_template(
        CardData(**front_matter),
        template_str=text,
        table=table,
        **values,
    )
    return f"{portable(str(card)).rstrip()}\n".encode("utf-8", "replace")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a Markdown table, for the templates of cards."""
    texts = [list(map(str, row)) for row in rows]
    return table_with_head([heads, *texts]).markdown()

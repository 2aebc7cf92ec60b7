"""Sets as parquet, and their cards in the form of the Hugging Face hub, ready to be the README.md of a set."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...files import portable, replacing
from ...stats.tables import table_with_head


def write_parquet(path: Path, rows: Sequence[Mapping[str, object]], schema: Any = None) -> None:
    """Write a set, whole or not at all; without a schema the types are those of the rows."""
    import pyarrow  # here: `--help` does without
    import pyarrow.parquet

    with replacing(path) as partial:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), partial)


def dataset_card(
    template: Path,
    splits: Mapping[str, Path],
    **values: Any,
) -> bytes:
    """The content of a set's card. Its owner adds the licence.

    Args:
        template: the text after the front matter, in jinja. It gets ``values``, ``name`` and ``table``.
        splits: the set's files by split; that of "train" gives the name.
    """
    files = [{"split": split, "path": file.name} for split, file in splits.items()]
    front_matter = {
        "task_categories": ["text-generation"],
        "tags": ["code-a1", "code", "reinforcement-learning"],
        "configs": [{"config_name": "default", "data_files": files}],
    }
    return card_file(front_matter, template, name=splits["train"].name, **values)


def card_file(front_matter: Mapping[str, Any], template: Path, **values: Any) -> bytes:
    """The content of a card's file, without this machine's folders; half characters of the data become "?".

    Args:
        front_matter: the hub's metadata; keys without a value are left out.
        template: the text after it, in jinja. It gets ``values`` and ``table``.
    """
    from huggingface_hub import CardData, RepoCard  # here: half a second that few commands need

    text = "---\n{{ card_data }}\n---\n" + template.read_text(encoding="utf-8")
    card = RepoCard.from_template(
        CardData(**front_matter),
        template_str=text,
        table=table,
        **values,
    )
    return f"{portable(str(card)).rstrip()}\n".encode("utf-8", "replace")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, for a card's template."""
    return table_with_head([heads, *(map(str, row) for row in rows)]).markdown()

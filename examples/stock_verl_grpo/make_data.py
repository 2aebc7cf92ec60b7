"""Writes questions as parquet files for verl's own dataset, and a link to the tiny model.

python make_data.py FOLDER
"""

import json
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet

from code_a1_recipe.algorithm.prompts import render
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.data.reader import load_questions
from code_a1_recipe.micro_world import ensure_assets


def row(question: Question, index: int) -> dict[str, object]:
    """Make one row: the prompt as chat messages, and the data for the judge, which the model never sees."""
    truth = {
        "reference": question.reference,
        "tests": question.tests,
        "entry_points": question.entry_points,
    }
    return {
        "data_source": question.data_source,
        "prompt": render("micro_code", prompt=question.prompt),
        "reward_model": {"style": "rule", "ground_truth": json.dumps(truth)},
        "extra_info": {"index": index, "role": "code", "id": question.id},
    }


def main(folder: Path) -> None:
    assets = ensure_assets()
    folder.mkdir(parents=True, exist_ok=True)
    for name, source, limit in (("train", assets.train_file, 64), ("val", assets.val_file, 48)):
        questions = load_questions(source)[:limit]
        rows = [row(question, index) for index, question in enumerate(questions)]
        table = pyarrow.Table.from_pylist(rows)
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    model = folder / "model"
    model.unlink(missing_ok=True)
    model.symlink_to(assets.code_model)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

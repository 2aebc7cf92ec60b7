"""Responses of two real models to MBPP questions, from text to reward: what toy models never write.

``tests/data/real_responses.jsonl`` holds what SmolLM2-135M-Instruct and Qwen2.5-Coder-0.5B-Instruct (4 bit) wrote at
temperature 1.0 to the prompts ``chat_v2`` and to an older wording, with what was read from each response and, per term,
its reward. After a change that is meant, ``python tests/golden/reward_fns/test_real_responses.py MBPP.jsonl`` writes
the figures anew; look at the difference before you keep it.
"""

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reward_fns import ExtractionFailure, extract_candidate, extract_suite
from reward_fns.verl_entry import compute_score

FILE = Path(__file__).parents[2] / "data/real_responses.jsonl"
NUM_CASES, NUM_JUDGED = 4, 80


def _rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def _found(row: dict[str, Any]) -> Any:
    """A program, the asserts of a suite, or the reason why there is neither."""
    found = extract_candidate(row["text"]) if row["role"] == "code" else extract_suite(row["text"])
    return found.reason if isinstance(found, ExtractionFailure) else found if row["role"] == "code" else list(found)


def _scores(rows: list[dict[str, Any]], mbpp: Path) -> list[dict[str, float]]:
    problems = {one["task_id"]: one for one in map(json.loads, mbpp.read_text().splitlines())}

    def score(row: dict[str, Any]) -> dict[str, float]:
        problem = problems[row["task_id"]]
        truth = {"reference": problem["code"], "prelude": problem["test_setup_code"], "tests": problem["test_list"]}
        if row["role"] == "test":
            truth["candidate"] = row["candidate"]
        return compute_score("mbpp", row["text"], truth, {"role": row["role"]}, num_cases=NUM_CASES)

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(score, rows))


def test_what_is_read_from_each_response():
    wrong = [(row["text"], row["found"], _found(row)) for row in _rows() if _found(row) != row["found"]]
    assert wrong == []


def test_the_file_has_what_only_real_models_write():
    rows = _rows()
    assert len(rows) >= 200
    assert len({(row["model"], row["role"]) for row in rows}) == 4
    reasons = Counter(row["found"] for row in rows if isinstance(row["found"], str))
    texts = [row["text"] for row in rows]
    assert {"unclosed_block", "no_asserts"} <= set(reasons)
    for piece in ("print(", "input(", ">>>", "->", "import "):
        assert any(piece in text for text in texts), piece
    assert any(text.count("```") > 2 for text in texts)
    assert any(not text.startswith("```") and "```" in text for text in texts)  # prose before the program


@pytest.mark.shared
def test_each_response_has_the_reward_that_it_had(shared_dir, share_of):
    rows = share_of(_rows(), NUM_JUDGED)
    scores = _scores(rows, shared_dir / "data/mbpp.jsonl")
    wrong = [
        (row["text"], row["score"], score)
        for row, score in zip(rows, scores, strict=True)
        if score != pytest.approx(row["score"], rel=1e-6)
    ]
    assert wrong == []


if __name__ == "__main__":
    kept = _rows()
    for each, values in zip(kept, _scores(kept, Path(sys.argv[1])), strict=True):
        each |= {"found": _found(each), "score": values}
    FILE.write_text("".join(json.dumps(each) + "\n" for each in kept), encoding="utf-8")

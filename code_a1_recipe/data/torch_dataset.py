"""Questions as a torch dataset for verl's dataloader (`data.custom_cls`)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from torch.utils.data import Dataset

from ..algorithm.question import Question
from ..errors import InputError
from .reader import load_questions


class QuestionDataset(Dataset[dict[str, Any]]):
    """Questions of ``data.train_files`` or ``data.val_files``. Item ``i`` is ``{"question": Question, "index": i}``.

    Args:
        data_files: a path or several. The order of the rows is kept.
        config: verl's ``data`` block, of which ``adapter``, ``columns`` and ``left_out`` are read.
        max_samples: number of questions that are kept, from the first one on; -1: all.

    Raises:
        InputError: a row cannot be used; the message names file, row and column. Or an id stands twice.
    """

    def __init__(
        self,
        data_files: str | Sequence[str],
        tokenizer: Any = None,
        config: Any = None,
        processor: Any = None,
        max_samples: int = -1,
    ) -> None:
        options = config or {}
        adapter, columns = options.get("adapter", "auto"), dict(options.get("columns") or {})
        questions = []
        for path in [data_files] if isinstance(data_files, str) else data_files:
            questions += load_questions(path, adapter=adapter, columns=columns)
        counts = Counter(question.id for question in questions)
        if repeated := [identity for identity, count in counts.items() if count > 1]:
            raise InputError(
                f"{data_files}: id {repeated[0]!r} stands for {counts[repeated[0]]} questions; ids must be unique over "
                "all files of a dataset, since the Mistake Book is kept by them"
            )
        left_out = set(options.get("left_out") or ())
        questions = [question for question in questions if question.id not in left_out]
        self.questions: list[Question] = questions if max_samples < 0 else questions[:max_samples]

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"question": self.questions[index], "index": index}

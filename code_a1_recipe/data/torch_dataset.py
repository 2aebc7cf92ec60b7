"""A torch dataset of questions for verl's dataloader (``data.custom_cls``)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from torch.utils.data import Dataset

from ..algorithm.question import Question
from ..errors import InputError
from .reader import load_questions


class QuestionDataset(Dataset[dict[str, Any]]):
    """Questions of ``data.train_files`` or ``data.val_files``. Item ``i`` is ``{"question": Question, "index": i}``.

    verl passes ``tokenizer`` and ``processor`` to every dataset; both are ignored.

    Args:
        data_files: one path or several. The rows keep their order.
        tokenizer: ignored.
        config: verl's ``data`` block. Only ``adapter``, ``columns`` and ``left_out`` are read.
        processor: ignored.
        max_samples: only the first ``max_samples`` questions are kept; -1 keeps all questions.

    Raises:
        InputError: a row cannot be used, or two rows have the same id. The message names the file and the row or id.
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
        adapter = options.get("adapter", "auto")
        columns = dict(options.get("columns") or {})
        questions = []
        for path in [data_files] if isinstance(data_files, str) else data_files:
            questions += load_questions(path, adapter=adapter, columns=columns)
        for identity, count in Counter(question.id for question in questions).items():
            if count > 1:
                raise InputError(
                    f"{data_files}: {count} questions have the id {identity!r}; ids must be unique over all files of a "
                    "dataset, because the Mistake Book finds the cases of a question by its id"
                )
        left_out = set(options.get("left_out") or ())
        questions = [question for question in questions if question.id not in left_out]
        self.questions: list[Question] = questions if max_samples < 0 else questions[:max_samples]

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"question": self.questions[index], "index": index}

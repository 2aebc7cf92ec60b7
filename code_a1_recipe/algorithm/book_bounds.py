"""The size of a Mistake Book: its bounds, what it holds, and which question has most cases."""

import heapq
from dataclasses import dataclass, field

from .opponents import OpponentSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class BookBounds:
    """The most cases and lessons that a book keeps, each at least 1; None: no bound."""

    max_cases_per_question: int | None = None
    max_size: int | None = None
    """Of all questions together."""
    max_lessons: int = 256
    """Newest lessons that are kept (``hindsight``)."""
    opponents: OpponentSettings = field(default_factory=OpponentSettings)
    """Programs and suites of earlier policies that are kept, and which of them are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookStats:
    """The size of a book, for metrics."""

    num_questions: int
    num_cases: int
    num_cells: int
    """Filled cells, summed over questions."""
    total_frequency: int
    max_frequency: int


class QuestionSizes:
    """Cases by question, with the largest question at hand.

    In the mean over many calls each takes time with the logarithm of the number of questions: the heap has items that
    are no longer true, which go when they come to its head.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        """(-cases, question id)"""

    def note(self, question_id: str, size: int) -> None:
        """The question has ``size`` cases now; with 0 it is forgotten."""
        if size == self._sizes.get(question_id, 0):
            return
        if size:
            self._sizes[question_id] = size
            heapq.heappush(self._heap, (-size, question_id))
        else:
            del self._sizes[question_id]
        if len(self._heap) > 2 * len(self._sizes) + 64:
            self._heap = [(-size, name) for name, size in self._sizes.items()]
            heapq.heapify(self._heap)

    def largest(self) -> tuple[str, int]:
        """The question with most cases, of equal ones the first in the order of ids; how many more than the next."""
        size = self._most()
        head = heapq.heappop(self._heap)
        surplus = size - self._most()
        heapq.heappush(self._heap, head)
        return head[1], surplus

    def _most(self) -> int:
        heap = self._heap
        while heap and -heap[0][0] != self._sizes.get(heap[0][1]):
            heapq.heappop(heap)
        return -heap[0][0] if heap else 0

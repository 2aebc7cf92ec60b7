"""How a Mistake Book counts, how much it keeps, and which question has most cases."""

import heapq
from typing import Annotated

from .settings_block import Block, Count, one_of

IN_TURN, NET = "in_turn", "net"


class BookRules(Block):
    """How a book counts, and the most cases and lessons that it keeps; None: no bound."""

    counting: Annotated[str, one_of((IN_TURN, NET))] = IN_TURN
    """Passed replays of a step are subtracted before its failures are added, or only their difference counts."""
    max_cases_per_question: Count | None = None
    """Cases kept of one question."""
    max_size: Count | None = None
    """Cases kept of all questions together."""
    max_lessons: Count = 256
    """Newest lessons kept, with hindsight.weight."""


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

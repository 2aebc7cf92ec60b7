"""How much a Mistake Book keeps, and which question has most cases."""

import heapq

from .settings_block import Block, Count


class BookRules(Block):
    """The most cases that a book keeps; None: no bound."""

    max_size: Count | None = None
    """Cases kept of all questions together."""


class QuestionSizes:
    """Number of cases by question, with the largest question at hand.

    On average a call takes time with the logarithm of the number of questions.
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
        # A heap cannot drop an item in its middle: outdated ones stay until they reach its head or outnumber the rest.
        if len(self._heap) > 2 * len(self._sizes) + 64:
            self._heap = [(-size, name) for name, size in self._sizes.items()]
            heapq.heapify(self._heap)

    def largest(self) -> tuple[str, int]:
        """The question with most cases, of equal ones the first in the order of ids; how many more than the next."""
        size = self._largest_size()
        head = heapq.heappop(self._heap)
        surplus = size - self._largest_size()
        heapq.heappush(self._heap, head)
        return head[1], surplus

    def _largest_size(self) -> int:
        heap = self._heap
        while heap and -heap[0][0] != self._sizes.get(heap[0][1]):
            heapq.heappop(heap)
        return -heap[0][0] if heap else 0

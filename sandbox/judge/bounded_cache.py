"""A cache with a limit of bytes. Each entry belongs to a question and a text."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

EntryT = TypeVar("EntryT")
Key = tuple[str, str]
_ENTRY_BYTES = 1024
"""Estimated size of an entry without its content."""


class BoundedCache(Generic[EntryT]):
    """Keeps one entry for each question and text, and drops the least recently used entries first. Thread-safe.

    Args:
        make: called without arguments to make a missing entry.
        max_bytes: limit for the bytes of all entries together. A single entry may exceed this limit.
    """

    def __init__(self, make: Callable[[], EntryT], *, max_bytes: int) -> None:
        self._make = make
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, EntryT] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._bytes = 0

    def find(self, question_id: str, text: str) -> tuple[Key, EntryT]:
        """Return the key and the entry of a text. If the entry is missing, make it."""
        data = text.encode("utf-8", "surrogatepass")
        key = (question_id, hashlib.sha256(data).hexdigest())
        with self._lock:
            if key not in self._entries:
                self._entries[key] = self._make()
                self._resize(key, 0)
            self._entries.move_to_end(key)
            return key, self._entries[key]

    def note_size(self, key: Key, entry: EntryT, size: int) -> bool:
        """Set the size of an entry's content in bytes. Return False if the entry has been dropped meanwhile."""
        with self._lock:
            if self._entries.get(key) is not entry:
                return False
            self._resize(key, size)
            return True

    def forget(self, question_id: str) -> None:
        """Drop the entries of a question."""
        with self._lock:
            for key in list(self._entries):
                if key[0] == question_id:
                    self._drop(key)

    def _resize(self, key: Key, size: int) -> None:
        size += _ENTRY_BYTES
        self._bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        while self._bytes > self._max_bytes and len(self._entries) > 1:
            oldest = next(iter(self._entries))
            self._drop(oldest)

    def _drop(self, key: Key) -> None:
        del self._entries[key]
        self._bytes -= self._sizes.pop(key)

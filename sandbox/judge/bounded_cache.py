"""A cache of entries for programs of questions, limited by bytes."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

EntryT = TypeVar("EntryT")
Key = tuple[str, str]
_ENTRY_BYTES = 1024
"""Size of an entry without its content."""


class BoundedCache(Generic[EntryT]):
    """Entries by question and text. The least recently used entry is dropped first. Thread-safe.

    Args:
        make: makes a missing entry.
        max_bytes: limit of bytes for all entries together. The last entry stays, however large it is.
    """

    def __init__(self, make: Callable[[], EntryT], *, max_bytes: int) -> None:
        self._make = make
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, EntryT] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._bytes = 0

    def find(self, question_id: str, text: str) -> tuple[Key, EntryT]:
        """Return the key and the entry of a text. A missing entry is made."""
        key = (question_id, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
        with self._lock:
            if key not in self._entries:
                self._entries[key] = self._make()
                self._resize(key, 0)
            self._entries.move_to_end(key)
            return key, self._entries[key]

    def note_size(self, key: Key, entry: EntryT, size: int) -> bool:
        """Note how many bytes an entry holds by now. False means that the entry was dropped meanwhile."""
        with self._lock:
            if self._entries.get(key) is not entry:
                return False
            self._resize(key, size)
            return True

    def forget(self, question_id: str) -> None:
        """Drop the entries of a question."""
        with self._lock:
            for key in [key for key in self._entries if key[0] == question_id]:
                self._drop(key)

    def _resize(self, key: Key, size: int) -> None:
        self._bytes += size + _ENTRY_BYTES - self._sizes.get(key, 0)
        self._sizes[key] = size + _ENTRY_BYTES
        while self._bytes > self._max_bytes and len(self._entries) > 1:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Key) -> None:
        del self._entries[key]
        self._bytes -= self._sizes.pop(key)

"""Cache values by last use, bounded by bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Key = TypeVar("Key", bound="Hashable")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Values by key, the one unused longest goes first. Several threads may use one.

    capacity    bytes of values that it holds at most
    n_bytes  bytes of those it holds
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.n_bytes = 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: Key) -> bool:
        """Whether there is such a value; that does not use it."""
        return key in self._values

    def get(self, key: Key) -> Value | None:
        """The value, which is used by that; None when there is none."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Key, value: Value, n_bytes: int) -> None:
        """Store a value while there is room; a value larger than the capacity is not stored."""
        with self._lock:
            before = self._values.pop(key, None)
            if before is not None:
                self.n_bytes -= before[1]
            if n_bytes > self.capacity:
                return
            self._values[key] = value, n_bytes
            self.n_bytes += n_bytes
            while self.n_bytes > self.capacity:
                _, (_, oldest) = self._values.popitem(last=False)
                self.n_bytes -= oldest

    def drop(self, unwanted: Callable[[Key], bool]) -> None:
        """Let go of the values whose keys are unwanted."""
        with self._lock:
            for key in [key for key in self._values if unwanted(key)]:
                self.n_bytes -= self._values.pop(key)[1]

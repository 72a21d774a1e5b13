"""Filters by their text: clients ask with the same one again and again.

The filters that were asked for last are kept up to a bound on their texts, for a text of a client may be
megabytes long, and what is made of it is larger still. Filters in use, such as that of a pull that waits, are
found until their last use ends: pulls with the same text share one filter, which tests a message once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

from seglog.storage.threads import check_may_wait

F = TypeVar("F")

KEPT_CHARACTERS: Final = 1 << 20
"""Of the texts of all filters that are kept of one kind; a filter takes some 30 to 60 bytes a character."""
_EACH_CHARACTERS: Final = 256
"""What a filter counts beside its text."""
_LARGEST: Final = 8
"""A filter is kept that has at most the 8th part of all."""
_QUICK_CHARACTERS: Final = 1 << 14
"""A longer text is not compiled by a thread that must not wait."""


class KeptFilters(Generic[F]):
    """The filters of one kind. Any thread may call it.

    Args:
        make: Makes a filter of a text.
        most_characters: How much is kept.
    """

    def __init__(self, make: Callable[[str], F], most_characters: int = KEPT_CHARACTERS) -> None:
        self._make = make
        self._most = most_characters
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, F] = OrderedDict()
        self._used: WeakValueDictionary[str, F] = WeakValueDictionary()
        self.characters = 0
        """What those that are kept count."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, text: str) -> F:
        """Returns the filter of a text.

        Raises:
            InvalidArgumentError: The text is none.
            WouldWaitError: It is long, and the calling thread must not wait.
        """
        with self._lock:
            found = self._kept.get(text)
            if found is not None:
                self._kept.move_to_end(text)
                return found
            found = self._used.get(text)
        if found is None:
            if len(text) > _QUICK_CHARACTERS:
                check_may_wait()
            found = self._make(text)
        return self._keep(text, found)

    def _keep(self, text: str, made: F) -> F:
        with self._lock:
            found = self._used.setdefault(text, made)
            count = len(text) + _EACH_CHARACTERS
            if count * _LARGEST <= self._most and text not in self._kept:
                self._kept[text] = found
                self.characters += count
                while self.characters > self._most:
                    gone, _ = self._kept.popitem(last=False)
                    self.characters -= len(gone) + _EACH_CHARACTERS
            return found

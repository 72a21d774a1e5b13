"""A cache of filters by their text: clients send the same text with each pull.

The most recently used filters are kept, up to a bound on the length of their texts: a client's text may be
megabytes long, and the compiled filter is larger still. A filter in use, such as that of a held pull, is
found until its last use ends: pulls with the same text share one filter, which tests a message once.
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
"""Total characters of the texts kept of one kind; a filter takes some 30 to 60 bytes a character."""
_EACH_CHARACTERS: Final = 256
"""Characters that a filter counts besides its text."""
_LARGEST: Final = 8
"""A filter of more than the 8th part of the whole bound is not kept."""
_QUICK_CHARACTERS: Final = 1 << 14
"""A longer text is never compiled in a thread that must not wait."""


class KeptFilters(Generic[F]):
    """The filters of one kind. Any thread may call it.

    Args:
        make: Makes a filter from a text.
        most_characters: The bound on the characters that are kept.
    """

    def __init__(self, make: Callable[[str], F], most_characters: int = KEPT_CHARACTERS) -> None:
        self._make = make
        self._most = most_characters
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, F] = OrderedDict()
        self._used: WeakValueDictionary[str, F] = WeakValueDictionary()
        self.characters = 0
        """Characters that the kept filters count."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, text: str) -> F:
        """Returns the filter of a text.

        Raises:
            InvalidArgumentError: The text is not a valid filter.
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

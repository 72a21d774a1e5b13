"""Filters: the messages that a reader wants.

A read calls a filter twice: first with the tags codes of many queue units, without reading the log, and then
with each record that passed. Codes collide, so only the second test is exact. A broker that leaves the second
test to its clients, as RocketMQ does, uses :class:`TagFilter` with ``exact=False``.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from seglog.arguments import as_text, refusal
from seglog.errors import InvalidArgumentError
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import tags_code
from seglog.storage.kernels.calls.native_reads import new_tag_set
from seglog.storage.kernels.decode import decode_message

ALL: Final = "*"


class MessageFilter(Protocol):
    """A choice of messages."""

    def matches_codes(self, tags_codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Returns which units may lead to a wanted message; ``(n,)`` for ``(n,)``."""

    def matches(self, record: memoryview) -> bool:
        """Returns whether a record whose unit passed is wanted."""


class TagFilter:
    """Messages that have one of several tags.

    Attributes:
        tags: The tags.
        tag_set: The tags for native kernels, None without native kernels.

    Args:
        expression: ``TagA || TagB``.
        exact: Whether to compare the tag itself after its code.

    Raises:
        InvalidArgumentError: The expression names no tag, or none that can be stored.
    """

    def __init__(self, expression: str, *, exact: bool = True) -> None:
        as_text("expression", expression)
        self.tags = frozenset(tag.strip() for tag in expression.split("||") if tag.strip())
        if not self.tags:
            raise InvalidArgumentError(
                f"the filter {expression!r} names no tag", help="write 'TagA || TagB', or '*' for all"
            )
        self._codes = np.array(sorted({tags_code(tag) for tag in self.tags}), np.int64)
        try:
            self._wanted = {tag.encode() for tag in self.tags}
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(
                f"the filter {expression!r} is not valid text: {error.reason}"
            ) from error
        self._exact = exact
        self.tag_set = new_tag_set(self._codes.tolist(), self._wanted if exact else None)

    def matches_codes(self, tags_codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Compares codes."""
        found: npt.NDArray[np.bool_] = np.isin(tags_codes, self._codes)
        return found

    def matches(self, record: memoryview) -> bool:
        """Compares the tag itself if the filter is exact."""
        if not self._exact:
            return True
        return props.find_property(decode_message(record).properties_raw, b"TAGS") in self._wanted


def make_filter(wanted: str | MessageFilter | None) -> MessageFilter | None:
    """Returns the filter of an argument, None for all messages.

    Raises:
        InvalidArgumentError: It names no tag, or is no filter.
    """
    if isinstance(wanted, str):
        return None if wanted.strip() in (ALL, "") else TagFilter(wanted)
    if wanted is not None and not (hasattr(wanted, "matches_codes") and hasattr(wanted, "matches")):
        raise refusal("filter", wanted, "str or a MessageFilter")
    return wanted

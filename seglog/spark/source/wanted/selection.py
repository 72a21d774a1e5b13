"""The selection of messages: a mask over the rows of a walk."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.queue import MAX_BATCH_SIZE
from seglog.storage.format.record import INNER_BATCH
from seglog.storage.kernels.walk import Rows

Numbers = npt.NDArray[np.integer]
LEAST: Final = -(1 << 63)
MOST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Span:
    """A range of numbers, both ends included."""

    first: int = LEAST
    last: int = MOST

    @property
    def is_all(self) -> bool:
        """Whether every number is in it."""
        return self == Span()

    def and_from(self, first: int) -> Span:
        """Returns the part of it that is not below ``first``."""
        return replace(self, first=max(self.first, first))

    def and_to(self, last: int) -> Span:
        """Returns the part of it that is not above ``last``."""
        return replace(self, last=min(self.last, last))


ALL: Final = Span()
"""Every number."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions on messages.

    Attributes:
        topics: Their topics; None for any.
        topic_pattern: A pattern for the whole name of their topic; None for any.
        queues: Topic and queue id of their queues; None for any.
        store_times_ms: Their store times.
        starting: First selected queue offset of a queue, by topic and queue id; other queues are not limited.
        ending: First queue offset that is no longer selected, in the same way.
    """

    topics: frozenset[str] | None = None
    topic_pattern: re.Pattern[str] | None = None
    queues: frozenset[tuple[str, int]] | None = None
    store_times_ms: Span = ALL
    starting: Mapping[tuple[str, int], int] = field(default_factory=dict)
    ending: Mapping[tuple[str, int], int] = field(default_factory=dict)

    @property
    def names_queues(self) -> bool:
        """Whether some queues are excluded, or limited to a range."""
        of_all = (self.topics, self.topic_pattern, self.queues) == (None, None, None)
        return not (of_all and not self.starting and not self.ending)

    def has_topic(self, topic: str) -> bool:
        """Returns whether some queue of a topic may be selected."""
        if self.topics is not None and topic not in self.topics:
            return False
        if self.queues is not None and all(topic != named for named, _queue_id in self.queues):
            return False
        return self.topic_pattern is None or self.topic_pattern.fullmatch(topic) is not None

    def of_queue(self, topic: str, queue_id: int) -> Span | None:
        """Returns the selected queue offsets of a queue, None if there are none."""
        if not self.has_topic(topic) or (self.queues is not None and (topic, queue_id) not in self.queues):
            return None
        span = Span().and_from(self.starting.get((topic, queue_id), LEAST))
        if (topic, queue_id) in self.ending:
            span = span.and_to(self.ending[topic, queue_id] - 1)
        return span if span.first <= span.last else None


class Chooser:
    """Selects rows of a walk.

    Args:
        selection: The selection.
        queues: Topic and queue id by the rows' ``queue``; may grow.
        unwraps: Whether to include inner batches that begin before the selected range, and may extend into
            it.
    """

    def __init__(
        self, selection: Selection, queues: Sequence[tuple[str, int]], *, unwraps: bool = False
    ) -> None:
        self._selection = selection
        self._unwraps = unwraps
        self._queues = queues
        self._spans: npt.NDArray[np.int64] = np.empty((0, 2), np.int64)

    def choose(self, rows: Rows) -> Rows:
        """Returns the selected rows.

        Args:
            rows: ``(n,) ROW``.
        """
        if self._selection.names_queues:
            self._learn()
            spans = self._spans[rows["queue"]]
            at = rows["queue_offset"]
            firsts = spans[:, 0]
            if self._unwraps:
                # An inner batch may cover this many offsets; its messages are selected one by one later.
                is_batch = rows["sys_flag"] & INNER_BATCH != 0
                firsts = np.where(is_batch & (firsts > LEAST), firsts - MAX_BATCH_SIZE + 1, firsts)
            rows = rows[(at >= firsts) & (at <= spans[:, 1])]
        times = self._selection.store_times_ms
        if not times.is_all:
            at = rows["store_timestamp_ms"]
            rows = rows[(at >= times.first) & (at <= times.last)]
        return rows

    def has_offsets(self, queues: Numbers, offsets: Numbers) -> npt.NDArray[np.bool_]:
        """Returns which queue offsets of queues, given by their numbers, are selected; all ``(n,)``."""
        if not self._selection.names_queues:
            return np.ones(len(queues), np.bool_)
        self._learn()
        spans = self._spans[queues]
        return (offsets >= spans[:, 0]) & (offsets <= spans[:, 1])

    def _learn(self) -> None:
        new = self._queues[len(self._spans) :]
        if new:
            found = [self._selection.of_queue(*queue) for queue in new]
            nothing = Span(MOST, LEAST)
            learned = [(span.first, span.last) for span in (one or nothing for one in found)]
            self._spans = np.concatenate([self._spans, np.array(learned, np.int64)])

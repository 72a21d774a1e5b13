"""The ordinary way of reading a queue: every argument, every queue, and files in any state.

Plain reads are tried first; a read that they do not serve is done here. This module also registers queues and
filters with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from seglog.arguments import MAX_I64, as_int, as_text
from seglog.errors import InvalidNameError
from seglog.storage.files.os_errors import explain_os_error
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.names import MAX_QUEUE_ID, check_queue_id, check_topic
from seglog.storage.reads.fast_reads import FastReads
from seglog.storage.reads.get import GetResult, without_repairable
from seglog.storage.reads.message_filter import MessageFilter, make_filter
from seglog.storage.reads.open_queues import OpenQueues, StoreLog
from seglog.storage.reads.readings import QueueReading, Readings


class ReadCore(Protocol):
    """A writer or a reader of an open store, as reads use it."""

    @property
    def log(self) -> StoreLog:
        """Its log; :meth:`refresh` may replace it."""

    @property
    def queues(self) -> OpenQueues:
        """Its queues; :meth:`refresh` may replace the table."""

    def repairable(self, topic: str, queue_id: int) -> frozenset[int]:
        """Returns the queue offsets of a queue whose messages a repair would bring back."""

    def leave_front(self) -> bool:
        """Looks for log files that retention removed; returns whether there are any."""


class QueueReader:
    """Reads queues of one store.

    Args:
        core: The store.
        readings: The ways to read its queues.
        reads: Serves plain reads.
        check_open: Raises once the store is closed.
    """

    def __init__(
        self, core: ReadCore, readings: Readings, reads: FastReads, check_open: Callable[[], None]
    ) -> None:
        self._core = core
        self._readings = readings
        self._reads = reads
        self._check_open = check_open

    def get(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_count: int,
        filter: str | MessageFilter | None,  # noqa: A002 - RocketMQ's own word for it
        max_bytes: int,
    ) -> GetResult:
        """Reads as ``MessageStore.get`` does."""
        self._check_open()
        topic, queue_id = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        queue_offset = as_int("queue_offset", queue_offset, useful_to=MAX_I64)
        max_count, max_bytes = as_int("max_count", max_count, 1), as_int("max_bytes", max_bytes, 1)
        wanted = make_filter(filter)
        core = self._core
        reading = self._readings.of(core.queues, topic, queue_id)
        if reading is None:
            is_possible = _can_exist(topic, queue_id)
            status = GetStatus.NO_MESSAGE_IN_QUEUE if is_possible else GetStatus.NO_MATCHED_LOGIC_QUEUE
            return GetResult(status, 0, 0, 0)
        reading.offer(self._reads)
        if type(filter) is str:
            self._reads.know(filter, wanted)
        core.log.recheck()
        try:
            found = reading.get(core.log, queue_offset, max_count, wanted, max_bytes)
        except FileNotFoundError as error:
            if not self._has_left_front(topic, queue_id, reading, queue_offset + 1):
                raise explain_os_error(error) from error
        except OSError as error:
            raise explain_os_error(error) from error
        else:
            if not found.lost:
                return found
            if not self._has_left_front(topic, queue_id, reading, found.lost[0].start + 1):
                return without_repairable(found, reading.repairable(core.repairable(topic, queue_id)))
        # Retention removed the messages during this read: they are not lost. The queue begins behind them
        # now.
        return self.get(topic, queue_id, queue_offset, max_count, filter, max_bytes)

    def _has_left_front(self, topic: str, queue_id: int, reading: QueueReading, least_min: int) -> bool:
        """Returns whether a queue was replaced, or begins at ``least_min`` or later now."""
        self._core.leave_front()
        return reading.is_superseded(self._core.queues.find(topic, queue_id), least_min)


def _can_exist(topic: str, queue_id: int) -> bool:
    try:
        return bool(check_topic(topic)) and check_queue_id(queue_id) >= 0
    except InvalidNameError:
        return False

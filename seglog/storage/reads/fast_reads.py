"""Plain reads of an open store: by the native kernels if they can serve the store, otherwise in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES
from seglog.storage.kernels.calls.native_reads import new_reads
from seglog.storage.reads.get import MAX_FILTER_BYTES, MAX_TOTAL_BYTES, GetResult
from seglog.storage.reads.message_filter import MessageFilter, TagFilter
from seglog.storage.reads.open_queues import OpenPlainQueue, StoreLog
from seglog.storage.reads.sequential_reads import DEFAULT_MAX_COUNT, PlainReads

if TYPE_CHECKING:
    from seglog.storage.kernels import _native


class NativeReads:
    """The native plain reads, with queues, filters and logs passed as Python objects.

    Attributes:
        native: The native reads; the native calls of a store use them before they call Python.
        record_at: Returns the bytes of a record if a plain read can serve it.
        close: Ends all native reads.
    """

    def __init__(self, reads: _native.Reads[GetResult]) -> None:
        self.native = reads
        self.record_at = reads.record_at
        self.close = reads.close

    def try_get(self, *_arguments: object) -> None:
        """Returns None: the native calls have tried these reads already."""

    def add(self, topic: str, queue_id: int, queue: OpenPlainQueue) -> None:
        """Registers a queue that has maps."""
        if queue.maps is not None:
            self.native.add(topic, queue_id, queue.tail, queue.maps)

    def know(self, expression: str, wanted: MessageFilter | None) -> None:
        """Registers the tags of a filter expression."""
        self.native.know(expression, wanted.tag_set if isinstance(wanted, TagFilter) else None)

    def forget(self, _log: StoreLog) -> None:
        """Forgets all queues; the log of a writer stays the same."""
        self.native.forget()


FastReads: TypeAlias = NativeReads | PlainReads
"""The plain reads of one store; queues and filters are registered as they are first used."""


def open_reads(log: StoreLog) -> FastReads:
    """Returns the plain reads of a store.

    Args:
        log: The store's log.
    """
    native = new_reads(
        GetResult,
        TagFilter,
        (GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE),
        (log.tail, log.maps),
        (DEFAULT_MAX_COUNT, MAX_TOTAL_BYTES, MAX_FILTER_BYTES // CQ_UNIT_BYTES),
    )
    return PlainReads(log) if native is None else NativeReads(native)

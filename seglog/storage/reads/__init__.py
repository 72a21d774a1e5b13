"""Reads: from a queue offset, a time or a position of the log to records, without a copy of their bytes.

Holds RocketMQ's rules of a pull (``get``) for plain, batch and compaction queues, queues as numpy arrays
(``queue_view``), and the reader of a store that another process writes. ``readings`` has a class a kind of
queue, so that ``queue_reader`` asks for none. Memory that was handed out is counted in
``buffer_leases`` until it is given back.

Called by ``store``; writes nothing.
Truth: a record's own bytes. A unit that leads elsewhere is skipped and named.
"""

from __future__ import annotations

from seglog.storage.reads.byte_column import ByteColumn
from seglog.storage.reads.export_row import NUMBERS, MessageRow, from_fields, inflated, row_of, to_fields
from seglog.storage.reads.ext_codes import ExtFiles, FoundExt
from seglog.storage.reads.get import GetResult
from seglog.storage.reads.message_filter import MessageFilter, TagFilter, make_filter
from seglog.storage.reads.queue_view import COLUMNS, QueueView

__all__ = [
    "COLUMNS",
    "NUMBERS",
    "ByteColumn",
    "ExtFiles",
    "FoundExt",
    "GetResult",
    "MessageFilter",
    "MessageRow",
    "QueueView",
    "TagFilter",
    "from_fields",
    "inflated",
    "make_filter",
    "row_of",
    "to_fields",
]

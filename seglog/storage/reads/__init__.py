"""Reads: find records by queue offset, time or physical offset, and return them without copying their bytes.

Holds RocketMQ's rules of a pull (``get``) for plain, batch and compaction queues, queues as numpy arrays
(``queue_view``), and the reader of a store that another process writes. ``readings`` has one class for each
kind of queue, so that ``queue_reader`` needs no test for the kind. ``buffer_leases`` counts memory that
callers hold until they release it.

Called by ``store``; writes nothing.
Truth: a record's own bytes. A read skips a unit that leads to no such record, and reports its queue offset.
"""

from seglog.storage.reads.byte_column import ByteColumn as ByteColumn
from seglog.storage.reads.export_row import NUMBERS as NUMBERS
from seglog.storage.reads.export_row import MessageRow as MessageRow
from seglog.storage.reads.export_row import from_fields as from_fields
from seglog.storage.reads.export_row import inflated as inflated
from seglog.storage.reads.export_row import row_of as row_of
from seglog.storage.reads.export_row import to_fields as to_fields
from seglog.storage.reads.ext_codes import ExtFiles as ExtFiles
from seglog.storage.reads.ext_codes import FoundExt as FoundExt
from seglog.storage.reads.get import GetResult as GetResult
from seglog.storage.reads.message_filter import MessageFilter as MessageFilter
from seglog.storage.reads.message_filter import TagFilter as TagFilter
from seglog.storage.reads.message_filter import make_filter as make_filter
from seglog.storage.reads.queue_view import COLUMNS as COLUMNS
from seglog.storage.reads.queue_view import QueueView as QueueView

"""Frames for the columnar reader, which is in Java (``seglog/spark/columnar``).

A frame has the places of records that were walked and verified, and the reader makes columns of the mapped
log when they are requested: no body is sent through a socket. Data that only Python can make is sent as
columns: messages of inner batches, inflated bodies, IPv6 addresses, stores at an address, and tables. A frame
begins with its kind, an int. Numbers are in native byte order, because both sides are on one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from seglog.spark.remote_files import is_address
from seglog.spark.source.read.batches import Constants, Messages
from seglog.spark.source.values.columns import Wanted
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import BORN_HOST_V6, STORE_HOST_V6

FRAMES: Final = pa.schema([("frame", pa.binary())])
_ROWS: Final = 1
_COLUMNS: Final = 2
_WIDE_HOSTS: Final = {"bornHost": BORN_HOST_V6, "storeHost": STORE_HOST_V6}
_MOST_BYTES: Final = 32 << 20
"""Most bytes of columns in a frame, unless a single row is longer."""


def can_be_mapped(path: str, root: Path) -> bool:
    """Returns whether Java can map the log of a store: only ASCII paths work in every locale."""
    return not is_address(path) and str(root).isascii()


class RowFrames:
    """Makes frames of the messages of one store, in log order.

    Args:
        root: The store directory, on this machine.
        segment_size_bytes: Length of every commit-log file.
        queues: The queues that rows belong to; the list may grow.
        wanted: Columns.
        constants: Values of all messages.
    """

    def __init__(
        self,
        root: Path,
        segment_size_bytes: int,
        queues: Sequence[tuple[str, int]],
        wanted: Sequence[Wanted],
        constants: Constants,
    ) -> None:
        self._log = root / COMMIT_LOG
        self._segment_size_bytes = segment_size_bytes
        self._queues = queues
        self._said = 0
        self._wanted = wanted
        self._constants = constants
        self._wide_bits = 0
        for one in wanted:
            self._wide_bits |= _WIDE_HOSTS.get(one.name, 0)

    def of(self, messages: Iterable[Messages]) -> Iterator[pa.RecordBatch]:
        """Yields frames, batch by batch."""
        for some in messages:
            if some.are_as_stored and not (some.rows["sys_flag"] & self._wide_bits).any():
                yield _frame(self._rows(some))
            else:
                yield from column_frames(some.batch(self._wanted, self._constants))

    def _rows(self, messages: Messages) -> bytes:
        rows = messages.rows
        first = int(rows["phy_offset"][0])
        first -= first % self._segment_size_bytes
        broker_name = self._constants.broker_name
        new = self._queues[self._said :]
        self._said += len(new)
        parts = (
            _int(_ROWS),
            _text(str(self._log / segment_file_name(first))),
            np.int64(first).tobytes(),
            _text(self._constants.store),
            b"\0" if broker_name is None else b"\1" + _text(broker_name),
            _int(len(new)),
            *(_int(queue_id) + _text(topic) for topic, queue_id in new),
            _int(len(rows)),
            rows.tobytes(),
        )
        return b"".join(parts)


def column_frames(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yields a batch as frames that contain its columns."""
    step = max(1, batch.num_rows * _MOST_BYTES // max(batch.nbytes, _MOST_BYTES))
    for start in range(0, batch.num_rows, step):
        sink = pa.BufferOutputStream()
        sink.write(_int(_COLUMNS))
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch.slice(start, step))
        yield _frame(sink.getvalue())


def _frame(content: bytes | pa.Buffer) -> pa.RecordBatch:
    offsets = np.array([0, len(content)], np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.binary(), 1, buffers)], schema=FRAMES)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _int(len(encoded)) + encoded


def _int(number: int) -> bytes:
    return np.int32(number).tobytes()

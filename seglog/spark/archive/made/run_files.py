"""The Parquet files that one task writes for a run: one for each folder that it has rows for.

An attempt of a task, also one that runs beside another, writes files with names of its own. Only the files
that an attempt returns when it is done count: the driver puts their names into the manifest. Others are left
in ``_staged`` and removed later.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import Buffer, override

from seglog.spark.archive.columns import is_brokers_own
from seglog.spark.archive.made.made_columns import folders_of, with_made
from seglog.spark.archive.made.stretches import Noted
from seglog.storage.files import OpenFile, StoreRoot

_HELD_BYTES: Final = 96 << 20
"""Rows are buffered up to this number of bytes of Arrow, and then written as a row group of each file."""
_MOST_OPEN: Final = 64
"""With more open files than this, each file has one row group."""
_WITH_DICTIONARY: Final = (
    *("topic", "queueId", "run", "size", "tags", "flag", "sysFlag", "reconsumeTimes", "bornHost"),
    *("storeHost", "properties.key_value.key", "placeholder"),
)
"""Columns with few values, which get a dictionary; for others Parquet would try one in vain."""


class RunTarget(NamedTuple):
    """The place where a run writes.

    Attributes:
        archive: The archive.
        staged: The folder of the run in it.
        number: Number of the run.
        store: Name of the store in the archive.
        is_own_wanted: Whether topics of the broker are wanted.
    """

    archive: Path
    staged: Path
    number: int
    store: str
    is_own_wanted: bool


def write_rows(target: RunTarget, task: int, batches: Iterable[pa.RecordBatch]) -> Noted:
    """Writes rows into files of a run; returns the numbers of the rows, and the files.

    Args:
        target: The place where the run writes.
        task: Number of the task; tasks are in the order of the log, and so are the names of their files.
        batches: Rows with the columns :data:`~seglog.spark.archive.columns.READ`, in the order of the log.
    """
    noted = Noted()
    with _RunFiles(target, task) as files:
        for batch in batches:
            wanted = batch if target.is_own_wanted else _without_own(batch)
            if not len(wanted):
                continue
            rows = with_made(wanted, target.number)
            noted.note(rows)
            files.add(rows)
        noted.files = files.finish()
    return noted


class _Sink(io.RawIOBase):
    """A new file, as a stream for Arrow.

    Args:
        file: The file.
    """

    def __init__(self, file: OpenFile) -> None:
        super().__init__()
        self._file = file
        self._size_bytes = 0

    @override
    def writable(self) -> bool:
        return True

    @override
    def write(self, data: Buffer) -> int:
        view = memoryview(data)
        self._file.write_at(view, self._size_bytes)
        self._size_bytes += view.nbytes
        return view.nbytes

    @override
    def tell(self) -> int:
        return self._size_bytes

    @override
    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _RunFiles:
    """The files of one task.

    Args:
        target: The place where the run writes.
        task: Number of the task.
    """

    def __init__(self, target: RunTarget, task: int) -> None:
        self._task = task
        self._files = StoreRoot(target.archive)
        self._staged = target.staged
        self._store = target.store
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._held_bytes = 0
        self._open: dict[str, pq.ParquetWriter] = {}
        self._names: list[str] = []
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows with all columns of a file; ``storeTimestamp`` and ``topic`` select the folder."""
        numbers, folders = folders_of(rows, self._store)
        if len(folders) > 1:
            rows = rows.take(pa.array(np.argsort(numbers, kind="stable")))
        ends = np.cumsum(np.bincount(numbers, minlength=len(folders))).tolist()
        for folder, first, end in zip(folders, [0, *ends], ends, strict=False):
            self._held.setdefault(folder, []).append(rows.slice(first, end - first))
        self._held_bytes += rows.nbytes
        if self._held_bytes > _HELD_BYTES:
            self._flush()

    def finish(self) -> list[str]:
        """Writes the rest; returns the files."""
        self._flush()
        self._close()
        return self._names

    def _flush(self) -> None:
        for folder in list(self._held):
            rows = pa.Table.from_batches(self._held.pop(folder))
            if folder not in self._open:
                self._open[folder] = self._new(folder, rows.schema)
            self._open[folder].write_table(rows, row_group_size=len(rows))
            if len(self._open) > _MOST_OPEN:
                self._close()
        self._held_bytes = 0

    def _new(self, folder: str, schema: pa.Schema) -> pq.ParquetWriter:
        name = f"{folder}/part-{self._task:05}-{uuid.uuid4().hex}.zstd.parquet"
        self._files.make_dirs((self._staged / name).parent, sync=False)
        sink = self._closing.enter_context(_Sink(self._files.create(self._staged / name, 0)))
        self._names.append(name)
        return pq.ParquetWriter(
            pa.PythonFile(sink, mode="w"),
            schema,
            compression="zstd",
            use_dictionary=list(_WITH_DICTIONARY),
            write_page_checksum=True,
        )

    def _close(self) -> None:
        for writer in self._open.values():
            writer.close()
        self._open.clear()
        self._closing.close()


def _without_own(batch: pa.RecordBatch) -> pa.RecordBatch:
    topics = batch.column("topic").dictionary_encode()
    own = np.array([is_brokers_own(topic) for topic in topics.dictionary.to_pylist()], np.bool_)
    return batch.filter(pa.array(~own[topics.indices.to_numpy()])) if own.any() else batch

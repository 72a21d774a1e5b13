"""Appends what the tasks of one job put aside, all of it once however often it is tried.

The store is open for writing meanwhile: one writer at a time, and a running broker keeps the job out. Before
the first message the job notes where the log ended. Should the driver die in the middle, the messages after
that place are the first of the same rows, one by one, so a commit that is tried again continues after them. A
job that is done says so, and is not done again under the same ``jobId``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from seglog.errors import ConfigError, CorruptError, InvalidArgumentError, MessageIllegalError
from seglog.spark.source.write.staging import NewRow, Staged, staged_rows
from seglog.storage.directory import LogReader
from seglog.storage.files import Files
from seglog.storage.format.config import decode_json_object
from seglog.storage.format.names import OURS, check_queue_id, check_topic
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props
from seglog.storage.format.system_names import is_transit_topic
from seglog.storage.kernels.decode import decode_message
from seglog.storage.kernels.walk import QueueTable, Stop, walk
from seglog.storage.store import DEFAULT_MAX_MESSAGE_BYTES, MessageStore

_FOLDER = "spark-writes"
_WINDOW_BYTES = 8 << 20
_MAX_PROPERTIES_BYTES = props.MAX_PROPERTIES_BYTES - props.CRC_PROPERTY_BYTES


@dataclass(frozen=True, slots=True)
class AppendJob:
    """One job that writes to one store.

    Attributes:
        root: The store directory; a store is made where there is none.
        job_id: Names the job.
    """

    root: Path
    job_id: str

    @property
    def staging(self) -> Path:
        """Where tasks put rows: beside the store, on the same file system."""
        return self.root.with_name(f"{self.root.name}.spark-{self.job_id}")

    def commit(self, staged: Sequence[Staged], files: Files) -> int:
        """Appends the rows; returns how many, of those that were not there yet.

        Raises:
            StoreLockedError: Another process has the store open for writing.
            InvalidArgumentError: A row is of a topic of RocketMQ's own.
            StoreError: What :meth:`MessageStore.append` refuses.
        """
        appended = self._append_all(staged, files)
        self.remove_staging()
        return appended

    def remove_staging(self) -> None:
        """Removes what tasks put aside."""
        shutil.rmtree(self.staging, ignore_errors=True)

    def _append_all(self, staged: Sequence[Staged], files: Files) -> int:
        with MessageStore.open(self.root, files=files) as store:
            journal = _Journal(files, self.root / OURS / _FOLDER / f"{self.job_id}.json")
            begun = journal.load()
            if begun == _DONE:
                return 0
            rows = _all_rows(staged)
            if begun is None:
                for row in _all_rows(staged):
                    _check(row)
                journal.save(store.max_phy_offset)
                done = 0
            else:
                done = _count_appended(store, self.root, files, begun, _all_rows(staged))
            appended = 0
            for row in islice(rows, done, None):
                _append(store, row)
                appended += 1
            store.flush()
            journal.save(_DONE)
        return appended


_DONE = -1


class _Journal:
    """Where the log ended when the job began to append."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path

    def load(self) -> int | None:
        """Returns the place, :data:`_DONE` for a job that is done, None for one that did not begin."""
        if not self._files.exists(self._path):
            return None
        try:
            place = decode_json_object(self._files.read_file(self._path))["physicalOffset"]
            return int(place)
        except (CorruptError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"{self._path} is no journal of an append job: {error}") from error

    def save(self, phy_offset: int) -> None:
        """Notes a place, durably."""
        self._files.make_dirs(self._path.parent)
        staged = self._path.with_suffix(".tmp")
        self._files.write_file(staged, json.dumps({"physicalOffset": phy_offset}).encode())
        self._files.rename(staged, self._path)
        self._files.sync_dir(self._path.parent)


def _all_rows(staged: Sequence[Staged]) -> Iterator[NewRow]:
    for one in sorted(staged, key=lambda each: each.number):
        yield from staged_rows(one)


def _check(row: NewRow) -> None:
    check_topic(row.topic)
    check_queue_id(row.queue_id)
    if is_transit_topic(row.topic):
        raise InvalidArgumentError(
            f"{row.topic} is RocketMQ's own: what is written into it would be delivered again",
            help="leave out such topics: they are not what consumers read",
        )
    if len(row.body) > DEFAULT_MAX_MESSAGE_BYTES or len(row.properties) > _MAX_PROPERTIES_BYTES:
        raise MessageIllegalError(
            f"a message of {row.topic} is too large: {len(row.body)} bytes of body,"
            f" {len(row.properties)} of properties",
            help=f"bodies have at most {DEFAULT_MAX_MESSAGE_BYTES} bytes, properties {_MAX_PROPERTIES_BYTES}",
        )


def _append(store: MessageStore, row: NewRow) -> None:
    store.append(
        row.topic,
        row.queue_id,
        row.body,
        row.properties,
        row.tags_code,
        sys_flag=row.sys_flag,
        flag=row.flag,
        born_timestamp_ms=row.born_timestamp_ms,
        born_host=row.born_host,
        reconsume_times=row.reconsume_times,
        prepared_transaction_offset=row.prepared_transaction_offset,
    )


def _count_appended(store: MessageStore, root: Path, files: Files, begun: int, rows: Iterator[NewRow]) -> int:
    """Returns how many of the rows follow one another from a place of the log on."""
    count = 0
    for message, row in zip(_messages(store, root, files, begun), rows, strict=False):
        if not _is_of(message, row):
            break
        count += 1
    return count


def _messages(store: MessageStore, root: Path, files: Files, phy_offset: int) -> Iterator[Message]:
    """Yields the messages from a place of the log on, as far as they are whole."""
    segment = store.geometry.segment_size_bytes
    reader = LogReader(files, root, segment)
    need = _WINDOW_BYTES
    try:
        while phy_offset < store.max_phy_offset:
            segment_end = phy_offset - phy_offset % segment + segment
            window = reader.read(phy_offset, min(need, segment_end - phy_offset))
            result = walk(window, phy_offset, segment_end, QueueTable())
            for row in result.rows:
                start = int(row["phy_offset"]) - phy_offset
                yield decode_message(window[start : start + int(row["size_bytes"])])
            phy_offset += result.position
            if result.stop in (Stop.END, Stop.BLANK):
                phy_offset = segment_end
            elif result.stop is not Stop.MORE or len(window) < need:
                return
            need = _WINDOW_BYTES if result.position else 2 * need
    finally:
        reader.close()


def _is_of(message: Message, row: NewRow) -> bool:
    return (
        (message.topic, message.queue_id, message.body) == (row.topic, row.queue_id, row.body)
        and props.without_crc_property(message.properties_raw) == row.properties
        and message.flag == row.flag
        and row.born_timestamp_ms in (None, message.born_timestamp_ms)
    )

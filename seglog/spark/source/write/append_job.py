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
from dataclasses import dataclass, replace
from pathlib import Path

from seglog.errors import ConfigError, CorruptError
from seglog.spark.source.write.staging import Run, Staged, staged_runs
from seglog.storage.directory import LogReader
from seglog.storage.files import Files
from seglog.storage.format.config import decode_json_object
from seglog.storage.format.names import OURS
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.decode import decode_message
from seglog.storage.kernels.walk import QueueTable, Stop, walk
from seglog.storage.store import MessageStore
from seglog.storage.writes import RawMessage

_FOLDER = "spark-writes"
_WINDOW_BYTES = 8 << 20


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
            StoreError: What :meth:`MessageStore.append_batch` refuses.
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
            segment = store.geometry.segment_size_bytes
            done = 0
            if begun is None:
                journal.save(store.max_phy_offset)
            else:
                done = _count_appended(store, self.root, files, begun, _all_runs(staged, segment))
            appended = 0
            for run in _after(done, _all_runs(staged, segment)):
                _append(store, run)
                appended += len(run.messages)
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


def _all_runs(staged: Sequence[Staged], segment_size_bytes: int) -> Iterator[Run]:
    for one in sorted(staged, key=lambda each: each.number):
        yield from staged_runs(one, segment_size_bytes)


def _after(count: int, runs: Iterator[Run]) -> Iterator[Run]:
    """Yields runs without the first messages."""
    for run in runs:
        skipped = min(count, len(run.messages))
        count -= skipped
        if skipped < len(run.messages):
            yield replace(run, messages=run.messages[skipped:])


def _append(store: MessageStore, run: Run) -> None:
    if not run.is_alone:
        store.append_batch(
            run.topic,
            run.queue_id,
            run.messages,
            sys_flag=run.sys_flag,
            born_timestamp_ms=run.born_timestamp_ms,
            born_host=run.born_host,
            reconsume_times=run.reconsume_times,
        )
        return
    for one in run.messages:
        store.append(
            run.topic,
            run.queue_id,
            one.body,
            one.properties,
            one.tags_code,
            sys_flag=run.sys_flag,
            flag=one.flag,
            born_timestamp_ms=run.born_timestamp_ms,
            born_host=run.born_host,
            reconsume_times=run.reconsume_times,
            prepared_transaction_offset=run.prepared_transaction_offset,
        )


def _count_appended(store: MessageStore, root: Path, files: Files, begun: int, runs: Iterator[Run]) -> int:
    """Returns how many of the messages follow one another from a place of the log on."""
    count = 0
    wanted = ((run, one) for run in runs for one in run.messages)
    for message, (run, one) in zip(_messages(store, root, files, begun), wanted, strict=False):
        if not _is_of(message, run, one):
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


def _is_of(message: Message, run: Run, one: RawMessage) -> bool:
    return (
        (message.topic, message.queue_id, message.body) == (run.topic, run.queue_id, one.body)
        and props.without_crc_property(message.properties_raw) == one.properties
        and message.flag == one.flag
        and run.born_timestamp_ms in (None, message.born_timestamp_ms)
    )

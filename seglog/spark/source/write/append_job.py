"""Appends the rows that the tasks of one job staged, each once, however often the job is tried.

The store is open for writing meanwhile: only one writer can run, and a running broker excludes the job.
Before the first message the job notes the end of the log, and the files that it appends. If the driver dies
in between, the messages after that place are the first of the rows in these files, one by one: a job that is
tried again continues after them, and removes the rows that its own tasks staged. A job that is done notes it,
and is not done again under the same ``jobId``; a stream notes its last batch.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from seglog.spark.source.write.journal import WRITES, Entry, Journal, Staged
from seglog.spark.source.write.staging import Run, staged_runs
from seglog.storage.directory import LogReader
from seglog.storage.files import Files
from seglog.storage.format.names import OURS
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.decode import decode_message
from seglog.storage.kernels.walk import QueueTable, Stop, walk
from seglog.storage.store import MessageStore
from seglog.storage.writes import RawMessage

_WINDOW_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class AppendJob:
    """One job that writes to one store, or one batch of a stream.

    Attributes:
        root: The store directory; a store is created if there is none.
        job_id: Identifies the job, or the stream.
        batch_id: Number of the batch of a stream; earlier batches are done.
    """

    root: Path
    job_id: str
    batch_id: int = 0

    @property
    def staging(self) -> Path:
        """Folder for the rows of tasks: beside the store, on the same file system."""
        return self.root.with_name(f"{self.root.name}.spark-{self.job_id}")

    def commit(self, staged: Sequence[Staged], files: Files) -> int:
        """Appends the rows; returns how many of them were not appended before.

        Raises:
            StoreLockedError: Another process has the store open for writing.
            ConfigError: The note of a job that was interrupted cannot be read.
            StoreError: :meth:`MessageStore.append_batch` refuses a message.
        """
        with MessageStore.open(self.root, files=files) as store:
            journal = self._journal(files)
            begun = journal.load()
            appended = 0
            if begun is not None and not begun.is_done:
                appended += self._continue(store, files, journal, begun, staged)
            if begun is None or begun.batch_id < self.batch_id:
                in_order = tuple(sorted(staged, key=lambda each: each.number))
                entry = Entry(store.max_phy_offset, self.batch_id, in_order)
                # Durable before the first message: a job that is tried again counts messages from this place.
                journal.save(entry)
                appended += self._append_all(store, journal, entry, 0)
        self._remove_staging()
        return appended

    def abort(self, files: Files) -> None:
        """Removes the staged rows, unless appending was begun: then the next try continues with them."""
        begun = self._journal(files).load()
        if begun is None or begun.is_done:
            self._remove_staging()

    def _journal(self, files: Files) -> Journal:
        return Journal(files, self.root / OURS / WRITES / f"{self.job_id}.json", self.staging)

    def _remove_staging(self) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)

    def _continue(
        self, store: MessageStore, files: Files, journal: Journal, begun: Entry, staged: Sequence[Staged]
    ) -> int:
        """Appends the rest of a job that was interrupted."""
        if not begun.staged or not all(one.path.exists() for one in begun.staged):
            # Its files were removed. The rows of this attempt are the same if the query is deterministic.
            begun = replace(begun, staged=tuple(sorted(staged, key=lambda each: each.number)))
        segment = store.geometry.segment_size_bytes
        runs = _all_runs(begun.staged, segment)
        done = _count_appended(store, self.root, files, begun.phy_offset, runs)
        return self._append_all(store, journal, begun, done)

    def _append_all(self, store: MessageStore, journal: Journal, entry: Entry, done: int) -> int:
        appended = 0
        for run in _after(done, _all_runs(entry.staged, store.geometry.segment_size_bytes)):
            _append(store, run)
            appended += len(run.messages)
        # The messages must be on the disk before the note that they are appended.
        store.flush()
        journal.save(entry.done())
        return appended


def _all_runs(staged: Sequence[Staged], segment_size_bytes: int) -> Iterator[Run]:
    for one in staged:
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
    """Returns how many of the messages are stored one after another from a place of the log on."""
    count = 0
    wanted = ((run, one) for run in runs for one in run.messages)
    for message, (run, one) in zip(_messages(store, root, files, begun), wanted, strict=False):
        if not _is_of(message, run, one):
            break
        count += 1
    return count


def _messages(store: MessageStore, root: Path, files: Files, phy_offset: int) -> Iterator[Message]:
    """Yields the messages from a place of the log on, as far as they are complete."""
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

"""The record of lock owners in ``<store>/seglog/locks.json``, for the broker's next run and for operators.

Truth: for owners that are connected clients, which get their queues back when the broker opens after a stop
or a kill. A client gets the answer to a lock that changes such an owner only after the change is recorded, on
the disk if the store is SYNC. If the disk is full, locks hold for this run only, as all do in RocketMQ, and
that is logged: refusing the locks would free no space. Renewals, and locks of clients in the broker's
process, are written with the offset table; the latter are marked, and do not hold in the next run. Ages are
those at the moment of the record.

The record is always written whole. To limit the cost with many locks, all changes during a write, and for
four times as long afterwards, are collected into one write; clients get their answers after it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from seglog.broker.tables.config_shape import as_bool, as_int, as_object, as_text
from seglog.broker.tables.queue_locks import QueueLock, QueueLocks
from seglog.clock import Clock
from seglog.complaints import Complaints
from seglog.errors import CorruptError, FullError
from seglog.logs import logger
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import Files, explained
from seglog.storage.format.config import decode_config
from seglog.storage.format.names import OURS
from seglog.storage.threads import OnDemand, check_may_wait

_log = logger(__name__)
LOCKS_FILE: Final = f"{OURS}/locks.json"
PAUSES: Final = 4
"""The pause before the next write, as a multiple of the duration of the last one."""
MAX_PAUSE_MS: Final = 400
"""RocketMQ's clients wait 1 s for the answer to a lock."""
_ROWS: Final = 1_000
"""Locks encoded at a time; there may be one for each queue of each group."""


class LockPicture:
    """Writes the record of one broker's locks. Any thread may call it.

    Args:
        files: The file system of the store.
        root: The store directory.
        locks: The lock table.
        clock: Its monotonic time measures a write.
        is_synced: Whether lasting owners must be synced to the disk.
    """

    def __init__(self, files: Files, root: Path, locks: QueueLocks, clock: Clock, *, is_synced: bool) -> None:
        self._clock = clock
        self._files = files
        self._path = root / LOCKS_FILE
        self._locks = locks
        self._is_synced = is_synced
        self._drawing = threading.Lock()
        self._complaints = Complaints(_log)
        self._drawn_changes = 0
        self._recorded_changes = 0
        self._pause = threading.Condition()
        self._is_closed = False
        self._waiting: list[Callable[[Exception | None], None]] = []
        self._writer = OnDemand("seglog-locks", self._write)

    @property
    def is_due(self) -> bool:
        """Whether a change of a lasting owner is not recorded yet."""
        return self._recorded_changes < self._locks.lasting_changes

    def when_recorded(self, told: Callable[[Exception | None], None]) -> None:
        """Calls a function once the present lasting owners are recorded, in the thread that recorded them.

        Args:
            told: Called with the error of the write, None after success.
        """
        with self._pause:
            self._waiting.append(told)
        self._writer.ask()

    def _write(self) -> None:
        """Records the changes for all waiting callers; then pauses, so that the next write collects more."""
        with self._pause:
            waiting, self._waiting = self._waiting, []
        began_ms = self._clock.monotonic_ms()
        failed: Exception | None = None
        try:
            self.record(self._clock.now_ms())
        except Exception as error:  # noqa: BLE001 - passed on to the waiting callers
            failed = error
        took_ms = self._clock.monotonic_ms() - began_ms
        for told in waiting:
            told(failed)
        with self._pause:
            if not self._is_closed:
                self._clock.wait(self._pause, min(PAUSES * took_ms, MAX_PAUSE_MS))

    def stop(self) -> None:
        """Ends the thread, and records the remaining changes."""
        with self._pause:
            self._is_closed = True
            self._pause.notify_all()
        self._writer.stop()
        self._write()

    def record(self, now_ms: int) -> None:
        """Returns once the present lasting owners are recorded; concurrent changes share one write.

        If there is no space it also returns: the old record stays, and the next change tries again.

        Args:
            now_ms: Of the wall clock.

        Raises:
            WouldWaitError: The calling thread may not wait for the disk.
        """
        due = self._locks.lasting_changes
        if not self.is_due:
            return
        check_may_wait()
        with self._drawing:
            if self._recorded_changes < due:
                try:
                    self._draw(now_ms, sync=self._is_synced)
                except FullError as error:
                    self._complaints.tell(
                        "full", f"a restart of the broker frees queues that are locked: {error}"
                    )

    @property
    def is_stale(self) -> bool:
        """Whether clients asked for locks or gave some back since the last record."""
        return self._drawn_changes != self._locks.changes

    def draw(self, now_ms: int) -> None:
        """Rewrites the record if it is stale; without any lock the record is removed.

        Args:
            now_ms: Of the wall clock.

        Raises:
            FullError: There is no space; the old record stays.
        """
        with self._drawing:
            if self.is_stale:
                self._draw(now_ms, sync=False)

    def close(self, now_ms: int) -> None:
        """Writes the record with only the lasting owners: the others end with this process.

        Args:
            now_ms: Of the wall clock.

        Raises:
            FullError: There is no space; the record before stays.
        """
        with self._drawing:
            self._draw(now_ms, sync=self._is_synced, is_last=True)

    def _draw(self, now_ms: int, *, sync: bool, is_last: bool = False) -> None:
        # The counters are read before the locks: changes in between are written again.
        changes, lasting_changes = self._locks.changes, self._locks.lasting_changes
        live_ms = self._locks.live_ms
        rows = [
            {
                "group": group,
                "topic": queue.topic,
                "brokerName": queue.broker_name,
                "queueId": queue.queue_id,
                "clientId": owner.client_id,
                "ageMs": int(age_ms),
                "local": not owner.is_lasting,
            }
            for group, queue, owner, age_ms in self._locks.owners()
            if not is_last or (owner.is_lasting and age_ms <= live_ms)
        ]
        if rows:
            text = ",".join(_rows_text(rows[at : at + _ROWS]) for at in range(0, len(rows), _ROWS))
            picture = f'{{"drawnMs":{now_ms},"liveMs":{live_ms},"locks":[{text}]}}'
            self._replace(picture.encode(), sync=sync)
        else:
            self._remove()
        self._drawn_changes, self._recorded_changes = changes, lasting_changes

    def _replace(self, data: bytes, *, sync: bool) -> None:
        unfinished = self._path.with_name(self._path.name + ".tmp")
        with explained():
            self._files.make_dirs(self._path.parent)
            self._files.write_file(unfinished, data, sync=sync)
            self._files.rename(unfinished, self._path)
            if sync:
                self._files.sync_dir(self._path.parent)

    def _remove(self) -> None:
        """Removes the record: no lock is left."""
        with explained():
            if self._files.exists(self._path):
                self._files.remove(self._path)


def _rows_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Returns rows as the text of a list; the fast encoder is not interrupted by other threads."""
    return json.dumps(rows, separators=(",", ":"))[1:-1]


def read_owners(files: Files, root: Path) -> list[tuple[str, MessageQueue, str]]:
    """Returns the locks that hold over a restart: group, queue and client; none if the record is damaged."""
    try:
        found = read_picture(files, root, 0)
    except CorruptError as error:
        _log.warning("owners of locks are forgotten, and all queues are free: %s", error)
        return []
    return [(lock.group, lock.queue, lock.client_id) for lock in found if lock.is_lasting]


def read_picture(files: Files, root: Path, now_ms: int) -> list[QueueLock]:
    """Returns the recorded locks with their present ages, by group and queue; none without a record.

    Raises:
        CorruptError: The file is not a record of locks.
    """
    path = root / LOCKS_FILE
    if not files.exists(path):
        return []
    fields = as_object(decode_config(files.read_file(path)), "locks")
    since_ms = max(0, now_ms - as_int(fields.get("drawnMs"), "drawnMs"))
    live_ms = as_int(fields.get("liveMs"), "liveMs")
    rows = fields.get("locks")
    if not isinstance(rows, list):
        raise CorruptError("config-shape", file=LOCKS_FILE, expected="a list of locks", found=str(rows)[:60])
    found: list[QueueLock] = []
    for row in rows:
        lock = as_object(row, "lock")
        queue = MessageQueue(
            as_text(lock.get("topic"), "topic"),
            as_text(lock.get("brokerName"), "brokerName"),
            as_int(lock.get("queueId"), "queueId"),
        )
        age_ms = as_int(lock.get("ageMs"), "ageMs") + since_ms
        group, client = as_text(lock.get("group"), "group"), as_text(lock.get("clientId"), "clientId")
        is_lasting = not as_bool(lock.get("local", True), "local")
        found.append(QueueLock(group, queue, client, age_ms, live_ms - age_ms, age_ms > live_ms, is_lasting))
    return sorted(found, key=lambda lock: (lock.group, lock.queue))

"""The record of lock owners in ``<store>/seglog/locks.json``, for the broker's next life and for people.

Truth: for the owners at the end of connections, which have their queues again when the broker opens after a
stop or a kill. Before a client gets the answer to a lock that changes such an owner, the record says so, on
the disk if the store is SYNC. Where the disk is full, locks hold for this life only, as all do in RocketMQ,
and that is logged: consumers that stood still would free nothing. Renewals, and locks of clients in the
broker's process, are written with the offset table; these are marked, and no next life has them. Ages are of
the moment of the record.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seglog.broker.tables.config_shape import as_bool, as_int, as_object, as_text
from seglog.broker.tables.queue_locks import QueueLock, QueueLocks
from seglog.complaints import Complaints
from seglog.errors import CorruptError, FullError
from seglog.logs import logger
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import Files, explained
from seglog.storage.format.config import ConfigValue, decode_config, encode_config
from seglog.storage.format.names import OURS
from seglog.storage.threads import check_may_wait

_log = logger(__name__)
LOCKS_FILE: Final = f"{OURS}/locks.json"


class LockPicture:
    """Draws the picture of one broker's locks. Any thread may call it.

    Args:
        files: Where the store is.
        root: The store directory.
        locks: What is drawn.
        is_synced: Whether a lasting owner has to be on the disk.
    """

    def __init__(self, files: Files, root: Path, locks: QueueLocks, *, is_synced: bool) -> None:
        self._files = files
        self._path = root / LOCKS_FILE
        self._locks = locks
        self._is_synced = is_synced
        self._drawing = threading.Lock()
        self._complaints = Complaints(_log)
        self._drawn_changes = 0
        self._recorded_changes = 0

    def record(self, now_ms: int) -> None:
        """Returns once the lasting owners of now are recorded; several that change at once are one write.

        Without space it returns as well: the record before stays, and the next change tries again.

        Args:
            now_ms: Of the wall clock.

        Raises:
            WouldWaitError: The calling thread may not wait for the disk.
        """
        due = self._locks.lasting_changes
        if self._recorded_changes >= due:
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
        """Whether a lock was taken, renewed or given back since it was drawn."""
        return self._drawn_changes != self._locks.changes

    def draw(self, now_ms: int) -> None:
        """Replaces the picture; a table without locks has none.

        Args:
            now_ms: Of the wall clock.

        Raises:
            FullError: There is no space; the picture before stays.
        """
        with self._drawing:
            if self.is_stale:
                self._draw(now_ms, sync=False)

    def close(self, now_ms: int) -> None:
        """Leaves the lasting owners alone: the others end with this process.

        Args:
            now_ms: Of the wall clock.

        Raises:
            FullError: There is no space; the record before stays.
        """
        with self._drawing:
            self._draw(now_ms, sync=self._is_synced, is_last=True)

    def _draw(self, now_ms: int, *, sync: bool, is_last: bool = False) -> None:
        # Counted before they are read: what changes meanwhile is drawn again.
        changes, lasting_changes = self._locks.changes, self._locks.lasting_changes
        locks = self._locks.all()
        if is_last:
            locks = [lock for lock in locks if lock.is_lasting and not lock.is_expired]
        if locks:
            self._replace(now_ms, locks, sync=sync)
        else:
            self._remove()
        self._drawn_changes, self._recorded_changes = changes, lasting_changes

    def _replace(self, now_ms: int, locks: Sequence[QueueLock], *, sync: bool) -> None:
        value: ConfigValue = {
            "drawnMs": now_ms,
            "liveMs": self._locks.live_ms,
            "locks": [
                {
                    "group": lock.group,
                    "topic": lock.queue.topic,
                    "brokerName": lock.queue.broker_name,
                    "queueId": lock.queue.queue_id,
                    "clientId": lock.client_id,
                    "ageMs": int(lock.age_ms),
                    "local": not lock.is_lasting,
                }
                for lock in locks
            ],
        }
        unfinished = self._path.with_name(self._path.name + ".tmp")
        with explained():
            self._files.make_dirs(self._path.parent)
            self._files.write_file(unfinished, encode_config(value).encode(), sync=sync)
            self._files.rename(unfinished, self._path)
            if sync:
                self._files.sync_dir(self._path.parent)

    def _remove(self) -> None:
        """Takes the picture away: there are no locks any more."""
        with explained():
            if self._files.exists(self._path):
                self._files.remove(self._path)


def read_owners(files: Files, root: Path) -> list[tuple[str, MessageQueue, str]]:
    """Returns whose locks hold over a restart, by group, queue and client; none if the record is damaged."""
    try:
        found = read_picture(files, root, 0)
    except CorruptError as error:
        _log.warning("owners of locks are forgotten, and all queues are free: %s", error)
        return []
    return [(lock.group, lock.queue, lock.client_id) for lock in found if lock.is_lasting]


def read_picture(files: Files, root: Path, now_ms: int) -> list[QueueLock]:
    """Returns the locks of the picture with their ages of now, by group and queue; none without one.

    Raises:
        CorruptError: The file holds something else.
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

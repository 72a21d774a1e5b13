"""A picture of the lock table in ``<store>/seglog/locks.json``, for people beside the broker.

Truth: none; locks are memory of the broker that runs. It is written with the offset table, not synced, and
goes when the broker closes. Ages are of the moment of the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seglog.broker.tables.config_shape import as_int, as_object, as_text
from seglog.broker.tables.queue_locks import QueueLock, QueueLocks
from seglog.errors import CorruptError
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import Files, explained
from seglog.storage.format.config import ConfigValue, decode_config, encode_config
from seglog.storage.format.names import OURS

LOCKS_FILE: Final = f"{OURS}/locks.json"


class LockPicture:
    """Draws the picture of one broker's locks; not from two threads at once.

    Args:
        files: Where the store is.
        root: The store directory.
        locks: What is drawn.
    """

    def __init__(self, files: Files, root: Path, locks: QueueLocks) -> None:
        self._files = files
        self._path = root / LOCKS_FILE
        self._locks = locks
        self._drawn_changes = 0

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
        if not self.is_stale:
            return
        changes, locks = self._locks.changes, self._locks.all()
        if locks:
            self._replace(now_ms, locks)
        else:
            self.remove()
        self._drawn_changes = changes

    def _replace(self, now_ms: int, locks: Sequence[QueueLock]) -> None:
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
                }
                for lock in locks
            ],
        }
        unfinished = self._path.with_name(self._path.name + ".tmp")
        with explained():
            self._files.make_dirs(self._path.parent)
            self._files.write_file(unfinished, encode_config(value).encode(), sync=False)
            self._files.rename(unfinished, self._path)

    def remove(self) -> None:
        """Takes the picture away: there are no locks any more."""
        with explained():
            if self._files.exists(self._path):
                self._files.remove(self._path)


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
        found.append(QueueLock(group, queue, client, age_ms, live_ms - age_ms, age_ms > live_ms))
    return sorted(found, key=lambda lock: (lock.group, lock.queue))

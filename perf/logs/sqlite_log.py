"""SQLite as a log: a table in WAL mode."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perf.figures.sample import SanityError
from perf.plan.bodies import KEY_COUNT, TAG, bodies_of, body_of, keys
from perf.plan.cases import Case

Row = tuple[int, int, bytes, str | None, str | None, str | None]

_INSERT: Final = (
    "INSERT INTO log (queue_id, queue_offset, body, tags, keys, uniq_key) VALUES (?, ?, ?, ?, ?, ?)"
)


class SqliteLog:
    """A put is a transaction; it survives what ours survives: a kill, and with ``sync`` a power cut."""

    def __init__(self, directory: Path, case: Case, *, sync: bool) -> None:
        self._db = sqlite3.connect(directory / "log.sqlite", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
        columns = "queue_id INTEGER, queue_offset INTEGER, body BLOB, tags TEXT, keys TEXT, uniq_key TEXT"
        if case.queues == 1:
            columns = columns.replace("queue_offset INTEGER", "queue_offset INTEGER PRIMARY KEY")
        self._db.execute(f"CREATE TABLE log ({columns})")
        if case.queues > 1:
            self._db.execute("CREATE UNIQUE INDEX by_offset ON log (queue_id, queue_offset)")
        if case.is_usual:
            self._db.execute("CREATE INDEX by_key ON log (keys)")
            self._db.execute("CREATE INDEX by_uniq_key ON log (uniq_key)")
        self._keys = keys() if case.is_usual else []
        self._body = body_of(case)
        self._batch = bodies_of(case, case.batch_size)
        self._queues = case.queues
        self._number = 0

    def _row(self, body: bytes) -> Row:
        number = self._number
        self._number += 1
        place = (number % self._queues, number // self._queues)
        if self._keys:
            return (*place, body, TAG, *self._keys[number % KEY_COUNT])
        return (*place, body, None, None, None)

    def put_some(self, times: int) -> None:
        """Inserts row by row."""
        execute = self._db.execute
        for _ in range(times):
            execute(_INSERT, self._row(self._body))

    def put_batch(self, count: int) -> None:
        """Inserts rows in one transaction."""
        if len(self._batch) != count:
            self._batch = [self._body] * count
        self._db.execute("BEGIN")
        self._db.executemany(_INSERT, [self._row(body) for body in self._batch])
        self._db.execute("COMMIT")

    def settle(self) -> None:
        """Looks the last message up by its key; what is committed exists."""
        if self._keys:
            unique = self._keys[(self._number - 1) % KEY_COUNT][1]
            if self._db.execute("SELECT body FROM log WHERE uniq_key = ?", (unique,)).fetchone() is None:
                raise SanityError(f"no row with uniq_key {unique}")

    def view_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """As :meth:`copy_some`: there are no views."""
        return self.copy_some(places, count)

    def copy_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Selects rows of the one queue that there is by their offsets."""
        query = "SELECT body FROM log WHERE queue_offset >= ? ORDER BY queue_offset LIMIT ?"
        execute = self._db.execute
        return sum(len(execute(query, (first, count)).fetchall()) for _queue_id, first in places)

    def loop_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """As :meth:`copy_some`: each row has its body by itself."""
        return self.copy_some(places, count)

    def count(self, queue_id: int) -> int:
        """Counts rows."""
        query = "SELECT count(*) FROM log WHERE queue_id = ?"
        found: int = self._db.execute(query, (queue_id,)).fetchone()[0]
        return found

    def stored_bytes(self) -> int:
        """Returns 0: rows are no records."""
        return 0

    def close(self) -> None:
        """Closes the database."""
        self._db.close()

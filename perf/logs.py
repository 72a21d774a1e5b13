"""What workloads need of a log, and the logs in Python that they run on.

A log is made in the process that measures it. Message ``n`` of a case always has the same body; usual ones
have the tag ``TagA`` and the key ``k<n>``.
"""

from __future__ import annotations

import os
import random
import sqlite3
import struct
import threading
import zlib
from pathlib import Path
from typing import Final, Protocol

from perf.cases import Case


class Log(Protocol):
    """A queue of messages with one writer, which starts empty."""

    def put(self) -> None:
        """Appends one message; any thread."""
        ...

    def put_batch(self, count: int) -> None:
        """Appends some messages."""
        ...

    def view(self, first: int, count: int) -> int:
        """Reads messages without a copy where that is possible; returns how many."""
        ...

    def read(self, first: int, count: int) -> int:
        """Reads messages and copies their bytes; returns how many."""
        ...

    def count(self) -> int:
        """Returns how many messages can be read."""
        ...

    def close(self) -> None:
        """Closes it."""
        ...


def body_of(case: Case) -> bytes:
    """Returns the body of every message of a case."""
    return random.Random(case.name).randbytes(case.body_bytes)


class SqliteLog:
    """A table in WAL mode; a put is a transaction. Survives what ours survives."""

    def __init__(self, directory: Path, case: Case, *, sync: bool) -> None:
        self._db = sqlite3.connect(directory / "log.sqlite", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
        columns = "queue_offset INTEGER PRIMARY KEY, body BLOB, tags TEXT, keys TEXT"
        self._db.execute(f"CREATE TABLE log ({columns})")
        if case.is_usual:
            self._db.execute("CREATE INDEX by_key ON log (keys)")
        self._is_usual = case.is_usual
        self._body = body_of(case)
        self._number = 0
        self._lock = threading.Lock()

    def _row(self) -> tuple[bytes, str | None, str | None]:
        self._number += 1
        return (self._body, "TagA", f"k{self._number}") if self._is_usual else (self._body, None, None)

    def put(self) -> None:
        """Inserts one row."""
        with self._lock:
            self._db.execute("INSERT INTO log (body, tags, keys) VALUES (?, ?, ?)", self._row())

    def put_batch(self, count: int) -> None:
        """Inserts rows in one transaction."""
        rows = [self._row() for _ in range(count)]
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO log (body, tags, keys) VALUES (?, ?, ?)", rows)
        self._db.execute("COMMIT")

    def view(self, first: int, count: int) -> int:
        """As :meth:`read`: there are no views."""
        return self.read(first, count)

    def read(self, first: int, count: int) -> int:
        """Selects rows by queue offset."""
        query = "SELECT body, tags, keys FROM log WHERE queue_offset > ? ORDER BY queue_offset LIMIT ?"
        return len(self._db.execute(query, (first, count)).fetchall())

    def count(self) -> int:
        """Counts rows."""
        found: int = self._db.execute("SELECT count(*) FROM log").fetchone()[0]
        return found

    def close(self) -> None:
        """Closes the database."""
        self._db.close()


class FileLog:
    """A plain file: CRC, size and body of each message, one ``write`` a call; no queue, no index, no locks.

    All messages are equally long, so their place is a multiplication. What a Python program does that
    needs nothing else; the write system call makes it survive what ours survives.
    """

    _HEAD: Final = struct.Struct(">II")

    def __init__(self, directory: Path, case: Case, *, sync: bool) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._descriptor = os.open(directory / "log", flags, 0o644)
        self._body = body_of(case)
        self._tail = b"TagA\x00k%019d" if case.is_usual else b""
        self._record_bytes = self._HEAD.size + len(self._body) + (len(self._tail % 0) if self._tail else 0)
        self._sync = sync
        self._number = 0

    def _record(self) -> bytes:
        body = self._body
        if self._tail:
            self._number += 1
            body += self._tail % self._number
        return self._HEAD.pack(zlib.crc32(body), len(body)) + body

    def put(self) -> None:
        """Writes one record."""
        os.write(self._descriptor, self._record())
        if self._sync:
            os.fdatasync(self._descriptor)

    def put_batch(self, count: int) -> None:
        """Writes records in one go."""
        os.write(self._descriptor, b"".join([self._record() for _ in range(count)]))

    def view(self, first: int, count: int) -> int:
        """As :meth:`read`: there are no views."""
        return self.read(first, count)

    def read(self, first: int, count: int) -> int:
        """Reads records by their place and takes them apart."""
        size = self._record_bytes
        data = os.pread(self._descriptor, count * size, first * size)
        return len([data[at + self._HEAD.size : at + size] for at in range(0, len(data), size)])

    def count(self) -> int:
        """Works it out from the file's length."""
        return os.fstat(self._descriptor).st_size // self._record_bytes

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)

"""Honker's stream as a log: durable publish and subscribe on SQLite, in WAL mode with ``synchronous=NORMAL``.

Its events are JSON, so a body is written as base64, encoded once, and decoded where a ``bytes`` is read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import honker

from perf.plan.bodies import bodies_of, body_of
from perf.plan.cases import Case

_NAME: Final = "log"
_READ: Final = "SELECT honker_stream_read_since(?, ?, ?) AS events"


class HonkerLog:
    """A put is a transaction; it survives a kill. Offsets begin with 1."""

    def __init__(self, directory: Path, case: Case) -> None:
        self._db = honker.open(str(directory / "log.db"))
        self._stream = self._db.stream(_NAME)
        self._body = _text(body_of(case))
        self._batch = [_text(body) for body in bodies_of(case, case.batch_size)]

    def put_some(self, times: int) -> None:
        """Publishes event by event."""
        publish, body = self._stream.publish, self._body
        for _ in range(times):
            publish(body)

    def put_batch(self, count: int) -> None:
        """Publishes events in one transaction."""
        if len(self._batch) != count:
            self._batch = [self._body] * count
        publish = self._stream.publish
        with self._db.transaction() as transaction:
            for body in self._batch:
                publish(body, tx=transaction)

    def settle(self) -> None:
        """Does nothing: what is committed exists."""

    def view_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """As :meth:`copy_some`: there are no views."""
        return self.copy_some(places, count)

    def copy_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Reads events of the stream by their offsets."""
        return sum(len(self._read(first, count)) for _queue_id, first in places)

    def loop_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Reads as :meth:`copy_some` does, and makes a ``bytes`` of each body."""
        done = 0
        for _queue_id, first in places:
            for event in self._read(first, count):
                base64.b64decode(json.loads(event["payload"]))
                done += 1
        return done

    def _read(self, first: int, count: int) -> list[dict[str, str]]:
        with self._db.transaction() as transaction:
            rows = transaction.query(_READ, [_NAME, first, count])
        events: list[dict[str, str]] = json.loads(rows[0]["events"])
        return events

    def count(self, _queue_id: int) -> int:
        """Counts events."""
        with self._db.transaction() as transaction:
            rows = transaction.query("SELECT count(*) AS n FROM _honker_stream WHERE topic = ?", [_NAME])
        return int(rows[0]["n"])

    def stored_bytes(self) -> int:
        """Returns 0: rows are no records."""
        return 0

    def close(self) -> None:
        """Closes the database."""
        self._db.close()


def _text(body: bytes) -> str:
    return base64.b64encode(body).decode()

"""LMDB as a log: queue and offset as the key, appended at the end of the tree."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import lmdb

from perf.figures.sample import SanityError
from perf.plan.bodies import KEY_COUNT, TAG, bodies_of, body_of, keys
from perf.plan.cases import Case

_PLACE: Final = struct.Struct(">IQ")
_MAP_BYTES: Final = 16 << 30


class LmdbLog:
    """A put is a transaction. Without ``sync`` the system writes when it likes, as with ours."""

    def __init__(self, directory: Path, case: Case, *, sync: bool) -> None:
        # A map that is written to is its quickest way; with syncs it is quicker without.
        self._env = lmdb.open(
            str(directory), map_size=_MAP_BYTES, max_dbs=2, sync=sync, metasync=sync, writemap=not sync
        )
        self._by_key = self._env.open_db(b"keys", dupsort=True) if case.is_usual else None
        self._log = self._env.open_db(b"log")
        self._keys = keys() if case.is_usual else []
        self._body = body_of(case)
        self._batch = bodies_of(case, case.batch_size)
        self._queues = case.queues
        self._number = 0

    def put_some(self, times: int) -> None:
        """Puts in a transaction each."""
        begin, log, pack = self._env.begin, self._log, _PLACE.pack
        if self._keys:
            self._put_usual(times)
            return
        for number in range(self._number, self._number + times):
            with begin(write=True) as transaction:
                transaction.put(pack(0, number), self._body, append=True, db=log)
        self._number += times

    def _put_usual(self, times: int) -> None:
        tail = TAG.encode()
        for number in range(self._number, self._number + times):
            place = _PLACE.pack(number % self._queues, number // self._queues)
            key, unique = self._keys[number % KEY_COUNT]
            with self._env.begin(write=True) as transaction:
                transaction.put(place, b"\0".join((tail, key.encode(), self._body)), db=self._log)
                transaction.put(key.encode(), place, db=self._by_key)
                transaction.put(unique.encode(), place, db=self._by_key)
        self._number += times

    def put_batch(self, count: int) -> None:
        """Puts in one transaction."""
        if len(self._batch) != count:
            self._batch = [self._body] * count
        rows = [(_PLACE.pack(0, self._number + at), body) for at, body in enumerate(self._batch)]
        with self._env.begin(write=True) as transaction, transaction.cursor(db=self._log) as cursor:
            cursor.putmulti(rows, append=True)
        self._number += count

    def settle(self) -> None:
        """Looks the last message up by its key; what is committed exists."""
        if self._by_key is not None:
            unique = self._keys[(self._number - 1) % KEY_COUNT][1].encode()
            with self._env.begin() as transaction:
                if transaction.get(unique, db=self._by_key) is None:
                    raise SanityError(f"no entry of key {unique!r}")

    def view_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Reads in a transaction each; the views end with it."""
        found = 0
        for queue_id, first in places:
            with self._env.begin(db=self._log, buffers=True) as transaction, transaction.cursor() as cursor:
                if cursor.set_key(_PLACE.pack(queue_id, first)):
                    found += len(list(islice(cursor.iternext(keys=False), count)))
        return found

    def copy_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Reads in a transaction each."""
        found = 0
        for queue_id, first in places:
            with self._env.begin(db=self._log) as transaction, transaction.cursor() as cursor:
                if cursor.set_key(_PLACE.pack(queue_id, first)):
                    found += len(list(islice(cursor.iternext(keys=False), count)))
        return found

    def loop_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Takes each entry by itself, in a transaction for all of a place."""
        found = 0
        for queue_id, first in places:
            with self._env.begin(db=self._log) as transaction, transaction.cursor() as cursor:
                if cursor.set_key(_PLACE.pack(queue_id, first)):
                    for _body in islice(cursor.iternext(keys=False), count):
                        found += 1
        return found

    def count(self, queue_id: int) -> int:
        """Shares the entries out among the queues, which messages go to in turn."""
        with self._env.begin() as transaction:
            entries: int = transaction.stat(self._log)["entries"]
        return (entries + self._queues - 1 - queue_id) // self._queues

    def stored_bytes(self) -> int:
        """Returns 0: entries are no records."""
        return 0

    def close(self) -> None:
        """Closes the environment."""
        self._env.close()

"""Our own store as the log of a workload; imported in the measuring process, which chose the checkout."""

from __future__ import annotations

from pathlib import Path

from perf.cases import Case
from perf.logs import body_of
from seglog.storage.flush import Durability
from seglog.storage.store import MessageStore
from seglog.storage.values import NewMessage

TOPIC = "Bench"


class SeglogLog:
    """A store with RocketMQ's default file lengths and one queue."""

    def __init__(self, directory: Path, case: Case, *, sync: bool) -> None:
        self.store = MessageStore.open(
            directory,
            durability=Durability.SYNC if sync else Durability.ASYNC,
            record_crc=case.is_usual,
        )
        self._body = body_of(case)
        self._is_usual = case.is_usual
        self._messages = [NewMessage(self._body)] * case.batch_size
        self._number = 0

    def put(self) -> None:
        """Puts one message."""
        if self._is_usual:
            self._number += 1
            self.store.put(TOPIC, self._body, tags="TagA", keys=f"k{self._number}")
        else:
            self.store.put(TOPIC, self._body)

    def put_batch(self, count: int) -> None:
        """Puts messages; they are made once, as a peer's are encoded once."""
        if len(self._messages) != count:
            self._messages = [NewMessage(self._body)] * count
        self.store.put_batch(TOPIC, self._messages)

    def view(self, first: int, count: int) -> int:
        """Gets records as views."""
        return len(self.store.get(TOPIC, 0, first, count).records)

    def read(self, first: int, count: int) -> int:
        """Gets records and copies them."""
        return len([bytes(record) for record in self.store.get(TOPIC, 0, first, count).records])

    def count(self) -> int:
        """Returns the queue's maximum."""
        return self.store.max_offset(TOPIC, 0)

    def close(self) -> None:
        """Closes the store."""
        self.store.close()

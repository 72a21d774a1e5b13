"""Our own store; imported in the measuring process, which chose checkout and kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final

from perf.figures.sample import SanityError
from perf.plan.bodies import KEY_COUNT, TAG, bodies_of, body_of, keys
from perf.plan.cases import Case
from seglog.storage.files.files import Files
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES
from seglog.storage.reads.get import GetResult
from seglog.storage.store import DEFAULT_RECOVERY_STEP_BYTES, MessageStore
from seglog.storage.writes.flush import Durability

TOPIC: Final = "Bench"


class SeglogLog:
    """A store with RocketMQ's default file lengths.

    Args:
        directory: Where it is.
        case: What its messages are like.
        sync: Whether puts wait for the disk.
        segment_size_bytes: As the store takes it.
        recovery_step_bytes: As the store takes it.
        files: As the store takes them.
    """

    def __init__(
        self,
        directory: Path,
        case: Case,
        *,
        sync: bool = False,
        segment_size_bytes: int | None = None,
        recovery_step_bytes: int = DEFAULT_RECOVERY_STEP_BYTES,
        files: Files | None = None,
    ) -> None:
        self.store = MessageStore.open(
            directory,
            segment_size_bytes=segment_size_bytes,
            durability=Durability.SYNC if sync else Durability.ASYNC,
            record_crc=case.is_usual,
            files=files,
            recovery_step_bytes=recovery_step_bytes,
        )
        self._body = body_of(case)
        self._batch = bodies_of(case, case.batch_size)
        self._keys = keys() if case.is_usual else []
        self._queues = case.queues
        self._number = 0

    def put_some(self, times: int) -> None:
        """Puts; those that are neither usual nor for many queues from any thread."""
        if self._keys:
            self._put_usual(times)
        elif self._queues > 1:
            self._put_in_turn(times)
        else:
            put, body = self.store.put, self._body
            for _ in range(times):
                put(TOPIC, body)

    def _put_in_turn(self, times: int) -> None:
        put, body, queues = self.store.put, self._body, self._queues
        for number in range(self._number, self._number + times):
            put(TOPIC, body, queue_id=number % queues)
        self._number += times

    def _put_usual(self, times: int) -> None:
        put, body, queues, names = self.store.put, self._body, self._queues, self._keys
        for number in range(self._number, self._number + times):
            key, unique = names[number % KEY_COUNT]
            put(TOPIC, body, queue_id=number % queues, tags=TAG, keys=key, properties={"UNIQ_KEY": unique})
        self._number += times

    def put_batch(self, count: int) -> None:
        """Puts bodies; they are made once, as a peer's are encoded once."""
        if len(self._batch) != count:
            self._batch = [self._body] * count
        self.store.put_batch(TOPIC, self._batch)

    def settle(self) -> None:
        """Asks for the last message by its key, which waits for the index; queues are written at once."""
        if self._keys and self._number:
            unique = self._keys[(self._number - 1) % KEY_COUNT][1]
            if len(self.store.query(TOPIC, unique, 1)) != 1:
                raise SanityError(f"the message with UNIQ_KEY {unique} is not found by it")

    def view_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Gets, and takes the views."""
        get = self.store.get
        found = 0
        for queue_id, first in places:
            result = get(TOPIC, queue_id, first, count)
            views_of(result)
            found += len(result)
        return found

    def copy_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Gets, and copies all views in one go."""
        get = self.store.get
        found = 0
        for queue_id, first in places:
            result = get(TOPIC, queue_id, first, count)
            b"".join(views_of(result))
            found += len(result)
        return found

    def loop_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Gets, and takes each message and its body, as README does."""
        get = self.store.get
        found = 0
        for queue_id, first in places:
            result = get(TOPIC, queue_id, first, count)
            for message in result:
                message.body  # noqa: B018 - it is made when it is asked for
            found += len(result)
        return found

    def count(self, queue_id: int) -> int:
        """Returns the queue's maximum."""
        return self.store.max_offset(TOPIC, queue_id)

    def stored_bytes(self) -> int:
        """Counts the log and the units of the queues."""
        units = sum(self.count(queue_id) for queue_id in range(self._queues))
        return self.store.max_phy_offset + CQ_UNIT_BYTES * units

    def close(self) -> None:
        """Closes the store."""
        self.store.close()


# Neighbours in the log come as one view where the store can do so; checkouts before that have records only.
views_of: Final[Callable[[GetResult], list[memoryview]]] = attrgetter(
    "runs" if hasattr(GetResult, "runs") else "records"
)

"""Moves groups in a store that no process has open: to offsets, times and ends, and back to former offsets.

Every move is planned first, which needs no lock on the store. Carrying it out plans again under the lock,
changes ``config/consumerOffset.json`` and records the moves in the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.broker.offsets import ConsumerOffsets, OffsetHistory, OffsetPast
from seglog.clock import Clock
from seglog.doctor.tables.offset_table import OFFSETS_FILE, GroupOffset, OffsetTable, by_queue
from seglog.errors import NotFoundError, OffsetRangeError
from seglog.storage.directory import demand_own_tables
from seglog.storage.files import Files, lock_held
from seglog.storage.format.names import OURS, check_group, check_topic
from seglog.storage.small_files import ConfigFile
from seglog.storage.store import MessageStore
from seglog.storage.writes import QueueInfo

Target = Callable[[MessageStore, QueueInfo], int]
"""Returns the offset at which a group continues in a queue."""

RESET_CLIENT: Final = "seglog offsets reset"
RESTORE_CLIENT: Final = "seglog offsets restore"


@dataclass(frozen=True, slots=True)
class Move:
    """A move of a group in a queue.

    Attributes:
        before: Its present offset; None if it has none.
        after: Its new offset.
        wanted: The requested offset; greater than ``after`` if it is beyond the end of the queue.
        min_offset: Start of the queue.
        max_offset: End of the queue.
    """

    group: str
    topic: str
    queue_id: int
    before: int | None
    after: int
    wanted: int
    min_offset: int
    max_offset: int

    @property
    def is_clamped(self) -> bool:
        """Whether the queue does not have the requested offset."""
        return self.after != self.wanted


def to_start(_store: MessageStore, queue: QueueInfo) -> int:
    """Returns the offset of the first message that exists."""
    return queue.min_offset


def to_end(_store: MessageStore, queue: QueueInfo) -> int:
    """Returns the offset after the last message."""
    return queue.max_offset


def to_time(timestamp_ms: int) -> Target:
    """Returns a target: the first message stored at or after a time."""
    return lambda store, queue: store.offset_by_time(queue.topic, queue.queue_id, timestamp_ms)


def to_offset(queue_offset: int) -> Target:
    """Returns a target: an offset; the target raises OffsetRangeError for a queue that does not have it."""

    def target(_store: MessageStore, queue: QueueInfo) -> int:
        low, high = queue.min_offset, queue.max_offset
        if not low <= queue_offset <= high:
            raise OffsetRangeError(
                f"{queue.topic}/{queue.queue_id} has the offsets {low}..{high}, not {queue_offset}",
                min_offset=low,
                max_offset=high,
            )
        return queue_offset

    return target


def reset(
    files: Files,
    root: Path,
    clock: Clock,
    group: str,
    topic: str,
    target: Target,
    *,
    queue_id: int | None = None,
    apply: bool = False,
) -> list[Move]:
    """Returns the moves of a group in the queues of a topic, and makes them if ``apply`` is set.

    Args:
        files: Access to the store.
        root: The store directory.
        clock: Time stamps for table and history.
        group: The group.
        topic: The topic.
        target: The new offsets.
        queue_id: Only in this queue.
        apply: Whether to make the moves.

    Raises:
        NotFoundError: The topic has no such queue.
        OffsetRangeError: A queue has no such offset.
        StoreLockedError: The moves must be made, and a broker has the store open.
        ConfigError: The table cannot be read.
    """
    check_group(group)
    check_topic(topic)

    def plan(store: MessageStore, now: Mapping[tuple[str, str, int], int]) -> list[Move]:
        moves: list[Move] = []
        for queue in store.queues():
            if queue.topic == topic and queue_id in (None, queue.queue_id):
                after = target(store, queue)
                moves.append(_move(group, queue, now, after))
        if not moves:
            where = topic if queue_id is None else f"{topic}/{queue_id}"
            raise NotFoundError(
                f"no queue of {where} ever had a message",
                help="`seglog inspect queues STORE` lists topics and queues",
            )
        return moves

    def carry_out(offsets: ConsumerOffsets, moves: Iterable[Move]) -> None:
        for move in moves:
            offsets.reset(group, topic, move.queue_id, move.after, RESET_CLIENT, tell=False)

    return _moved(files, root, clock, plan, carry_out, apply=apply)


def restore(
    files: Files,
    root: Path,
    clock: Clock,
    moment_ms: int,
    *,
    group: str | None = None,
    topic: str | None = None,
    apply: bool = False,
) -> list[Move]:
    """Returns the moves of groups back to their offsets at a time, and makes them if ``apply`` is set.

    Queues in which a group had no offset then are left out: without an offset it might begin at their end.

    Args:
        files: Access to the store.
        root: The store directory.
        clock: Time stamps for table and history.
        moment_ms: The time, in ms since 1970 UTC.
        group: Only this group.
        topic: Only in this topic.
        apply: Whether to make the moves.

    Raises:
        NotFoundError: The history begins later, or there is none.
        StoreLockedError: The moves must be made, and a broker has the store open.
        ConfigError: The table cannot be read.
    """

    def plan(store: MessageStore, now: Mapping[tuple[str, str, int], int]) -> list[Move]:
        queues = {(queue.topic, queue.queue_id): queue for queue in store.queues()}
        moves: list[Move] = []
        for (owner, name, number), offset in sorted(OffsetPast(files, root).at(moment_ms).items()):
            queue = queues.get((name, number))
            if queue is None or group not in (None, owner) or topic not in (None, name):
                continue
            moves.append(_move(owner, queue, now, offset))
        return [move for move in moves if move.before != move.after]

    def carry_out(offsets: ConsumerOffsets, moves: Iterable[Move]) -> None:
        wanted = {(move.group, move.topic, move.queue_id): move.after for move in moves}
        offsets.restore(wanted, {}, RESTORE_CLIENT)

    return _moved(files, root, clock, plan, carry_out, apply=apply)


def without_offset_at(
    files: Files, root: Path, moment_ms: int, *, group: str | None = None, topic: str | None = None
) -> list[GroupOffset]:
    """Returns the present offsets of groups in queues in which they had no offset at a time.

    A restore does not change them.

    Args:
        files: Access to the store.
        root: The store directory.
        moment_ms: The time, in ms since 1970 UTC.
        group: Only of this group.
        topic: Only in this topic.

    Raises:
        NotFoundError: The history begins later, or there is none.
        ConfigError: The table cannot be read.
    """
    then = OffsetPast(files, root).at(moment_ms)
    return [
        one
        for one in OffsetTable(files, root).all()
        if (one.group, one.topic, one.queue_id) not in then
        and group in (None, one.group)
        and topic in (None, one.topic)
    ]


def open_offsets(files: Files, root: Path, clock: Clock) -> ConsumerOffsets:
    """Returns the offset table of a store with its history; the caller holds the store's lock."""
    file = ConfigFile(files, root / OFFSETS_FILE, root / OURS / "evidence")
    return ConsumerOffsets(file, clock, OffsetHistory(files, root, clock))


def _move(group: str, queue: QueueInfo, now: Mapping[tuple[str, str, int], int], wanted: int) -> Move:
    low, high = queue.min_offset, queue.max_offset
    before = now.get((group, queue.topic, queue.queue_id))
    return Move(group, queue.topic, queue.queue_id, before, min(wanted, high), wanted, low, high)


def _moved(
    files: Files,
    root: Path,
    clock: Clock,
    plan: Callable[[MessageStore, Mapping[tuple[str, str, int], int]], list[Move]],
    carry_out: Callable[[ConsumerOffsets, Iterable[Move]], None],
    *,
    apply: bool,
) -> list[Move]:
    demand_own_tables(files, root)
    with lock_held(files, root) if apply else nullcontext():
        now = by_queue(OffsetTable(files, root).all())
        with MessageStore.open(root, read_only=True, files=files) as store:
            moves = plan(store, now)
        if apply and moves:
            with closing(open_offsets(files, root, clock)) as offsets:
                carry_out(offsets, moves)
                offsets.persist()
    return moves

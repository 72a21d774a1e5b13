"""Moves groups in a store that no process has open: to offsets, times and ends, and back to where they were.

Every move is planned first, and the plan can be looked at without the store's lock. Carrying it out plans
it again under the lock, changes ``config/consumerOffset.json`` and writes the moves into the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.broker.offsets import ConsumerOffsets, OffsetHistory, OffsetPast
from seglog.clock import Clock
from seglog.doctor.tables.offset_table import OFFSETS_FILE, GroupOffset, OffsetTable, by_queue
from seglog.errors import NotFoundError, OffsetRangeError
from seglog.storage.files import Files, lock_held
from seglog.storage.format.names import OURS, check_group, check_topic
from seglog.storage.small_files import ConfigFile
from seglog.storage.store import MessageStore
from seglog.storage.writes import QueueInfo

Target = Callable[[MessageStore, QueueInfo], int]
"""Says where a group goes on in a queue."""

RESET_CLIENT: Final = "seglog offsets reset"
RESTORE_CLIENT: Final = "seglog offsets restore"


@dataclass(frozen=True, slots=True)
class Move:
    """A group in a queue, and where it is to go on.

    Attributes:
        before: Where it goes on now; None if it never said so.
        after: Where it goes on then.
        wanted: What was asked for; more than ``after`` if that is beyond the end of the queue.
        min_offset: Of the queue.
        max_offset: Of the queue.
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
        """Whether the queue has no such offset any more."""
        return self.after != self.wanted


def to_start(_store: MessageStore, queue: QueueInfo) -> int:
    """Leads to the first message that is there."""
    return queue.min_offset


def to_end(_store: MessageStore, queue: QueueInfo) -> int:
    """Leads behind the last message."""
    return queue.max_offset


def to_time(timestamp_ms: int) -> Target:
    """Returns what leads to the first message stored at or after a moment."""
    return lambda store, queue: store.offset_by_time(queue.topic, queue.queue_id, timestamp_ms)


def to_offset(queue_offset: int) -> Target:
    """Returns what leads to an offset, and raises OffsetRangeError in a queue that has none such."""

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
    """Returns how a group moves in the queues of a topic, and moves it if that is asked.

    Args:
        files: Where the store is.
        root: The store directory.
        clock: Stamps table and history.
        group: The group.
        topic: The topic.
        target: Where to.
        queue_id: Only in this queue.
        apply: Whether to do it.

    Raises:
        NotFoundError: The topic has no such queue.
        OffsetRangeError: A queue has no such offset.
        StoreLockedError: It is to be done, and a broker has the store open.
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
    """Returns which groups stood elsewhere at a moment, and puts them back there if that is asked.

    Queues in which a group had no offset then stay as they are: without one it might begin at their end.

    Args:
        files: Where the store is.
        root: The store directory.
        clock: Stamps table and history.
        moment_ms: The moment.
        group: Only this group.
        topic: Only in this topic.
        apply: Whether to do it.

    Raises:
        NotFoundError: The history begins later, or there is none.
        StoreLockedError: It is to be done, and a broker has the store open.
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
    """Returns where groups stand now in queues in which they had no offset at a moment.

    A restore leaves them as they are.

    Args:
        files: Where the store is.
        root: The store directory.
        moment_ms: The moment.
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
    with lock_held(files, root) if apply else nullcontext():
        now = by_queue(OffsetTable(files, root).all())
        with MessageStore.open(root, read_only=True, files=files) as store:
            moves = plan(store, now)
        if apply and moves:
            offsets = open_offsets(files, root, clock)
            carry_out(offsets, moves)
            offsets.persist()
    return moves

"""Moves one group in one queue, in a store that no process has open.

Only ``config/consumerOffset.json`` changes, under the store's lock, and its former contents become its
``.bak``, as in RocketMQ. A running broker keeps its offsets in memory and would overwrite the change; but it
holds the lock, so this code cannot run beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seglog.clock import Clock
from seglog.doctor.groups.queue_range import queue_range
from seglog.doctor.tables.offset_table import OffsetTable
from seglog.errors import NotFoundError, OffsetRangeError
from seglog.storage.directory import demand_own_tables
from seglog.storage.files import Files, lock_held
from seglog.storage.format.names import check_group, check_queue_id, check_topic


@dataclass(frozen=True, slots=True)
class Skipped:
    """The result of a skip.

    Attributes:
        before: The group's former offset; None if it had none.
        after: The group's new offset; None if it has none any more.
        min_offset: Start of the queue.
        max_offset: End of the queue.
    """

    group: str
    topic: str
    queue_id: int
    before: int | None
    after: int | None
    min_offset: int
    max_offset: int


def skip(
    files: Files,
    root: Path,
    clock: Clock,
    group: str,
    topic: str,
    queue_id: int,
    *,
    to: int | None = None,
    forget: bool = False,
) -> Skipped:
    """Moves a group past its next message, or to an offset.

    Args:
        files: Access to the store.
        root: The store directory.
        clock: Time stamp for the table's version.
        group: The group.
        topic: The topic.
        queue_id: The queue.
        to: The new offset; None to skip one message.
        forget: Whether to remove the group's offset instead, as if it had never consumed.

    Raises:
        NotFoundError: No such store or queue, or the group has no offset there and ``to`` is None.
        OffsetRangeError: The queue has no such offset, or the group is at its end.
        UnsupportedStoreError: The broker of the store keeps tables in RocksDB.
        StoreLockedError: A broker or another process has the store open.
        ConfigError: The table cannot be read.
    """
    check_group(group)
    check_topic(topic)
    check_queue_id(queue_id)
    demand_own_tables(files, root)
    low, high = queue_range(files, root, topic, queue_id)
    with lock_held(files, root):
        table = OffsetTable(files, root)
        before = table.of(group, topic, queue_id)
        after = None if forget else _target(group, topic, queue_id, before, to, (low, high))
        if before is None and (forget or to is None):
            raise NotFoundError(
                f"group {group} has no offset in {topic}/{queue_id}",
                help="`seglog inspect config STORE consumerOffset` lists groups; --to gives it one",
            )
        if after != before:
            table.set(group, topic, queue_id, after, clock.now_ms())
    return Skipped(group, topic, queue_id, before, after, low, high)


def _target(
    group: str, topic: str, queue_id: int, before: int | None, to: int | None, bounds: tuple[int, int]
) -> int:
    low, high = bounds
    # Messages below the minimum are removed: a group with such an offset gets the first one that is left.
    target = max(before or 0, low) + 1 if to is None else to
    if target > high and to is None and before is not None:
        raise OffsetRangeError(
            f"group {group} is at the end of {topic}/{queue_id} ({before}): there is no message to skip",
            min_offset=low,
            max_offset=high,
        )
    if not low <= target <= high and target != before:
        raise OffsetRangeError(
            f"{topic}/{queue_id} has the offsets {low}..{high}, not {target}", min_offset=low, max_offset=high
        )
    return target

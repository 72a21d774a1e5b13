"""The dead letters of a store: messages that groups gave up after their last attempt, and sending them again.

A letter stays in its DLQ when it is sent again. A receipt records the sending. Once all letters up to an
offset were sent, the offset of the system's group for tools is moved past it, so that retention need not keep
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.clock import Clock
from seglog.doctor.groups.parking import add_topic
from seglog.doctor.groups.receipts import Parcel, Receipt, ReceiptFile, Resender
from seglog.doctor.groups.resend_copy import for_everybody, for_group, origin_of
from seglog.doctor.message.predicates import Condition
from seglog.doctor.message.queue_messages import iter_queue
from seglog.doctor.tables.offset_table import OffsetTable
from seglog.errors import NotFoundError
from seglog.storage.files import Files
from seglog.storage.format.names import DLQ_PREFIX, RETRY_PREFIX
from seglog.storage.format.record import Message
from seglog.storage.format.system_names import TOOLS_GROUP
from seglog.storage.reads import MessageRow, row_of
from seglog.storage.store import MessageStore

TO_RETRY: Final = "retry"
"""Only the group that gave up the message gets it."""
TO_ORIGIN: Final = "origin"
"""Every group of its topic gets it."""


@dataclass(frozen=True, slots=True)
class Grave:
    """The dead letters of one group.

    Attributes:
        letters: Number of letters.
        resent: Number of letters that were sent again.
        oldest_ms: Store time of the first letter; 0 without letters.
        newest_ms: Store time of the last letter.
    """

    group: str
    letters: int
    resent: int
    oldest_ms: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter.

    Attributes:
        origin: The topic that it was consumed from.
        receipt: Its receipt if it was sent again; else None.
    """

    group: str
    message: Message
    row: MessageRow
    origin: str
    receipt: Receipt | None


def list_graves(files: Files, root: Path) -> list[Grave]:
    """Returns the groups that have dead letters, by name."""
    with MessageStore.open(root, create=False, read_only=True, files=files) as store:
        found: dict[str, Grave] = {}
        for queue in store.queues():
            if not queue.topic.startswith(DLQ_PREFIX) or queue.max_offset == queue.min_offset:
                continue
            group = queue.topic.removeprefix(DLQ_PREFIX)
            times = [
                message.store_timestamp_ms
                for at in (queue.min_offset, queue.max_offset - 1)
                for message in iter_queue(store, queue.topic, queue.queue_id, at, at + 1)
            ]
            before = found.get(group, Grave(group, 0, 0, 0, 0))
            oldest = [*([before.oldest_ms] if before.oldest_ms else []), *times]
            found[group] = Grave(
                group,
                before.letters + queue.max_offset - queue.min_offset,
                len(ReceiptFile(store, _receipts(group)).done),
                min(oldest, default=0),
                max([before.newest_ms, *times]),
            )
        return [found[group] for group in sorted(found)]


def iter_letters(
    store: MessageStore, groups: Collection[str], wanted: Condition, *, left_only: bool = False
) -> Iterator[Letter]:
    """Yields dead letters, by group, queue and place.

    Args:
        store: The store.
        groups: The groups; empty for every group.
        wanted: Condition on the messages.
        left_only: Whether to leave out letters that were sent again.

    Raises:
        NotFoundError: A group has none.
    """
    queues = [queue for queue in store.queues() if queue.topic.startswith(DLQ_PREFIX)]
    missing = set(groups) - {queue.topic.removeprefix(DLQ_PREFIX) for queue in queues}
    if missing:
        raise NotFoundError(
            f"group {min(missing)} has no dead letters", help="`seglog dlq ls STORE` lists groups that have"
        )
    for queue in queues:
        group = queue.topic.removeprefix(DLQ_PREFIX)
        if groups and group not in groups:
            continue
        done = ReceiptFile(store, _receipts(group)).done
        for message in iter_queue(store, queue.topic, queue.queue_id, queue.min_offset, queue.max_offset):
            row = row_of(message, message.queue_offset)
            receipt = done.get(_key(row))
            if wanted(row) and not (left_only and receipt is not None):
                yield Letter(group, message, row, origin_of(row), receipt)


def resend(
    files: Files,
    root: Path,
    clock: Clock,
    groups: Collection[str],
    wanted: Condition,
    *,
    to: str,
    rate: int = 0,
) -> Iterator[Receipt]:
    """Sends dead letters again, each once, and yields a receipt for each.

    Args:
        files: Access to the store.
        root: The store directory.
        clock: Gives the store times, and the rate.
        groups: The groups; empty for every group.
        wanted: Condition on the messages.
        to: :data:`TO_RETRY` or :data:`TO_ORIGIN`.
        rate: Most letters per second; 0 for no limit.

    Raises:
        StoreLockedError: A broker or another process has the store open.
        NotFoundError: A group has no letters.
        FullError: There is no space; the next run continues.
    """
    with MessageStore.open(root, create=False, files=files, clock=clock) as store:
        found = list(groups) or [
            queue.topic.removeprefix(DLQ_PREFIX)
            for queue in store.queues()
            if queue.topic.startswith(DLQ_PREFIX) and queue.queue_id == 0
        ]
        for group in found:
            receipts = ReceiptFile(store, _receipts(group))
            parcels = _parcels(store, group, wanted, to)
            if to == TO_RETRY:
                add_topic(store.files, root, f"{RETRY_PREFIX}{group}", clock.now_ms())
            yield from Resender(store, receipts, clock, rate).send(parcels)
            _pass(store, group, receipts, clock.now_ms())


def _parcels(store: MessageStore, group: str, wanted: Condition, to: str) -> Iterator[Parcel]:
    widths: dict[str, int] = {}
    for queue in store.queues():
        widths[queue.topic] = max(widths.get(queue.topic, 1), queue.queue_id + 1)
    for number, letter in enumerate(iter_letters(store, [group], wanted)):
        row = letter.row
        if to == TO_RETRY:
            new = for_group(row, group)
        else:
            new = for_everybody(row, number % widths.get(letter.origin, 1))
        yield Parcel(_key(row), new, row.msgId, group)


def _pass(store: MessageStore, group: str, receipts: ReceiptFile, now_ms: int) -> None:
    """Moves the group for tools past the letters that were all sent again."""
    topic = f"{DLQ_PREFIX}{group}"
    table = OffsetTable(store.files, store.path)
    for queue in store.queues():
        if queue.topic != topic:
            continue
        first = at = max(queue.min_offset, table.of(TOOLS_GROUP, topic, queue.queue_id) or 0)
        for message in iter_queue(store, topic, queue.queue_id, at, queue.max_offset):
            if _key(row_of(message, message.queue_offset)) not in receipts.done:
                break
            at = message.queue_offset + 1
        if at > first:
            table.set(TOOLS_GROUP, topic, queue.queue_id, at, now_ms)


def _key(row: MessageRow) -> str:
    return f"{row.msgId}:{row.queueOffset}"


def _receipts(group: str) -> str:
    return f"dlq-{group}"

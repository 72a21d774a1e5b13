"""Restores messages that retention has parked; see :mod:`seglog.broker.retention.retention_side_files`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.broker.retention import PARKED, SUFFIX, Why
from seglog.clock import Clock
from seglog.doctor.groups.parking import add_topic
from seglog.doctor.groups.receipts import Parcel, Receipt, ReceiptFile, Resender
from seglog.doctor.groups.resend_copy import for_group, for_its_time
from seglog.errors import InvalidArgumentError, SeglogError
from seglog.storage.files import Files
from seglog.storage.format.config import decode_json_object
from seglog.storage.reads import MessageRow, from_fields
from seglog.storage.store import MessageStore

_RECEIPTS: Final = "parked"


@dataclass(frozen=True, slots=True)
class ParkedMessages:
    """The messages in one file for one group.

    Attributes:
        file: The file, relative to the store.
        why: What the messages were needed for.
        group: The group; empty for delayed and half messages.
        messages: Number of messages.
        waiting: Number of messages that have not been restored.
    """

    file: str
    why: str
    group: str
    messages: int
    waiting: int


def list_parked(files: Files, root: Path, groups: Collection[str] = ()) -> list[ParkedMessages]:
    """Returns the parked messages, by file, reason and group.

    Args:
        files: Access to the store.
        root: The store directory.
        groups: Only messages for these groups; all if empty.

    Raises:
        InvalidArgumentError: A file is damaged.
    """
    with MessageStore.open(root, create=False, read_only=True, files=files) as store:
        done = ReceiptFile(store, _RECEIPTS).done
    counts: dict[tuple[str, str, str], list[int]] = {}
    for file, why, group, row in _iter_parked(files, root, groups):
        count = counts.setdefault((file, why.value, group), [0, 0])
        count[0] += 1
        count[1] += _key(why, group, row) not in done
    return [ParkedMessages(*key, *count) for key, count in sorted(counts.items())]


def unpark(files: Files, root: Path, clock: Clock, groups: Collection[str] = ()) -> Iterator[Receipt]:
    """Restores parked messages, and yields a receipt for each.

    Args:
        files: Access to the store.
        root: The store directory.
        clock: Gives the store times.
        groups: Only messages for these groups; all if empty.

    Raises:
        StoreLockedError: A broker or another process has the store open.
        InvalidArgumentError: A file is damaged.
        FullError: There is no space; the next run continues.
    """
    with MessageStore.open(root, create=False, files=files, clock=clock) as store:
        resender = Resender(store, ReceiptFile(store, _RECEIPTS), clock)
        topics: set[str] = set()
        for receipt in resender.send(_parcels(files, root, groups)):
            if receipt.topic not in topics:
                add_topic(store.files, root, receipt.topic, clock.now_ms())
                topics.add(receipt.topic)
            yield receipt


def _parcels(files: Files, root: Path, groups: Collection[str]) -> Iterator[Parcel]:
    for _file, why, group, row in _iter_parked(files, root, groups):
        new = row
        if why is Why.UNDELIVERED:
            new = for_group(row, group)
        elif why is Why.DELAYED:
            new = for_its_time(row)
        elif why is Why.HALF:
            continue
        yield Parcel(_key(why, group, row), new, row.msgId, group)


def _iter_parked(
    files: Files, root: Path, groups: Collection[str]
) -> Iterator[tuple[str, Why, str, MessageRow]]:
    folder = root / PARKED
    for entry in files.list_dir(folder):
        if entry.is_dir or not entry.name.endswith(SUFFIX):
            continue
        file = f"{PARKED}/{entry.name}"
        for number, line in enumerate(files.read_file(folder / entry.name).splitlines(), 1):
            try:
                fields = decode_json_object(line)
                row = from_fields(fields)
                needed = [(Why(one["why"]), str(one.get("group", ""))) for one in fields["parkedFor"]]
            except (ValueError, KeyError, TypeError, AttributeError, SeglogError) as error:
                raise InvalidArgumentError(f"{file} line {number} is damaged: {error}") from error
            for why, group in needed:
                if not groups or group in groups:
                    yield file, why, group, row


def _key(why: Why, group: str, row: MessageRow) -> str:
    return f"{why.value}:{group}:{row.msgId}:{row.queueOffset}"

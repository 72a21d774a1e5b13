"""The life of one message: its records as a tree, each with its index entries, queue unit and groups."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from seglog.doctor.message import copy_names
from seglog.doctor.message.log_access import LogView
from seglog.doctor.message.pending import Wait, wait_of
from seglog.doctor.message.related_records import Search
from seglog.doctor.message.roles import Role, group_of, parent_of, role_of
from seglog.doctor.tables.offset_table import GroupOffset
from seglog.storage.directory import queue_directory
from seglog.storage.format.index import record_keys
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.queue import CQ_UNIT, CQ_UNIT_BYTES
from seglog.storage.format.record import CRC_MASK, INNER_BATCH, Message, takes_queue_offset
from seglog.storage.format.record import properties as props


@dataclass(frozen=True, slots=True)
class UnitPlace:
    """The queue unit of a record.

    Attributes:
        file: The queue file, relative to the store.
        position_bytes: Position in the file.
        state: ``right``, ``other`` if it leads to another record, ``none`` if there is no unit.
    """

    file: str
    position_bytes: int
    state: str


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An entry of the key index that leads to a record: by a key, or by its tag."""

    file: str
    key: str
    is_tag: bool = False


@dataclass(frozen=True, slots=True)
class GroupState:
    """Whether a group's offset is past a record."""

    group: str
    next_offset: int
    has_passed: bool
    is_broadcast: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """One record of a message's life.

    Attributes:
        message: The record.
        parent: Physical offset of the record from which it was made; None for the first.
        group: The group that a retry, dead or parked copy is for.
        file: The commit-log file, relative to the store.
        position_bytes: Position in the file.
        has_record_crc: Whether it has ``__CRC32#``.
        unit: Its queue unit; None for records that have none, or share one.
        index: Entries of the key index that lead to it.
        groups: Groups that have an offset in its queue.
        wait: For a half, delayed or timer record: what it waits or waited for.
        is_erased: Whether its body was erased.
    """

    message: Message
    role: Role
    parent: int | None
    group: str | None
    file: str
    position_bytes: int
    has_record_crc: bool
    unit: UnitPlace | None
    index: tuple[IndexEntry, ...]
    groups: tuple[GroupState, ...]
    wait: Wait | None
    is_erased: bool

    @property
    def body_crc(self) -> int:
        """The CRC of the present body, equal to the CRC in the record: only such records are found."""
        return zlib.crc32(self.message.body) & CRC_MASK


@dataclass(frozen=True, slots=True)
class Life:
    """All records of one message, in log order, and how they were searched for."""

    stages: tuple[Stage, ...]
    search: Search

    def children(self, parent: int | None) -> list[Stage]:
        """Returns the records that were made from another one; for None the records that begin the tree."""
        return [stage for stage in self.stages if stage.parent == parent]


def life_of(view: LogView, family: Sequence[Message], search: Search, offsets: Sequence[GroupOffset]) -> Life:
    """Returns the life of a message.

    Args:
        view: The store.
        family: Its records, in log order.
        search: How they were searched for.
        offsets: The offsets of groups.
    """
    stages: list[Stage] = []
    for number, message in enumerate(family):
        parent = parent_of(message, family[:number])
        segment = view.segment_size_bytes
        position = message.phy_offset % segment
        stages.append(
            Stage(
                message,
                role_of(message),
                None if parent is None else parent.phy_offset,
                group_of(message),
                f"{COMMIT_LOG}/{segment_file_name(message.phy_offset - position)}",
                position,
                props.ends_with_record_crc(message.properties_raw),
                _unit(view, message),
                tuple(_index_entries(view, message)),
                _groups(message, offsets),
                wait_of(view, message, family[number + 1 :]),
                copy_names.ERASED in message.properties,
            )
        )
    return Life(tuple(stages), search)


def _unit(view: LogView, message: Message) -> UnitPlace | None:
    queue = view.listing.queue_files.get((message.topic, message.queue_id))
    if not takes_queue_offset(message.sys_flag) or message.sys_flag & INNER_BATCH or queue is None:
        return None
    size = view.listing.geometry.queue_file_size_bytes
    start = message.queue_offset * CQ_UNIT_BYTES
    position = start % size
    name = segment_file_name(start - position)
    file = f"{queue_directory(message.topic, message.queue_id)}/{name}"
    if start - position not in queue.sizes:
        return UnitPlace(file, position, "none")
    with closing(view.files.open(queue.directory / name, writable=False)) as handle:
        buffer = bytearray(CQ_UNIT_BYTES)
        handle.read_into(memoryview(buffer), position)
    unit = np.frombuffer(buffer, CQ_UNIT.dtype)[0]
    if int(unit["phy_offset"]) == message.phy_offset and int(unit["size_bytes"]) == message.size_bytes:
        return UnitPlace(file, position, "right")
    return UnitPlace(file, position, "other" if any(buffer) else "none")


def _index_entries(view: LogView, message: Message) -> list[IndexEntry]:
    """Returns the entries of a record, those of its keys first; RocketMQ indexes tags since 5.4.0."""
    found: list[IndexEntry] = []
    keys = record_keys(message.topic, message.properties_raw, message.sys_flag, tags=False)
    for key in dict.fromkeys(keys):
        name = key.removeprefix(f"{message.topic}#")
        for file, phy_offset in view.index_places(message.topic, name):
            if phy_offset == message.phy_offset:
                found.append(IndexEntry(file, name))
            elif phy_offset < message.phy_offset:
                break  # chains lead to ever smaller places
    if tag := message.tags:
        files = view.tag_entries(message.topic, tag, message.phy_offset)
        found += [IndexEntry(file, tag, is_tag=True) for file in files]
    return found


def _groups(message: Message, offsets: Sequence[GroupOffset]) -> tuple[GroupState, ...]:
    if not takes_queue_offset(message.sys_flag):
        return ()
    return tuple(
        GroupState(one.group, one.queue_offset, one.queue_offset > message.queue_offset, one.is_broadcast)
        for one in offsets
        if (one.topic, one.queue_id) == (message.topic, message.queue_id)
    )

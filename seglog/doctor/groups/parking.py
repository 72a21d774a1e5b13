"""Parks one message for a group: writes a copy to the group's parking topic, and moves the group past it.

The copy is on the disk before the offset moves, so a crash in between leaves the message parked and not yet
skipped; the next run finds the copy and only skips. The copy has all fields of the message, and two
properties that name its origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.broker.tables import DataVersion, TopicConfig, as_object
from seglog.clock import Clock
from seglog.doctor.message import LogView, Scan, find_families
from seglog.doctor.message.copy_names import PARKED_FROM, PARKED_ID
from seglog.doctor.message.roles import Role, group_of, role_of
from seglog.doctor.tables.offset_table import GroupOffset, OffsetTable
from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.directory import demand_own_tables
from seglog.storage.files import Files
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import CONFIG, OURS, PARK_PREFIX, check_group
from seglog.storage.format.record import Message, tags_code
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.small_files import ConfigFile
from seglog.storage.store import MessageStore
from seglog.storage.writes import Durability

_CONSUMED: Final = (Role.MESSAGE, Role.COMMITTED, Role.RETRY)
_KEPT_FLAGS: Final = flags.COMPRESSED | flags.COMPRESSION_MASK | flags.MULTI_TAGS
_DROPPED: Final = (props.INNER_MULTI_DISPATCH, props.INNER_MULTI_QUEUE_OFFSET)
"""Properties that would put the copy into further queues."""


@dataclass(frozen=True, slots=True)
class Parked:
    """The result of parking.

    Attributes:
        message: The message that was parked.
        topic: The parking topic.
        queue_offset: The copy's offset in its queue 0.
        message_id: The copy's id.
        was_parked: Whether the copy existed already, from a run that did not complete.
        before: The group's former offset.
        after: The group's new offset.
    """

    message: Message
    topic: str
    queue_offset: int
    message_id: str
    was_parked: bool
    before: int
    after: int


def park(files: Files, root: Path, clock: Clock, wanted: str, group: str) -> Parked:
    """Parks the next message of a group.

    Args:
        files: Access to the store.
        root: The store directory.
        clock: Time stamps for the copy and the table.
        wanted: Its message id or unique key.
        group: The group.

    Raises:
        NotFoundError: No such message, or the group has no offset in its queue.
        InvalidArgumentError: The message is not the next one of the group.
        UnsupportedStoreError: The store has queues in RocksDB, or its broker keeps tables there.
        StoreLockedError: A broker or another process has the store open.
        FullError: No space; the group's offset is unchanged.
    """
    check_group(group)
    demand_own_tables(files, root)
    with LogView(files, root) as view:
        (*_others, family) = find_families(view, wanted, scan=Scan.WHERE_NEEDED).families
    message, before = _choose(family, OffsetTable(files, root).all(), wanted, group)
    topic = f"{PARK_PREFIX}{group}"
    parked = next((one for one in family if one.topic == topic and _is_copy(one, message)), None)
    with MessageStore.open(root, create=False, files=files, clock=clock) as store:
        if parked is None:
            put = store.append(
                topic,
                0,
                message.body,
                _properties(message),
                tags_code(message.tags or ""),
                sys_flag=message.sys_flag & _KEPT_FLAGS,
                flag=message.flag,
                born_timestamp_ms=message.born_timestamp_ms,
                born_host=message.born_host,
                reconsume_times=message.reconsume_times,
                durability=Durability.SYNC,
            )
            queue_offset, message_id = put.queue_offset, put.message_id
        else:
            queue_offset, message_id = parked.queue_offset, parked.message_id
        add_topic(store.files, root, topic, clock.now_ms())
        after = message.queue_offset + 1
        OffsetTable(store.files, root).set(group, message.topic, message.queue_id, after, clock.now_ms())
    return Parked(message, topic, queue_offset, message_id, parked is not None, before, after)


def _choose(
    family: Sequence[Message], offsets: Sequence[GroupOffset], wanted: str, group: str
) -> tuple[Message, int]:
    """Returns the record at the group's offset, and the offset."""
    consumed = [one for one in family if role_of(one) in _CONSUMED and group_of(one) in (None, group)]
    at = {(one.topic, one.queue_id): one.queue_offset for one in offsets if one.group == group}
    known = [one for one in consumed if (one.topic, one.queue_id) in at]
    if not known:
        raise NotFoundError(
            f"group {group} has no offset in the queue of {wanted}",
            help="`seglog explain STORE MSGID` shows the groups that have",
        )
    for one in known:
        if at[one.topic, one.queue_id] == one.queue_offset:
            if one.sys_flag & flags.INNER_BATCH:
                raise InvalidArgumentError(f"{wanted} is a batch of several messages: it cannot be parked")
            return one, one.queue_offset
    last = known[-1]
    offset = at[last.topic, last.queue_id]
    state = (
        "has passed it" if offset > last.queue_offset else f"stands {last.queue_offset - offset} before it"
    )
    raise InvalidArgumentError(
        f"{wanted} is {last.topic}/{last.queue_id} @{last.queue_offset}; {group} {state} (next {offset})",
        help="park puts aside the message that a group stands at; `seglog skip` moves a group anywhere",
    )


def _is_copy(parked: Message, message: Message) -> bool:
    return parked.properties.get(PARKED_ID) == message.message_id


def _properties(message: Message) -> bytes:
    kept = {name: value for name, value in message.properties.items() if name not in (*_DROPPED, props.CRC32)}
    kept[PARKED_FROM] = f"{message.topic}/{message.queue_id}@{message.queue_offset}"
    kept[PARKED_ID] = message.message_id
    return props.encode_properties(kept)


def add_topic(files: Files, root: Path, topic: str, now_ms: int) -> None:
    """Adds the parking topic to topics.json, if that exists, so that a broker knows it."""
    file = ConfigFile(files, root / CONFIG / "topics.json", root / OURS / "evidence")
    fields = dict(file.load(lambda value: as_object(value, "topics")) or {})
    table = dict(as_object(fields.get("topicConfigTable", {}), "topicConfigTable"))
    if not fields or topic in table:
        return
    table[topic] = TopicConfig(topic, 1, 1).to_config()
    version = DataVersion.parse(fields.get("dataVersion")).next(now_ms)
    changed: dict[str | int, ConfigValue] = {
        **fields,
        "topicConfigTable": table,
        "dataVersion": version.to_config(),
    }
    file.save(changed)

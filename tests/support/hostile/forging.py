"""Contents that are wrong and look right: every checksum, count and length around them is as it should be."""

from __future__ import annotations

import base64
import dataclasses
import json
import random
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from seglog.doctor.erase.erased_record import erase_record
from seglog.errors import SeglogError
from seglog.storage.directory.directory_listing import list_store
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.ours.offset_history import decode_changes, encode_changes
from seglog.storage.format.ours.recovery_point import (
    QueueSum,
    RecoveryPoint,
    decode_recovery_point,
    encode_recovery_point,
)
from seglog.storage.format.ours.seal import Seal, decode_seal, encode_seal
from seglog.storage.format.ours.undo_journal import UndoEntry, UndoKind
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.record import CRC_MASK, HEADS, HOST_BITS, MAGIC_V1, MAGIC_V2, SYS_FLAG_AT
from tests.support.damage.packs import BEGIN, entries_of, file_entry, journal_bytes
from tests.support.hostile.values import NAMES, noise, number

_T = TypeVar("_T", Seal, RecoveryPoint)
Forge = Callable[[random.Random, bytes, Path], bytes]
"""Given dice, what the file holds and the store, returns what it is to hold."""

_UNENCODABLE: Final = (struct.error, ValueError, OverflowError)
"""What encoders raise for numbers and texts that their fields cannot hold."""
_PROPERTIES: Final = (
    props.INNER_NUM, props.INNER_BASE, props.INNER_MULTI_DISPATCH, props.INNER_MULTI_QUEUE_OFFSET,
    "REAL_TOPIC", "REAL_QID", "UNIQ_KEY", "KEYS", "TAGS", "PGROUP", "RETRY_TOPIC", "DELAY",
    "TIMER_OUT_MS", "TIMER_DELAY_MS", "TIMER_ROLL_TIMES", "ORIGIN_MESSAGE_ID", "TRAN_MSG",
    "SEGLOG_LOST", "SEGLOG_ERASED", "SEGLOG_PARKED_FROM", "SEGLOG_PARKED_ID", "SEGLOG_RESENT_ID",
)  # fmt: skip
_BOMB: Final = zlib.compress(bytes(1 << 24))
_HEAD_FIELDS: Final = (
    "queue_id", "queue_offset", "phy_offset", "sys_flag", "store_timestamp_ms", "born_timestamp_ms",
    "prepared_transaction_offset", "reconsume_times", "size_bytes", "body_bytes", "magic",
)  # fmt: skip


def forge_log(dice: random.Random, data: bytes, _root: Path) -> bytes:
    """Gives some records of a file of the log another topic, other properties or numbers."""
    places = _records(data)
    if not places:
        return noise(dice, data)
    changed = bytearray(data)
    for _change in range(dice.choice((1, 2, 4))):
        at, size = dice.choice(places)
        changed[at : at + size] = _forge_record(dice, bytes(changed[at : at + size]))
    return bytes(changed)


def _records(data: bytes) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = 0
    while at + 8 <= len(data):
        size, magic = struct.unpack_from(">iI", data, at)
        if magic not in (MAGIC_V1, MAGIC_V2) or size < 91 or at + size > len(data):
            break
        found.append((at, size))
        at += size
    return found


def _forge_record(dice: random.Random, record: bytes) -> bytes:
    """Returns a record of the same length whose checksums are right."""
    layout = HEADS[int.from_bytes(record[SYS_FLAG_AT : SYS_FLAG_AT + 4], "big") & HOST_BITS]
    head = dict(zip([field.name for field in layout.fields], layout.struct.unpack_from(record), strict=True))
    topic = dice.choice(NAMES).encode("utf-8", "surrogatepass") if dice.random() < 0.6 else b"Topic0"
    named = {
        dice.choice(_PROPERTIES): dice.choice((*NAMES, str(number(dice)), "1,2,3", "%LMQ%a,%LMQ%../b"))
        for _property in range(dice.randrange(4))
    }
    properties = b"".join(
        name.encode() + b"\1" + value.encode("utf-8", "surrogatepass") + b"\2"
        for name, value in named.items()
    )
    has_crc = dice.random() < 0.5
    tail = len(properties) + (props.CRC_PROPERTY_BYTES if has_crc else 0)
    is_long = len(topic) > 127
    head["magic"] = MAGIC_V2 if is_long else MAGIC_V1
    room = len(record) - layout.size_bytes - (2 if is_long else 1) - len(topic) - 2 - tail
    if room < 0:
        return noise(dice, record)[: len(record)].ljust(len(record), b"\0")
    body = dice.randbytes(room) if dice.random() < 0.5 else _BOMB[:room].ljust(room, b"\0")
    head["body_bytes"] = room
    head["body_crc"] = zlib.crc32(body) & CRC_MASK if body else 0
    for _field in range(dice.randrange(3)):
        name = dice.choice(_HEAD_FIELDS)
        width = 8 if name.endswith(("_offset", "_ms")) else 4
        value = number(dice) % (1 << 8 * width)
        head[name] = value if name == "magic" or value < 1 << 8 * width - 1 else value - (1 << 8 * width)
    made = layout.struct.pack(*head.values()) + body
    made += len(topic).to_bytes(2 if is_long else 1, "big") + topic
    made += (tail % (1 << 16)).to_bytes(2, "big") + properties
    if has_crc:
        made += props.crc_property(zlib.crc32(made) & CRC_MASK)
    return made[: len(record)].ljust(len(record), b"\0")


def forge_pack(dice: random.Random, _data: bytes, root: Path) -> bytes:
    """Writes the journal of a pack whose entries lead anywhere."""
    try:
        entries = entries_of(root) if dice.random() < 0.7 else []
    except (OSError, SeglogError):  # something unexpected is in the store by now
        entries = []
    names = [entry.path for entry in entries] or ["checkpoint"]
    for _entry in range(dice.choice((1, 2, 5))):
        name = dice.choice((*NAMES, *names[:3], dice.choice(names)))
        target = dice.choice(NAMES).encode(
            "utf-8", "surrogateescape" if dice.random() < 0 else "surrogatepass"
        )
        kind = dice.choice(list(UndoKind))
        if dice.random() < 0.5:
            entries.append(file_entry(_sayable(name), abs(number(dice)) % (1 << 63), mode=0o104777))
        position = max(-(1 << 63), min((1 << 63) - 1, number(dice)))
        size = max(-(1 << 63), min((1 << 63) - 1, number(dice)))
        if dice.random() < 0.4:
            position, size = 0, len(target)
        entries.append(
            UndoEntry(kind, _sayable(name), target, position_bytes=position, size_bytes=size, mode=0o777)
        )
    count = number(dice) % (1 << 62) if dice.random() < 0.1 else None
    return journal_bytes((BEGIN, *entries), count=count)


def _sayable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def forge_erasing(dice: random.Random, _data: bytes, root: Path) -> bytes:
    """Writes the journal of an erase that is to write something somewhere."""
    listing = list_store(StoreRoot(root), root)
    segment = listing.geometry.segment_size_bytes
    folder = root / "commitlog"
    names = [path for path in sorted(folder.iterdir()) if _is_small_file(path)]
    path = dice.choice(names) if names else None
    data = path.read_bytes() if path is not None else b""
    first = int(path.name) if path is not None and path.name.isdecimal() else 0
    records: list[object] = []
    for at, size in _records(data)[: dice.choice((1, 2, 50))]:
        record = data[at : at + size]
        try:
            made = erase_record(record, first + at).data if dice.random() < 0.7 else record
        except SeglogError:
            made = record
        place = first + at if dice.random() < 0.7 else number(dice)
        records.append({"phyOffset": place, "data": base64.b64encode(made).decode()})
    stated = segment if dice.random() < 0.7 else number(dice)
    return json.dumps({"segmentBytes": stated, "records": records}).encode()


def _is_small_file(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size < 1 << 24


def forge_seal(dice: random.Random, data: bytes, _root: Path) -> bytes:
    """Writes a seal that says something else, with its checksum."""
    try:
        return encode_seal(_replaced(dice, decode_seal(data)))
    except (SeglogError, TypeError, *_UNENCODABLE):
        return noise(dice, data)


def forge_point(dice: random.Random, data: bytes, _root: Path) -> bytes:
    """Writes a recovery point that says something else, with its checksum."""
    try:
        point = decode_recovery_point(data)
        if point.queues and dice.random() < 0.4:
            point = _replace_queue(dice, point, dice.choice(dataclasses.fields(QueueSum)).name)
        return encode_recovery_point(_replaced(dice, point))
    except (SeglogError, TypeError, *_UNENCODABLE):
        return noise(dice, data)


def forge_history(dice: random.Random, data: bytes, _root: Path) -> bytes:
    """Writes a history of offsets with other names and numbers, with its checksums."""
    changes = list(decode_changes(data).changes)
    if not changes:
        return noise(dice, data)
    at = dice.randrange(len(changes))
    one = changes[at]
    other = {
        "topic": dice.choice(NAMES), "group": dice.choice(NAMES), "client": dice.choice(NAMES),
        "queue_id": number(dice), "timestamp_ms": number(dice), "before": number(dice), "after": number(dice),
    }  # fmt: skip
    fields: dict[str, Any] = {
        name: value for name, value in other.items() if name in one._fields and dice.random() < 0.4
    }
    try:
        changes[at] = one._replace(**fields)
        return encode_changes(changes)
    except _UNENCODABLE:
        return noise(dice, data)


def seals_forged(dice: random.Random, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields a seal once for each of its fields, with another value in it.

    Values that a field cannot hold are left out.
    """
    seal = decode_seal(data)
    for field in dataclasses.fields(seal):
        with suppress(*_UNENCODABLE):
            yield field.name, encode_seal(_replace_fields(dice, seal, [field.name]))


def points_forged(dice: random.Random, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields a recovery point once for each of its fields, and of those of a queue, with another value in it.

    Values that a field cannot hold are left out.
    """
    point = decode_recovery_point(data)
    for field in dataclasses.fields(point):
        with suppress(*_UNENCODABLE):
            yield field.name, encode_recovery_point(_replace_fields(dice, point, [field.name]))
    for field in dataclasses.fields(QueueSum):
        with suppress(*_UNENCODABLE):
            yield f"queues.{field.name}", encode_recovery_point(_replace_queue(dice, point, field.name))


def _replaced(dice: random.Random, value: _T) -> _T:
    """Returns a value with one or two of its numbers, or arrays, changed."""
    names = [field.name for field in dataclasses.fields(value)]
    return _replace_fields(dice, value, dice.sample(names, dice.choice((1, 2))))


def _replace_fields(dice: random.Random, value: _T, names: Iterable[str]) -> _T:
    numbers = [
        had for field in dataclasses.fields(value) if isinstance(had := getattr(value, field.name), int)
    ]
    return dataclasses.replace(value, **{name: _other(dice, getattr(value, name), numbers) for name in names})


def _replace_queue(dice: random.Random, point: RecoveryPoint, name: str) -> RecoveryPoint:
    """Returns a point with one field of one of its queues changed."""
    at = dice.randrange(len(point.queues))
    queue = point.queues[at]
    numbers = [queue.first_slot, queue.end_slot, len(queue.crcs), *queue.last_places]
    changed = dataclasses.replace(queue, **{name: _other(dice, getattr(queue, name), numbers)})
    if len(changed.crcs) != len(changed.last_places):
        # Both have one number a file: the other one is as long as that which was changed.
        other = "last_places" if name == "crcs" else "crcs"
        length = len(getattr(changed, name))
        same: dict[str, Any] = {other: tuple(np.resize(np.array(getattr(queue, other)), length).tolist())}
        changed = dataclasses.replace(changed, **same)
    return dataclasses.replace(point, queues=(*point.queues[:at], changed, *point.queues[at + 1 :]))


def _other(dice: random.Random, had: Any, numbers: list[int]) -> Any:
    """Returns another value for a field; a number is often one that the file has elsewhere, or the next."""
    if isinstance(had, int):
        return dice.choice(numbers) + dice.choice((-1, 0, 1)) if dice.random() < 0.3 else number(dice)
    if isinstance(had, str):
        return dice.choice(NAMES)
    if isinstance(had, np.ndarray):
        return np.resize(had, dice.choice((0, 1, 1000)))
    return dice.choice((had * 0, had[:-1], had[1:], had[::-1], had * 2, had * 1000))

"""The history of consumer offsets: who moved which group where in a queue, and when.

A file is a row of changes, each a head, three names and a CRC-32C. It begins with a change of kind BEGIN
and the offsets of all groups as they were then, so every file says by itself where a group stood at any
moment since; older files can go. A name is as long as its head says, in UTF-8.

Only the newest file is appended to. What a crash left of its last change is no change. Damage elsewhere costs
the changes that it is in: the next one is found by its magic number and proven by its checksum.

Truth: none of a group's offset, which is ``config/consumerOffset.json``; all of how it came there.

Source: seglog's own. RocketMQ knows nothing of ``<store>/seglog/``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import crc32c

from seglog.storage.format.layout import Field, Layout

OFFSET_CHANGE_MAGIC: Final = 0x4F464831
MAX_CLIENT_BYTES: Final = 1024
"""Longer names of clients are cut."""
NO_OFFSET: Final = -1

OFFSET_CHANGE: Final = Layout(
    "Offset history, one change",
    "seglog/offsets/NUMBER in the store",
    (
        Field("magic", "u32", "–", "0x4F464831, OFH1 in ASCII"),
        Field("crc32c", "u32", "–", "CRC-32C of everything behind this field, names included"),
        Field("kind", "i16", "–", "why the offset changed"),
        Field("topic_bytes", "i16", "bytes", "length of the topic that follows"),
        Field("group_bytes", "i16", "bytes", "length of the group behind it"),
        Field("client_bytes", "i16", "bytes", "length of the name behind that: who changed it"),
        Field("commits", "i32", "–", "how many commits of one client became this one change"),
        Field("queue_id", "i32", "–", "the queue"),
        Field("timestamp_ms", "i64", "ms", "when, or when the last of them"),
        Field("before_offset", "i64", "messages", "where the group went on before; -1: nowhere"),
        Field("after_offset", "i64", "messages", "where it goes on now; -1: nowhere"),
    ),
)

_CHECKED_FROM: Final = OFFSET_CHANGE.offsets["kind"]
_MAGIC_BYTES: Final = OFFSET_CHANGE_MAGIC.to_bytes(4, "big")


class ChangeKind(enum.IntEnum):
    """Why an offset changed."""

    BEGIN = 0
    """A file begins; no offset."""
    STATE = 1
    """Where the group stood when the file began."""
    COMMIT = 2
    """A client of the group said so."""
    RESET = 3
    """Somebody moved the group to an offset or a time."""
    CLAMP = 4
    """It lay beyond the end of its queue, and was set to that end."""
    DELETE = 5
    """The group, or its offsets, were deleted."""
    CLONE = 6
    """It was copied from another group."""
    RESTORE = 7
    """It was put back to where it was at another moment."""
    FOUND = 8
    """The table was changed by someone who keeps no history, or its newest changes were lost in a crash."""


class OffsetChange(NamedTuple):
    """One change; a tuple, because there is one for every commit.

    Attributes:
        kind: Why.
        timestamp_ms: When; of the last one if ``commits`` is more than 1.
        before: Where the group went on before; None for nowhere.
        after: Where it goes on; None for nowhere.
        client_id: Who changed it; empty if that is not known.
        commits: How many commits it stands for.
    """

    kind: ChangeKind
    timestamp_ms: int
    group: str = ""
    topic: str = ""
    queue_id: int = 0
    before: int | None = None
    after: int | None = None
    client_id: str = ""
    commits: int = 1

    @property
    def is_backwards(self) -> bool:
        """Whether the group gets messages again that it had passed."""
        return self.before is not None and self.after is not None and self.after < self.before


@dataclass(frozen=True, slots=True)
class DecodedChanges:
    """What a file holds.

    Attributes:
        changes: Those that are whole, in their order.
        state_bytes: Behind the offsets that the file begins with.
        end_bytes: Behind the last of them; what follows was cut off by a crash.
        damaged_bytes: Bytes before that which are no change.
    """

    changes: list[OffsetChange]
    state_bytes: int
    end_bytes: int
    damaged_bytes: int


def encode_changes(changes: Iterable[OffsetChange]) -> bytes:
    """Returns the bytes of changes, one behind the other."""
    names: dict[tuple[str, str, str], tuple[bytes, int, int, int]] = {}
    pack, checksum = OFFSET_CHANGE.struct.pack, crc32c.crc32c
    encoded: list[bytes] = []
    for change in changes:
        kind, timestamp_ms, group, topic, queue_id, before, after, client_id, commits = change
        key = topic, group, client_id
        tail = names.get(key)
        if tail is None:
            tail = names[key] = _encode_names(*key)
        packed = pack(
            OFFSET_CHANGE_MAGIC,
            0,
            kind,
            *tail[1:],
            commits,
            queue_id,
            timestamp_ms,
            NO_OFFSET if before is None else before,
            NO_OFFSET if after is None else after,
        )
        checked = packed[_CHECKED_FROM:] + tail[0]
        encoded += (_MAGIC_BYTES, checksum(checked).to_bytes(4, "big"), checked)
    return b"".join(encoded)


def decode_changes(data: bytes) -> DecodedChanges:
    """Returns the changes of a file; what is no change is stepped over and counted."""
    changes: list[OffsetChange] = []
    names: dict[bytes, str] = {}
    view = memoryview(data)
    at = state = end = damaged = 0
    while 0 <= at < len(data):
        found = _decode_change(data, view, at, names)
        if found is None:
            at = data.find(_MAGIC_BYTES, at + 1)
            continue
        change, next_at = found
        damaged += at - end
        at = end = next_at
        if change[0] in _BEGINNING:
            state = end
        changes.append(change)
    return DecodedChanges(changes, state, end, damaged)


def _encode_names(topic: str, group: str, client_id: str) -> tuple[bytes, int, int, int]:
    """Returns the three names and how long each of them is."""
    # Names come from a file that others write: any text of JSON must come back as it was.
    names = [name.encode("utf-8", "surrogatepass") for name in (topic, group)]
    # A cut may fall into a character: what is left of it is dropped.
    client = client_id.encode("utf-8", "replace")[:MAX_CLIENT_BYTES].decode("utf-8", "ignore").encode()
    return b"".join((*names, client)), len(names[0]), len(names[1]), len(client)


def _decode_change(
    data: bytes, view: memoryview, at: int, names: dict[bytes, str]
) -> tuple[OffsetChange, int] | None:
    """Returns the change at a position and where it ends, None if there is none."""
    names_at = at + _HEAD_BYTES
    if names_at > len(data):
        return None
    head = _UNPACK(data, at)
    magic, crc, number, topic_bytes, group_bytes, client_bytes = head[:6]
    commits, queue_id, timestamp_ms, before, after = head[6:]
    group_at = names_at + topic_bytes
    client_at = group_at + group_bytes
    end = client_at + client_bytes
    kind = _KINDS.get(number)
    if magic != OFFSET_CHANGE_MAGIC or kind is None or not names_at <= group_at <= client_at <= end:
        return None
    if end > len(data) or crc32c.crc32c(view[at + _CHECKED_FROM : end]) != crc:
        return None
    change = OffsetChange(
        kind,
        timestamp_ms,
        _name(data[group_at:client_at], names),
        _name(data[names_at:group_at], names),
        queue_id,
        None if before == NO_OFFSET else before,
        None if after == NO_OFFSET else after,
        _name(data[client_at:end], names),
        commits,
    )
    return change, end


def _name(raw: bytes, names: dict[bytes, str]) -> str:
    """Returns a name, the same object for the same bytes: few names fill a file."""
    name = names.get(raw)
    if name is None:
        name = names[raw] = raw.decode("utf-8", "surrogatepass")
    return name


_HEAD_BYTES: Final = OFFSET_CHANGE.size_bytes
_UNPACK: Final = OFFSET_CHANGE.struct.unpack_from
_BEGINNING: Final = (ChangeKind.BEGIN, ChangeKind.STATE)
_KINDS: Final = {kind.value: kind for kind in ChangeKind}

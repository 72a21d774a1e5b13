"""The history of consumer offsets: who moved which group where in a queue, and when.

A file is a row of changes, each a head, three names and a CRC-32C. It begins with a change of kind BEGIN
and the offsets of all groups as they were then, so every file says by itself where a group stood at any
moment since; older files can go. A name is as long as its head says, in UTF-8.

Only the newest file is appended to. What a crash left of its last change is no change. Damage elsewhere costs
the changes that it lies in: the next one is found by its magic number and proven by its checksum.

Truth: none of a group's offset, which is ``config/consumerOffset.json``; all of how it came there.

Source: seglog's own. RocketMQ knows nothing of ``<store>/seglog/``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

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


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """One change.

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
        end_bytes: Behind the last of them; what follows was cut off by a crash.
        damaged_bytes: Bytes before that which are no change.
    """

    changes: list[OffsetChange] = field(default_factory=list)
    end_bytes: int = 0
    damaged_bytes: int = 0


def encode_changes(changes: Iterable[OffsetChange]) -> bytes:
    """Returns the bytes of changes, one behind the other."""
    return b"".join(map(encode_change, changes))


def encode_change(change: OffsetChange) -> bytes:
    """Returns the bytes of one change."""
    # Names come from a file that others write: whatever JSON can say must come back as it was.
    topic, group = (name.encode("utf-8", "surrogatepass") for name in (change.topic, change.group))
    # A cut may fall into a character: what is left of it is dropped.
    client = change.client_id.encode("utf-8", "replace")[:MAX_CLIENT_BYTES]
    client = client.decode("utf-8", "ignore").encode()
    packed = OFFSET_CHANGE.struct.pack(
        OFFSET_CHANGE_MAGIC,
        0,
        change.kind,
        len(topic),
        len(group),
        len(client),
        change.commits,
        change.queue_id,
        change.timestamp_ms,
        NO_OFFSET if change.before is None else change.before,
        NO_OFFSET if change.after is None else change.after,
    )
    checked = packed[_CHECKED_FROM:] + topic + group + client
    return _MAGIC_BYTES + crc32c.crc32c(checked).to_bytes(4, "big") + checked


def decode_changes(data: bytes) -> DecodedChanges:
    """Returns the changes of a file; what is no change is stepped over and counted."""
    changes: list[OffsetChange] = []
    view = memoryview(data)
    at = end = damaged = 0
    while 0 <= at < len(data):
        found = _decode_change(view[at:])
        if found is None:
            at = data.find(_MAGIC_BYTES, at + 1)
            continue
        change, size_bytes = found
        damaged += at - end
        at = end = at + size_bytes
        changes.append(change)
    return DecodedChanges(changes, end, damaged)


def _decode_change(view: memoryview) -> tuple[OffsetChange, int] | None:
    if len(view) < OFFSET_CHANGE.size_bytes:
        return None
    magic, crc, kind, *sizes, commits, queue_id, timestamp_ms, before, after = (
        OFFSET_CHANGE.struct.unpack_from(view)
    )
    size_bytes = OFFSET_CHANGE.size_bytes + sum(sizes)
    if magic != OFFSET_CHANGE_MAGIC or min(sizes) < 0 or size_bytes > len(view):
        return None
    if crc32c.crc32c(view[_CHECKED_FROM:size_bytes]) != crc or kind not in _KINDS:
        return None
    names: list[str] = []
    at = OFFSET_CHANGE.size_bytes
    for size in sizes:
        names.append(str(view[at : at + size], "utf-8", "surrogatepass"))
        at += size
    topic, group, client_id = names
    change = OffsetChange(
        _KINDS[kind],
        timestamp_ms,
        group,
        topic,
        queue_id,
        None if before == NO_OFFSET else before,
        None if after == NO_OFFSET else after,
        client_id,
        commits,
    )
    return change, size_bytes


_KINDS: Final = {kind.value: kind for kind in ChangeKind}

"""The history of consumer offsets: who moved which group where in a queue, and when.

A file is a row of changes, each a head, three names and a CRC-32C. It begins with a change of kind BEGIN
and the offsets of all groups as they were then, so every file says by itself where a group stood at any
moment since; older files can go. A name is as long as its head says, in UTF-8.

Only the newest file is appended to. While a broker has it open, zeros may follow its changes: space for the
next ones. What a crash left of its last change is no change. Damage elsewhere costs
the changes that it is in: the next one is found by its magic number and proven by its checksum.

Truth: how each offset came to be. ``config/consumerOffset.json`` is written every few seconds; where it is as
seglog saved it last, the changes behind that save count too.

Source: seglog's own. RocketMQ knows nothing of ``<store>/seglog/``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

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
        Field("after_offset", "i64", "messages", "where it continues now; -1: nowhere"),
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
    """An operator moved the group to an offset or a time."""
    CLAMP = 4
    """It lay beyond the end of its queue, and was set to that end."""
    DELETE = 5
    """The group, or its offsets, were deleted."""
    CLONE = 6
    """It was copied from another group."""
    RESTORE = 7
    """It was put back to where it was at another moment."""
    FOUND = 8
    """The table was changed by someone who keeps no history."""
    SAVED = 9
    """The table was saved with all changes before this one; ``after_offset`` has the print of its file."""


class OffsetChange(NamedTuple):
    """One change; a tuple, because there is one for every commit.

    Attributes:
        kind: Why.
        timestamp_ms: When; of the last one if ``commits`` is more than 1.
        before: Where the group went on before; None for nowhere.
        after: Where it continues; None for nowhere.
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


@dataclass(frozen=True, slots=True)
class DecodedOffsets:
    """Where groups stand at the end of a file.

    Attributes:
        offsets: By group, topic and queue.
        prints: Of the files of the table, as they were saved; the newest last.
        state_bytes: As in :class:`DecodedChanges`.
        end_bytes: As in :class:`DecodedChanges`.
    """

    offsets: dict[tuple[str, str, int], int]
    prints: list[int]
    state_bytes: int
    end_bytes: int


def file_print(data: bytes) -> int:
    """Returns by what a saved table is known again: its length and its CRC-32C."""
    return (len(data) & 0x7FFFFFFF) << 32 | crc32c.crc32c(data)


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
    return DecodedChanges(changes, *_decode(data, changes, []))


def decode_offsets(data: bytes) -> DecodedOffsets:
    """Returns where the changes of a file lead, without an object for each."""
    offsets: dict[tuple[str, str, int], int] = {}
    prints: list[int] = []
    state_bytes, end_bytes, _damaged_bytes = _decode(data, offsets, prints)
    return DecodedOffsets(offsets, prints, state_bytes, end_bytes)


def _decode(data: bytes, found: _Found, prints: list[int]) -> tuple[int, int, int]:
    at = state = end = damaged = 0
    while 0 <= at < len(data):
        begun = at
        at, state = _decode_neighbours(data, at, found, prints, state)
        if at > begun:
            damaged += begun - end
            end = at
        if at < len(data):
            at = data.find(_MAGIC_BYTES, at + 1)
    return state, end, damaged


def _encode_names(topic: str, group: str, client_id: str) -> tuple[bytes, int, int, int]:
    """Returns the three names and how long each of them is."""
    # Names come from a file that others write: any text of JSON must come back as it was.
    names = [name.encode("utf-8", "surrogatepass") for name in (topic, group)]
    # A cut may fall into a character: what is left of it is dropped.
    client = client_id.encode("utf-8", "replace")[:MAX_CLIENT_BYTES].decode("utf-8", "ignore").encode()
    return b"".join((*names, client)), len(names[0]), len(names[1]), len(client)


def _decode_neighbours(data: bytes, at: int, into: _Found, prints: list[int], state: int) -> tuple[int, int]:
    """Decodes changes from a position on, one behind the other, up to what is none.

    A start reads some hundred thousand of them: this is one function, and a row of names is decoded once.

    Args:
        data: The file.
        at: Where the first one starts.
        into: A list that gets them, or a table of offsets that is brought up to them.
        prints: Gets the prints of saved tables, where ``into`` is a table.
        state: Behind the offsets that the file begins with, as far as known.

    Returns:
        Where the last one ends, and ``state``.
    """
    names: dict[tuple[bytes, int, int], tuple[str, str, str]] = {}
    texts: dict[bytes, str] = {}
    view, size, unpack, new = memoryview(data), len(data), _UNPACK, tuple.__new__
    checksum, checked_from = crc32c.crc32c, _CHECKED_FROM
    changes, offsets = (into, {}) if isinstance(into, list) else (None, into)
    while (names_at := at + _HEAD_BYTES) <= size:
        head = unpack(data, at)
        magic, crc, number, topic_bytes, group_bytes, client_bytes, commits, queue_id, ms, before, after = (
            head
        )
        end = names_at + topic_bytes + group_bytes + client_bytes
        kind = _KINDS.get(number)
        if magic != OFFSET_CHANGE_MAGIC or kind is None or end > size:
            break
        if topic_bytes < 0 or group_bytes < 0 or client_bytes < 0:
            break
        if checksum(view[at + checked_from : end]) != crc:
            break
        key = data[names_at:end], topic_bytes, group_bytes
        found = names.get(key)
        if found is None:
            try:
                found = names[key] = _names_of(*key, texts)
            except UnicodeDecodeError:
                break  # no change that was encoded here
        topic, group, client_id = found
        if changes is not None:
            before = None if before == NO_OFFSET else before
            after = None if after == NO_OFFSET else after
            # Its constructor is a line of Python.
            changes.append(
                new(OffsetChange, (kind, ms, group, topic, queue_id, before, after, client_id, commits))
            )
        elif number == _SAVED:
            prints.append(after)
        elif number != _BEGIN and after != NO_OFFSET:
            offsets[group, topic, queue_id] = after
        elif number != _BEGIN:
            offsets.pop((group, topic, queue_id), None)
        if number <= _LAST_BEGINNING:
            state = end
        at = end
    return at, state


def _names_of(
    raw: bytes, topic_bytes: int, group_bytes: int, texts: dict[bytes, str]
) -> tuple[str, str, str]:
    """Returns topic, group and client; the same objects for the same bytes: few names fill a file."""
    client_at = topic_bytes + group_bytes
    topic, group, client = (
        texts.setdefault(name, name.decode("utf-8", "surrogatepass"))
        for name in (raw[:topic_bytes], raw[topic_bytes:client_at], raw[client_at:])
    )
    return topic, group, client


_HEAD_BYTES: Final = OFFSET_CHANGE.size_bytes
_UNPACK: Final = OFFSET_CHANGE.struct.unpack_from
_BEGIN: Final = ChangeKind.BEGIN.value
_SAVED: Final = ChangeKind.SAVED.value
_LAST_BEGINNING: Final = max(ChangeKind.BEGIN, ChangeKind.STATE)
_KINDS: Final = {kind.value: kind for kind in ChangeKind}
_Found: TypeAlias = list[OffsetChange] | dict[tuple[str, str, int], int]

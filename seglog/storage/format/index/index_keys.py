"""The keys of a record, in the order in which RocketMQ indexes them.

``topic#UNIQ_KEY`` first, then ``topic#key`` for each non-empty piece of KEYS between single spaces, and
since 5.4.0 ``topic#T#tag``. An index keeps its manner: a store whose files have no entries for tags gets
none, so that a rebuild equals what was there.

ROLLBACK records are not indexed, PREPARED ones are. RocketMQ leaves out records before the end of the
newest file and takes the one at the end again.

Source: ``store/.../index/IndexService.java buildIndex``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from seglog.storage.format.record import properties as props
from seglog.storage.format.record.sys_flag import TRANSACTION_MASK, TRANSACTION_ROLLBACK
from seglog.storage.format.record.tombstone import LOST

UNIQ_KEY_NAME: Final = props.UNIQ_KEY.encode()
KEYS_NAME: Final = props.KEYS.encode()
TAGS_NAME: Final = props.TAGS.encode()
OF_TOMBSTONES: Final = LOST.encode()


class IndexedRecord(NamedTuple):
    """What the index needs of a record; ``properties`` as stored."""

    phy_offset: int
    store_timestamp_ms: int
    sys_flag: int
    topic: str
    properties: bytes


def tag_key(topic: str, tag: str) -> str:
    """Returns the key under which messages of a tag are found."""
    return f"{topic}#T#{tag}"


def record_keys(topic: str, properties: bytes, sys_flag: int, *, tags: bool) -> list[str]:
    """Returns the keys of a record, in order; one may occur twice.

    Args:
        topic: Of the record.
        properties: As stored.
        sys_flag: Of the record.
        tags: Whether the index has entries for tags.
    """
    if sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
        return []
    keys = []
    unique = props.find_property(properties, UNIQ_KEY_NAME)
    if unique is not None:
        keys.append(f"{topic}#{key_text(unique)}")
    joined = props.find_property(properties, KEYS_NAME)
    if joined is not None:
        keys += [f"{topic}#{key}" for key in props.split_keys(key_text(joined))]
    tag = props.find_property(properties, TAGS_NAME) if tags else None
    if tag is not None:
        keys.append(tag_key(topic, key_text(tag)))
    return keys


def telling_tag(record: IndexedRecord) -> str | None:
    """Returns the tag by which a record shows whether an index has tags, None if it cannot.

    ROLLBACK records are in none, and the tag of a tombstone is younger than the index.
    """
    tag = props.find_property(record.properties, TAGS_NAME)
    if tag in (None, OF_TOMBSTONES) or record.sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
        return None
    return key_text(tag)


def key_text(value: bytes) -> str:
    """Returns a stored value as Java decodes it."""
    return value.decode("utf-8", "replace")

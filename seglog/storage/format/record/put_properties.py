"""What applications say of a message besides its body, as a record and its queue unit hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seglog.arguments import as_mapping, as_text, refusal
from seglog.storage.format.record.properties import KEY_SEPARATOR, KEYS, TAGS, encode_properties
from seglog.storage.format.record.tags import tags_code


def encode_all_properties(
    tags: str | None, keys: str | Iterable[str] | None, properties: Mapping[str, str] | None
) -> tuple[bytes, int]:
    """Returns all properties as they are stored, and the tags code that goes with them.

    Raises:
        MessageIllegalError: One cannot be stored.
        InvalidArgumentError: One is no text.
    """
    if tags is None and keys is None and (properties is None or properties == {}):
        return b"", 0
    found = all_properties(tags, keys, properties)
    return encode_properties(found, is_new=True), tags_code(found.get(TAGS))


def all_properties(
    tags: str | None, keys: str | Iterable[str] | None, properties: Mapping[str, str] | None
) -> dict[str, str]:
    """Returns all properties in one new dictionary.

    Keys given as one text are RocketMQ's KEYS, which has blanks between keys; of several none holds a blank,
    and none is empty.

    Raises:
        InvalidArgumentError: A tag, a key or all properties are no text, or no mapping; or a key has a blank,
            or is empty.
    """
    if type(properties) is dict:
        found = properties.copy()
    elif properties is None:
        found = {}
    else:
        found = dict(as_mapping("properties", properties))
    if tags is not None:
        found[TAGS] = tags if type(tags) is str else as_text("tags", tags)
    if keys is not None:
        found[KEYS] = keys if type(keys) is str else _joined(keys)
    return found


def _joined(keys: str | Iterable[str]) -> str:
    if isinstance(keys, str):
        return keys
    if isinstance(keys, bytes | bytearray | memoryview) or not isinstance(keys, Iterable):
        raise refusal("keys", keys, "str or several of them")
    several = [as_text("keys", key) for key in keys]
    for key in several:
        if not key:
            raise refusal("keys", key, "a key that is not empty", "leave an empty key out")
        if KEY_SEPARATOR in key:
            raise refusal("keys", key, "a key without blanks", "blanks part the keys: use another sign")
    return KEY_SEPARATOR.join(several)

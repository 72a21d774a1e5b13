"""What applications say of a message besides its body, as a record and its queue unit hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seglog.storage.format.properties import KEYS, TAGS, encode_properties
from seglog.storage.format.tags import tags_code


def encode_all_properties(
    tags: str | None, keys: str | Iterable[str] | None, properties: Mapping[str, str] | None
) -> tuple[bytes, int]:
    """Returns all properties as they are stored, and the tags code that goes with them.

    Raises:
        MessageIllegalError: One cannot be stored.
    """
    if tags is None and keys is None and not properties:
        return b"", 0
    found = dict(properties) if properties else {}
    if tags is not None:
        found[TAGS] = tags
    if keys is not None:
        found[KEYS] = keys if isinstance(keys, str) else " ".join(keys)
    return encode_properties(found), tags_code(found.get(TAGS))

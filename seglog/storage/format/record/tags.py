"""The tagsCode of a queue unit: Java's ``String.hashCode`` of the tag.

The hash runs over UTF-16 code units, wraps at 32 bits and is sign-extended to 64: hashing bytes, or
wrapping later, gives other codes for anything outside ASCII. Codes collide ("Aa" and "BB"), so a
filter by code compares the tag itself as well.

Source: ``MessageExtBrokerInner.java tagsString2tagsCode``.
"""

from __future__ import annotations

from functools import lru_cache


def java_string_hash(text: str) -> int:
    """Returns Java's ``text.hashCode()`` as a signed 32-bit value."""
    code = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            code = (31 * code + unit) & 0xFFFF_FFFF
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            code = (31 * code + (high << 8 | low)) & 0xFFFF_FFFF
    return code - (1 << 32) if code >> 31 else code


@lru_cache(maxsize=4096)
def stored_tags_code(tag: bytes | None) -> int:
    """Returns the tagsCode of a tag as properties hold it, which may be no UTF-8."""
    return 0 if tag is None else tags_code(tag.decode("utf-8", "replace"))


@lru_cache(maxsize=4096)
def tags_code(tag: str | None) -> int:
    """Returns the tagsCode of a tag: 0 for none or an empty one."""
    return java_string_hash(tag) if tag else 0

"""Message properties: ``name 0x01 value 0x02`` and so on, UTF-8.

Reading is lenient, as RocketMQ's is: a piece counts only if it has a name of at least one byte, the
separator and at least one byte of value, so empty names and values vanish; a later duplicate wins; a
second 0x01 belongs to the value; the last 0x02 may be missing (4.x writers). The order of entries is
that of the writer and means nothing.

``__CRC32#`` is RocketMQ's own check of a whole record: 20 bytes reserved at the very end of the
properties (and so of the record) that hold the CRC-32 of everything before them, as ten decimal digits,
least significant first. Elsewhere the entry counts for nothing. With ``enabledAppendPropCRC`` RocketMQ takes
what a client sent under that name out of single messages, and puts its own behind it in those of a batch;
without, RocketMQ stores what it is given, such as the copy of a delayed message whose record had one. There
it is whole and has whole entries behind it. One that is cut short by the end of the properties, or that has
a NUL behind it, with which the size of the next record begins, is what a misplaced sector leaves.

Source: ``MessageDecoder.java string2messageProperties, messageProperties2String, createCrc32``;
``CommitLog.java asyncPutMessage``; ``MessageExtEncoder.java encode``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NoReturn

from typing_extensions import override

from seglog.arguments import as_text
from seglog.errors import MessageIllegalError
from seglog.storage.format.layout import Buffer

KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
UNIQ_KEY: Final = "UNIQ_KEY"
SHARDING_KEY: Final = "__SHARDINGKEY"
WAIT: Final = "WAIT"
DELAY: Final = "DELAY"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE_ID: Final = "REAL_QID"
RETRY_TOPIC: Final = "RETRY_TOPIC"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
TTL: Final = "TTL"
INNER_MULTI_DISPATCH: Final = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET: Final = "INNER_MULTI_QUEUE_OFFSET"
INNER_NUM: Final = "INNER_NUM"
INNER_BASE: Final = "INNER_BASE"
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
CRC32: Final = "__CRC32#"

KEY_SEPARATOR: Final = " "
"""Between the keys in KEYS (``Message.java setKeys``); no other white space is one."""

NAME_END: Final = 1
ENTRY_END: Final = 2
_ENTRY_END: Final = bytes((ENTRY_END,))
_NUL: Final = b"\0"
MAX_PROPERTIES_BYTES: Final = 32767
"""The length field is a signed 16-bit integer; the reserved CRC property counts."""

TORN_NULS: Final = 8
"""So many in a row are a page that is missing."""
_TORN: Final = bytes(TORN_NULS)
CRC_NAME: Final = CRC32.encode() + b"\x01"
CRC_DIGITS: Final = 10
CRC_PROPERTY_BYTES: Final = len(CRC_NAME) + CRC_DIGITS + 1
_SEPARATORS: Final = "\x01\x02"
_CUT_CRC_BYTES: Final = CRC_PROPERTY_BYTES - 1
_CRC_BACKWARDS: Final = b"\x02%%0%dd" % CRC_DIGITS + CRC_NAME[::-1]
_MISPLACED_CRC: Final = re.compile(rb"%b(?:\d{0,%d}\Z|\d{%d}\x02\0)" % (CRC_NAME, CRC_DIGITS, CRC_DIGITS))
"""Cut short by the end of the properties, or with the head of a record behind it."""


def split_keys(value: str) -> list[str]:
    """Returns the keys that a value of KEYS holds."""
    return [key for key in value.split(KEY_SEPARATOR) if key]


def encode_properties(properties: Mapping[str, str], *, is_new: bool = False) -> bytes:
    """Returns the stored form, with 0x02 behind every entry as 5.x writes it.

    Args:
        properties: Values by name.
        is_new: Whether an application gives them now. Then no value holds 0x01, for which some clients drop
            a property; RocketMQ's Java reads it, so what was stored with it is stored again.

    Raises:
        MessageIllegalError: A name or value holds a separator, or a name is empty.
        InvalidArgumentError: A name or value is no text.
    """
    try:
        text = "".join([name + "\x01" + value + "\x02" for name, value in properties.items()])
    except TypeError:
        _check_types(properties)
        raise
    count = len(properties)
    if "" in properties or text.count("\x01") != count or text.count("\x02") != count:
        _check_entries(properties, _SEPARATORS if is_new else _SEPARATORS[1:])
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        bad = error.object[error.start : error.end]
        name, value = next(entry for entry in properties.items() if bad in entry[0] or bad in entry[1])
        raise MessageIllegalError(
            f"property {name[:40]!r}={value[:40]!r} is not valid text: {error.reason} ({bad[:1]!r})",
            help="encode binary values, for example as base64",
        ) from error


def _check_types(properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        as_text("properties: a name", name)
        as_text(f"properties[{name[:40]!r}]", value)


def _check_entries(properties: Mapping[str, str], refused_in_values: str) -> None:
    for name, value in properties.items():
        if not name or not {*name}.isdisjoint(_SEPARATORS) or not {*value}.isdisjoint(refused_in_values):
            raise MessageIllegalError(
                f"property {name!r}={value[:40]!r} cannot be stored: a name must not be empty, and neither"
                " name nor value may hold the separators 0x01 and 0x02",
                help="encode binary values, for example as base64",
            )


def decode_properties(raw: bytes) -> dict[str, str]:
    """Returns the entries that RocketMQ would see; bytes that are not UTF-8 become U+FFFD."""
    found: dict[str, str] = {}
    for piece in raw.split(b"\x02"):
        name_size = piece.find(b"\x01")
        if name_size >= 1 and name_size + 1 < len(piece):
            name = piece[:name_size].decode("utf-8", "replace")
            found[name] = piece[name_size + 1 :].decode("utf-8", "replace")
    return found


class Properties(dict[str, str]):
    """The properties of a stored message: a dictionary that refuses changes, which would change no message.

    ``dict(properties)`` is a copy that can be changed.

    Raises:
        TypeError: It is to be changed.
    """

    __slots__ = ()

    @classmethod
    def of(cls, raw: bytes) -> Properties:
        """Returns the entries of stored properties; see :func:`decode_properties`."""
        return cls(decode_properties(raw))

    def _refuse(self, *_given: object, **_named: object) -> NoReturn:
        raise TypeError("the properties of a stored message are fixed; dict(message.properties) is a copy")

    if not TYPE_CHECKING:
        __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    @override
    def __reduce__(self) -> tuple[type[Properties], tuple[dict[str, str]]]:
        # Otherwise a pickle would add the entries one by one.
        return type(self), (dict(self),)


def find_property(raw: bytes, name: bytes) -> bytes | None:
    """Returns the value of one property without decoding the others, None if it is not there.

    Args:
        raw: Stored properties.
        name: The name's UTF-8 bytes.
    """
    needle = name + b"\x01"
    at = raw.rfind(needle)
    while at >= 0:
        # A hit inside another entry's value is not the property; only the start of an entry counts.
        if at == 0 or raw[at - 1] == ENTRY_END:
            start = at + len(needle)
            end = raw.find(b"\x02", start)
            value = raw[start:] if end < 0 else raw[start:end]
            if value:
                return value
        at = raw.rfind(needle, 0, at)
    return None


def look_torn(raw: bytes) -> bool:
    """Returns whether properties that no record CRC covers are not what a writer made of them.

    They hold the zeros of a write that did not reach the disk: a run inside them, where a page is missing,
    or any at their end, where the file was cut. Or they hold ``__CRC32#`` as only bytes of another place do.
    """
    if raw.find(_NUL) < 0:  # nearly all: what is left is a name that the end cuts short
        return raw[-1:] != _ENTRY_END and _MISPLACED_CRC.search(raw, len(raw) - _CUT_CRC_BYTES) is not None
    return raw[-1:] == _NUL or raw.find(_TORN) >= 0 or _MISPLACED_CRC.search(raw) is not None


def ends_with_record_crc(raw: Buffer) -> bool:
    """Returns whether a record, or its properties, end with a ``__CRC32#`` entry."""
    return raw[-CRC_PROPERTY_BYTES : len(CRC_NAME) - CRC_PROPERTY_BYTES] == CRC_NAME


def without_crc_property(raw: bytes) -> bytes:
    """Returns the properties without entries named ``__CRC32#``, which only a writer of records may set."""
    if raw.find(CRC_NAME) < 0:
        return raw
    kept = [piece for piece in raw.split(b"\x02") if piece and not piece.startswith(CRC_NAME)]
    return b"".join(piece + b"\x02" for piece in kept)


def crc_property(crc: int) -> bytes:
    """Returns the ``__CRC32#`` entry of a CRC as records end with it."""
    # Its digits are stored least significant first: spelled backwards, one format makes it.
    return (_CRC_BACKWARDS % crc)[::-1]

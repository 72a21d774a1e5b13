"""JSON as text: standard, and as fastjson writes it.

fastjson leaves keys that are numbers without quotes, and writes a key that is an object as that object:
``{0:"a"}``, ``{{"queueId":0,"topic":"t"}:1}``. Standard JSON has ``{"0":"a"}`` and the object's text as a
string, which Java reads as well. Only a route is written in the standard way, for those who ask so.

Source: fastjson 1.2.83 ``MapSerializer.java``; ``ClientRequestProcessor.java getRouteInfoByTopic``.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from typing import Final

from seglog.errors import CorruptError, ProtocolError
from seglog.remoting.frames.limits import Limits
from seglog.storage.format.config import ConfigValue, decode_config

_USUAL_KEYS: Final = 64
"""Of one object; the longest header that is a body has some twenty."""


class Dialect(enum.Enum):
    """How keys are written."""

    FASTJSON = enum.auto()
    STANDARD = enum.auto()


class ObjectKey(str):
    """A key that is an object: its text."""

    __slots__ = ()


def write_json(value: ConfigValue, dialect: Dialect = Dialect.FASTJSON) -> str:
    """Returns the text of a value, without spaces."""
    pieces: list[str] = []
    _write(value, dialect, pieces)
    return "".join(pieces)


def read_json(text: bytes | memoryview, limits: Limits) -> ConfigValue:
    """Returns the value of a text in either dialect; a key that is an object is the text of that object.

    Raises:
        ProtocolError: It is no JSON, has a key twice, or is beyond a limit.
    """
    data = bytes(text)
    lists, objects = data.count(b"["), data.count(b"{")
    if lists > limits.json_lists:
        raise ProtocolError(f"a JSON body has about {lists} lists, at most {limits.json_lists}")
    keys = data.count(b":") - _USUAL_KEYS * objects
    if keys > limits.json_keys:
        raise ProtocolError(
            f"a JSON body has about {keys} keys beyond {_USUAL_KEYS} of an object, at most {limits.json_keys}"
        )
    count = data.count(b",") + objects + lists
    if count > limits.json_values:
        raise ProtocolError(f"a JSON body has about {count} values, at most {limits.json_values}")
    try:
        return decode_config(data, has_unique_keys=True)
    except CorruptError as error:
        where = f"at byte {error.position_bytes}: found {error.found}, expected {error.expected}"
        raise ProtocolError(f"a body is no JSON {where}") from error


def _write(value: ConfigValue, dialect: Dialect, pieces: list[str]) -> None:
    if isinstance(value, Mapping):
        separator = "{"
        for key, item in value.items():
            pieces.append(f"{separator}{_key(key, dialect)}:")
            _write(item, dialect, pieces)
            separator = ","
        pieces.append("}" if value else "{}")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        separator = "["
        for item in value:
            pieces.append(separator)
            _write(item, dialect, pieces)
            separator = ","
        pieces.append("]" if value else "[]")
    else:
        pieces.append(_SCALARS[dialect].encode(value))


def _key(key: str | int, dialect: Dialect) -> str:
    is_native = dialect is Dialect.FASTJSON
    if isinstance(key, int):
        return str(key) if is_native else f'"{key}"'
    return key if is_native and isinstance(key, ObjectKey) else _SCALARS[dialect].encode(key)


# fastjson writes any character as it is; its form for browsers, which routes have, escapes all but ASCII.
_SCALARS: Final = {
    Dialect.FASTJSON: json.JSONEncoder(ensure_ascii=False, allow_nan=False),
    Dialect.STANDARD: json.JSONEncoder(ensure_ascii=True, allow_nan=False),
}

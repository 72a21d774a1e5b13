"""RocketMQ's ``config/*.json``: JSON as fastjson 1.2.83 writes it, which is not standard JSON.

Maps with integer keys are written without quotes (``{0:12,1:5}``), maps keyed by objects with the whole
object as the key (``{{"topic":"t","queueId":0}:{…}}``). Both are read here beside standard JSON. An
unquoted integer key becomes an ``int``, an object key the text of that object, so what is read and
written again keeps its shape; references (``$ref``) are resolved. The layout differs between RocketMQ's
versions and means nothing; ours is that of 5.4.0.

Reading never recurses deeper than :data:`MAX_DEPTH` and raises nothing but ``CorruptError``.

Source: ``ConfigManager.java encode/decode``, ``RemotingSerializable.java toJson``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from seglog.errors import CorruptError
from seglog.storage.format.config.config_json_quick import decode_quickly
from seglog.storage.format.config.config_refs import REF, resolve_refs
from seglog.storage.format.config.config_value import ConfigValue

MAX_DEPTH: Final = 32
"""RocketMQ's own files nest seven deep."""
_LOOSE_DEPTH: Final = 200
"""Of what is read to see which part of a file cannot be."""

_SPACES: Final = re.compile(r"[ \t\n\r]++")
_INTEGER_KEY: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,18})(?![0-9])")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,4})?(?![0-9.eE])")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_STRINGS: Final = json.JSONDecoder(strict=False)
"""Reads one string; fastjson lets control characters through, so we do."""


def decode_config(text: str | bytes, *, has_unique_keys: bool = False) -> ConfigValue:
    """Returns the value of a config file.

    Args:
        text: The whole file; bytes are taken as UTF-8.
        has_unique_keys: Whether a key that stands twice in an object is an error; else the later one holds,
            as in Java.

    Raises:
        CorruptError: Anything but one JSON value of the dialect, and it says where; or a reference that
            leads nowhere.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise CorruptError(
                "config-json", position_bytes=error.start, expected="UTF-8", found=error.reason
            ) from error
    quick = decode_quickly(text, MAX_DEPTH, has_unique_keys=has_unique_keys)
    value = decode_closely(text, has_unique_keys=has_unique_keys) if quick is None else quick[0]
    return resolve_refs(value, len(text)) if f'"{REF}"' in text else value


def decode_loosely(text: bytes) -> ConfigValue:
    """Returns the value of a file of which a part cannot be read: references as they stand, and more levels.

    Raises:
        CorruptError: Anything but one JSON value of the dialect.
    """
    return decode_closely(text.decode("utf-8", "replace"), max_depth=_LOOSE_DEPTH)


def decode_closely(text: str, *, has_unique_keys: bool = False, max_depth: int = MAX_DEPTH) -> ConfigValue:
    """Returns the value of a text with its references as they stand there.

    Args:
        text: The whole text.
        has_unique_keys: As for :func:`decode_config`.
        max_depth: How deep values may be.

    Raises:
        CorruptError: As :func:`decode_config`.
    """
    reader = _Reader(text, has_unique_keys, max_depth)
    value = reader.read_value(depth=0)
    if reader.peek():
        reader.fail("the end")
    return value


def encode_config(value: ConfigValue) -> str:
    """Returns the text that RocketMQ would write: tabs, no space behind colons, no newline at the end."""
    pieces: list[str] = []
    _write(value, "\n", pieces)
    return "".join(pieces)


class _Reader:
    """One pass over the text; ``_at`` is the character to read next."""

    __slots__ = ("_at", "_has_unique_keys", "_max_depth", "_text")

    def __init__(self, text: str, has_unique_keys: bool, max_depth: int) -> None:
        self._max_depth = max_depth
        self._text = text
        self._has_unique_keys = has_unique_keys
        self._at = 0

    def peek(self) -> str:
        """Skips white space and returns the next character, empty at the end."""
        spaces = _SPACES.match(self._text, self._at)
        if spaces is not None:
            self._at = spaces.end()
        return self._text[self._at : self._at + 1]

    def fail(self, expected: str) -> NoReturn:
        found = self._text[self._at : self._at + 20] or "the end"
        position_bytes = len(self._text[: self._at].encode("utf-8", "surrogatepass"))
        raise CorruptError("config-json", position_bytes=position_bytes, expected=expected, found=repr(found))

    def read_value(self, depth: int) -> ConfigValue:
        if depth > self._max_depth:
            self.fail(f"at most {self._max_depth} levels")
        character = self.peek()
        if character == "{":
            return self._read_object(depth)
        if character == "[":
            return self._read_list(depth)
        if character == '"':
            return self._read_string()
        for word, value in _WORDS.items():
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return value
        return self._read_number()

    def _read_object(self, depth: int) -> dict[str | int, ConfigValue]:
        self._at += 1
        entries: dict[str | int, ConfigValue] = {}
        if self._ends_with("}"):
            return entries
        while True:
            key = self._read_key(depth)
            if self._has_unique_keys and key in entries:
                self.fail(f"another key than {key!r}")
            if self.peek() != ":":
                self.fail("':'")
            self._at += 1
            entries[key] = self.read_value(depth + 1)
            if self._ends_with("}"):
                return entries
            self._skip_comma("',' or '}'")

    def _read_key(self, depth: int) -> str | int:
        character = self.peek()
        if character == '"':
            return self._read_string()
        if character == "{":
            start = self._at
            self.read_value(depth + 1)
            return self._text[start : self._at]
        match = _INTEGER_KEY.match(self._text, self._at)
        if match is None:
            self.fail("a key")
        self._at = match.end()
        return int(match[0])

    def _read_list(self, depth: int) -> list[ConfigValue]:
        self._at += 1
        items: list[ConfigValue] = []
        if self._ends_with("]"):
            return items
        while True:
            items.append(self.read_value(depth + 1))
            if self._ends_with("]"):
                return items
            self._skip_comma("',' or ']'")

    def _read_string(self) -> str:
        try:
            text, self._at = _STRINGS.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = error.pos
            self.fail(f"a string ({error.msg})")
        return str(text)

    def _read_number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            self.fail("a value")
        if match[1] is None and match[2] is None:
            self._at = match.end()
            return int(match[0])
        number = float(match[0])
        if not math.isfinite(number):
            self.fail("a number within range")
        self._at = match.end()
        return number

    def _ends_with(self, bracket: str) -> bool:
        if self.peek() != bracket:
            return False
        self._at += 1
        return True

    def _skip_comma(self, expected: str) -> None:
        if self.peek() != ",":
            self.fail(expected)
        self._at += 1


def _write(value: ConfigValue, newline: str, pieces: list[str]) -> None:
    if isinstance(value, str):
        pieces.append(_quote(value))
    elif isinstance(value, Mapping):
        inner = newline + "\t"
        # An empty map has an empty line in it: fastjson indents before it knows that nothing follows.
        pieces.append("{" + inner)
        separator = ""
        further = "," + inner
        for key, item in value.items():
            name = key if isinstance(key, int) else _quote(key)
            if type(item) is int:  # most of what there is: offsets
                pieces.append(f"{separator}{name}:{item}")
            else:
                pieces.append(f"{separator}{name}:")
                _write(item, inner, pieces)
            separator = further
        pieces.append(newline + "}")
    elif isinstance(value, Sequence):
        inner = newline + "\t"
        separator = "[" + inner
        for item in value:
            pieces.append(separator)
            _write(item, inner, pieces)
            separator = "," + inner
        pieces.append(newline + "]" if value else "[]")
    else:
        pieces.append(json.dumps(value, allow_nan=False))


def _quote(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)  # half of a surrogate pair can be written only as an escape
    return json.dumps(text, ensure_ascii=False)

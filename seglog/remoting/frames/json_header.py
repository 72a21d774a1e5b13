"""Header of form JSON: one object with the numbers of the frame and ``extFields``, text to text.

Java reads a field of any kind as text, so ``{"queueId": 3}`` is the same as ``{"queueId": "3"}``, and passes
over what it does not know. A name that stands twice is refused: two readers that take different ones would
see different requests.

Source: ``RemotingSerializable.java``, ``RemotingCommand.java``; fastjson 1.2.83.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from seglog.errors import FrameError
from seglog.remoting.frames.frame import Frame, Serialization
from seglog.remoting.frames.languages import LANGUAGE_NUMBERS, LANGUAGES, OTHER
from seglog.remoting.frames.limits import Limits
from seglog.storage.kernels.wire_headers import native_read, native_write

MAX_DEPTH: Final = 32
"""Levels of what stands in a header; those of RocketMQ have two."""

_END_I32: Final = 1 << 31
_WHOLE: Final = re.compile(r"-?[0-9]{1,11}")
_SURE_DIGITS: Final = 10
"""A number of fewer digits fits into 32 bits."""
_ONLY_TEXT: Final = {str}


def decode_json_header(header: bytes, body: bytes | memoryview, limits: Limits) -> Frame:
    """Returns the frame of a header and a body.

    Raises:
        FrameError: It is no JSON object with what a header has, or beyond a limit.
    """
    found = None if native_read is None else native_read(header, limits.ext_fields)
    if found is not None:
        code, language, version, opaque, flag, said, texts = found
        known = LANGUAGES[0] if language is None else _language(language)
        return Frame(code, known, version, opaque, flag, said, texts, body, Serialization.JSON)
    return _decode(header, body, limits)


def _decode(header: bytes, body: bytes | memoryview, limits: Limits) -> Frame:
    """Returns the same, of any header."""
    try:
        text = header.decode()
    except UnicodeDecodeError as error:
        raise FrameError(f"a header is not UTF-8 at byte {error.start}: {error.reason}") from error
    if header.count(b"{") + header.count(b"[") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise FrameError(f"a header has more than {MAX_DEPTH} levels")
    try:
        fields = _DECODER.decode(text)
    except ValueError as error:
        raise FrameError(f"a header is no JSON: {str(error)[:120]}") from error
    if not isinstance(fields, dict):
        raise FrameError(f"a header is {type(fields).__name__}, not an object")
    ext = fields.get("extFields")
    if ext is not None:
        if not isinstance(ext, dict):
            raise FrameError(f"extFields of a header are {type(ext).__name__}, not an object")
        if len(ext) > limits.ext_fields:
            raise FrameError(f"a header has {len(ext)} fields, at most {limits.ext_fields}")
        if set(map(type, ext.values())) != _ONLY_TEXT:
            ext = {name: _as_text(value) for name, value in ext.items() if value is not None}
    remark = fields.get("remark")
    return Frame(
        _number(fields, "code"),
        _language(fields.get("language", LANGUAGES[0])),
        _number(fields, "version"),
        _number(fields, "opaque"),
        _number(fields, "flag"),
        None if remark is None else _as_text(remark),
        ext,
        body,
        Serialization.JSON,
    )


def encode_json_header(frame: Frame) -> bytes:
    """Returns the header of a frame with its members in Java's order."""
    if native_write is not None:
        form = frame.serialization.name
        written = native_write(
            frame.code,
            frame.ext,
            frame.flag,
            frame.language,
            frame.opaque,
            frame.remark,
            form,
            frame.version,
        )
        if written is not None:
            return written
    return _encode(frame)


def _encode(frame: Frame) -> bytes:
    fields: dict[str, object] = {"code": frame.code}
    if frame.ext is not None:
        fields["extFields"] = dict(frame.ext)
    fields |= {"flag": frame.flag, "language": frame.language, "opaque": frame.opaque}
    if frame.remark is not None:
        fields["remark"] = frame.remark
    fields |= {"serializeTypeCurrentRPC": frame.serialization.name, "version": frame.version}
    return _ENCODER.encode(fields).encode("utf-8", "replace")


def _number(fields: Mapping[str, Any], name: str) -> int:
    """Returns a number of 32 bits; 0 where the header has none."""
    found = fields.get(name)
    if found is None:
        return 0
    if not isinstance(found, str):
        number = _END_I32
    elif len(found) < _SURE_DIGITS and found.isascii() and found.isdigit():
        return int(found)
    else:
        number = int(found) if _WHOLE.fullmatch(found) else _END_I32
    if not -_END_I32 <= number < _END_I32:
        raise FrameError(f"{name} of a header is {str(found)[:40]!r}, not a whole number of 32 bits")
    return number


def _language(found: object) -> str:
    return found if isinstance(found, str) and found in LANGUAGE_NUMBERS else OTHER


def _as_text(value: object) -> str:
    """Returns a field as fastjson reads it into a map of texts."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        left = dict.fromkeys(found, 1)
        twice = next(name for name, _ in pairs if not left.pop(name, 0))
        raise ValueError(f"the name {twice[:40]!r} stands twice")
    return found


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is no number of JSON")


def _depth(text: str) -> int:
    """Returns how many levels a text has; what stands in strings is none."""
    depth = deepest = 0
    is_inside = is_escaped = False
    for character in text:
        if is_inside:
            is_inside = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
        elif character == '"':
            is_inside = True
        elif character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth -= 1
    return deepest


# Numbers stay text: a field is text in the end, and no number is too long to be passed over.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=str, parse_float=str, parse_constant=_no_constant, strict=False
)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

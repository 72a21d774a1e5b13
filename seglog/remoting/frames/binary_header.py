"""Header of form ROCKETMQ: fixed numbers, a remark, and fields as pairs with their lengths.

The code has 16 bits. RocketMQ cuts greater ones off, so POP_MESSAGE (200050) arrives as 3442. No other
request has the numbers that come of it, and they are taken for what they were.

Source: ``RocketMQSerializable.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from seglog.errors import FrameError
from seglog.remoting.frames.frame import RESPONSE_FLAG, Frame, Serialization
from seglog.remoting.frames.languages import LANGUAGE_NUMBERS, LANGUAGES, OTHER
from seglog.remoting.frames.limits import Limits
from seglog.storage.format.layout import I16, I32, Field, Layout

HEADER: Final = Layout(
    "Header of form ROCKETMQ",
    "RocketMQSerializable.java rocketMQProtocolEncode",
    (
        Field("code", "i16", "–", "request or response code, cut to 16 bits"),
        Field("language", "u8", "–", "number of the LanguageCode"),
        Field("version", "i16", "–", "ordinal of the MQVersion"),
        Field("opaque", "i32", "–", "number of the request"),
        Field("flag", "i32", "–", "1 response, 2 oneway"),
    ),
)
_CUT_CODES: Final = {
    code - (3 << 16): code for code in (200050, 200051, 200052, 200053, 200054, 200055, 200151)
}


def decode_binary_header(header: bytes, body: bytes | memoryview, limits: Limits) -> Frame:
    """Returns the frame of a header and a body.

    Raises:
        FrameError: Lengths that do not add up, text that is not UTF-8, or too many fields.
    """
    if len(header) < HEADER.size_bytes + 2 * I32.size:
        raise FrameError(f"a binary header has {len(header)} bytes, at least {HEADER.size_bytes + 8} are due")
    code, language, version, opaque, flag = HEADER.struct.unpack_from(header)
    remark_at = HEADER.size_bytes + I32.size
    ext_at = remark_at + _length(header, HEADER.size_bytes, I32.size) + I32.size
    if ext_at > len(header):
        raise FrameError(f"a binary header of {len(header)} bytes ends within its remark")
    ext_bytes = I32.unpack_from(header, ext_at - I32.size)[0]
    if ext_at + ext_bytes != len(header):
        raise FrameError(
            f"a binary header of {len(header)} bytes has {ext_bytes} bytes of fields at {ext_at}"
        )
    return Frame(
        code if flag & RESPONSE_FLAG else _CUT_CODES.get(code, code),
        LANGUAGES[language] if language < len(LANGUAGES) else OTHER,
        version,
        opaque,
        flag,
        _text(header, remark_at, ext_at - I32.size) or None,
        _decode_ext(header, ext_at, limits) if ext_bytes else None,
        body,
        Serialization.ROCKETMQ,
    )


def encode_binary_header(frame: Frame) -> bytes:
    """Returns the header of a frame.

    Raises:
        FrameError: A name is longer than 32767 bytes.
    """
    remark = _bytes(frame.remark or "")
    ext = _encode_ext(frame.ext or {})
    code = (frame.code + (1 << 15)) % (1 << 16) - (1 << 15)
    language = LANGUAGE_NUMBERS.get(frame.language, LANGUAGE_NUMBERS[OTHER])
    return b"".join(
        (
            HEADER.struct.pack(code, language, frame.version, frame.opaque, frame.flag),
            I32.pack(len(remark)),
            remark,
            I32.pack(len(ext)),
            ext,
        )
    )


def _decode_ext(header: bytes, at: int, limits: Limits) -> Mapping[str, str]:
    ext: dict[str, str] = {}
    end = len(header)
    while at < end:
        name_end = at + I16.size + _length(header, at, I16.size)
        name = _text(header, at + I16.size, name_end)
        at = name_end + I32.size + _length(header, name_end, I32.size)
        if name in ext:
            raise FrameError(f"the field {name[:40]!r} stands twice in a header")
        ext[name] = _text(header, name_end + I32.size, at)
        if len(ext) > limits.ext_fields:
            raise FrameError(f"a header has more than {limits.ext_fields} fields")
    return ext


def _encode_ext(ext: Mapping[str, str]) -> bytes:
    pieces: list[bytes] = []
    for name, value in ext.items():
        encoded, text = _bytes(name), _bytes(value)
        if len(encoded) >= 1 << 15:
            raise FrameError(f"the name {name[:40]!r} of a field takes {len(encoded)} bytes, at most 32767")
        pieces += I16.pack(len(encoded)), encoded, I32.pack(len(text)), text
    return b"".join(pieces)


def _length(header: bytes, at: int, size: int) -> int:
    """Returns a length of 2 or 4 bytes, which what it counts follows; both lie within the header."""
    if at + size > len(header):
        raise FrameError(f"a binary header of {len(header)} bytes ends within a length at {at}")
    found: int = (I16 if size == I16.size else I32).unpack_from(header, at)[0]
    if not 0 <= found <= len(header) - at - size:
        raise FrameError(f"a binary header of {len(header)} bytes has a length of {found} at {at}")
    return found


def _text(header: bytes, start: int, end: int) -> str:
    try:
        return header[start:end].decode()
    except UnicodeDecodeError as error:
        raise FrameError(f"text at {start} of a binary header is not UTF-8: {error.reason}") from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")

"""Requests and answers as frames, and back, by the table of exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from seglog.errors import ProtocolError
from seglog.remoting.bodies import RecordsBody
from seglog.remoting.body_json.body_codec import BodyCodec
from seglog.remoting.body_json.dialects import Dialect
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import (
    NO_HEADER,
    Body,
    Header,
    Request,
    Response,
    Sender,
    TypedBody,
    WireNames,
)
from seglog.remoting.exchanges import EXCHANGES, UNKNOWN
from seglog.remoting.frames.frame import ONEWAY_FLAG, RESPONSE_FLAG, Frame, Serialization
from seglog.remoting.frames.limits import Limits
from seglog.remoting.frames.writer import encode_frame
from seglog.remoting.headers import GetRouteInfoHeader, decode_header, encode_header, has_required

_STANDARD_JSON_VERSION: Final = 401
"""``MQVersion`` V4_9_4: from there on clients read routes that are standard JSON."""
MOST_REMARK: Final = 4_096
"""Characters of the remark of an answer; clients put it into messages of exceptions and lines of logs."""
_Pieces = list[bytes | memoryview]


def decode_request(frame: Frame, limits: Limits) -> tuple[Request, ProtocolError | None]:
    """Returns what a frame asks; with an error, a request without header and with the body as it came."""
    exchange = EXCHANGES.get(frame.code, UNKNOWN)
    header: Header = NO_HEADER
    body: Body = frame.body if len(frame.body) else None
    found: ProtocolError | None = None
    try:
        header = decode_header(exchange.request, frame.ext or {}, exchange.request_names)
        body = _decode_body(frame.body, exchange.request_body, limits)
    except ProtocolError as error:
        header, found = NO_HEADER, error
    sender = Sender(frame.language, frame.version)
    return Request(frame.code, header, body, frame.ext, frame.is_oneway, sender), found


def has_json(frame: Frame, code: int) -> bool:
    """Returns whether a body is read as JSON.

    Args:
        frame: A request, or the answer to one.
        code: Of the request.
    """
    exchange = EXCHANGES.get(code, UNKNOWN)
    codec = exchange.response_body if frame.is_response else exchange.request_body
    return codec is not None and codec.is_json


def decode_response(frame: Frame, code: int, limits: Limits) -> Response:
    """Returns the answer to a request of ``code``.

    Raises:
        ProtocolError: Its header or body is not that of the code.
    """
    exchange = EXCHANGES.get(code, UNKNOWN)
    answer = ResponseCode(frame.code)
    ext = frame.ext or {}
    is_success = answer is ResponseCode.SUCCESS
    header: Header = NO_HEADER
    if is_success or has_required(exchange.response, ext):
        header = decode_header(exchange.response, ext)
    body: Body = frame.body if len(frame.body) else None
    if is_success:
        body = _decode_body(frame.body, exchange.response_body, limits)
    return Response(answer, header, body, frame.remark, frame.ext)


def request_pieces(
    request: Request, opaque: int, sender: Sender, serialization: Serialization, limits: Limits
) -> _Pieces:
    """Returns the bytes of a request.

    Raises:
        ProtocolError: Its header or body is not that of its code, or it is too large.
    """
    exchange = EXCHANGES.get(request.code, UNKNOWN)
    _expect(exchange.request, request.header, f"a request of code {int(request.code)}")
    pieces = _encode_body(request.body, exchange.request_body, Dialect.FASTJSON, int(request.code))
    frame = Frame(
        int(request.code),
        sender.language,
        sender.version,
        opaque,
        ONEWAY_FLAG if request.is_oneway else 0,
        ext=_request_fields(request, exchange.request_names),
        serialization=serialization,
    )
    return _with_body(frame, pieces, limits)


def response_pieces(
    response: Response,
    request: Request,
    opaque: int,
    sender: Sender,
    serialization: Serialization,
    limits: Limits,
) -> _Pieces:
    """Returns the bytes of the answer to ``request``.

    Raises:
        ProtocolError: Its header or body is not that of the request's code, or it is too large.
    """
    exchange = EXCHANGES.get(request.code, UNKNOWN)
    pieces = _encode_body(response.body, exchange.response_body, _dialect(request), int(request.code))
    frame = Frame(
        int(response.code),
        sender.language,
        sender.version,
        opaque,
        RESPONSE_FLAG,
        _shortened(response.remark),
        _fields(response.header, None, response.ext),
        serialization=serialization,
    )
    return _with_body(frame, pieces, limits)


def _with_body(frame: Frame, pieces: _Pieces, limits: Limits) -> _Pieces:
    return [encode_frame(frame, limits, sum(map(len, pieces))), *pieces]


def _shortened(remark: str | None) -> str | None:
    """Returns a remark, cut where it is too long: it may repeat what a client has sent."""
    if remark is None or len(remark) <= MOST_REMARK:
        return remark
    return f"{remark[:MOST_REMARK]}... ({len(remark)} characters)"


def _dialect(request: Request) -> Dialect:
    """Returns how the answer's JSON is written: only routes are standard JSON, for those who read that."""
    if request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC or not isinstance(
        request.header, GetRouteInfoHeader
    ):
        return Dialect.FASTJSON
    is_new = request.sender is not None and request.sender.version >= _STANDARD_JSON_VERSION
    return Dialect.STANDARD if is_new or request.header.accepts_standard_json_only else Dialect.FASTJSON


def _request_fields(request: Request, names: WireNames | None) -> Mapping[str, str] | None:
    """Returns the fields of a request; one that came over a connection goes on as it came."""
    if request.sender is not None and request.ext is not None:
        with suppress(ProtocolError):
            if decode_header(type(request.header), request.ext, names) == request.header:
                return request.ext
    return _fields(request.header, names, request.ext)


def _fields(
    header: Header, names: WireNames | None, ext: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    """Returns the fields of a header with those beyond it; where these hold all of them, in their order."""
    fields = encode_header(header, names)
    if ext is None:
        return fields or None
    return ext if fields.items() <= ext.items() else {**fields, **ext}


def _decode_body(data: bytes | memoryview, codec: BodyCodec[Any] | None, limits: Limits) -> Body:
    if not len(data):
        return None
    if codec is None:
        return data
    body: TypedBody = codec.decode(data, limits)
    return body


def _encode_body(body: Body, codec: BodyCodec[Any] | None, dialect: Dialect, code: int) -> _Pieces:
    if body is None:
        return []
    if isinstance(body, bytes | memoryview):
        return [body] if len(body) else []
    if isinstance(body, RecordsBody):
        return list(body.runs)
    if codec is None or not isinstance(body, codec.kind):
        expected = "bytes" if codec is None else codec.kind.__name__
        raise ProtocolError(f"a body of code {code} is {type(body).__name__}, not {expected}")
    return [codec.encode(body, dialect)]


def _expect(kind: type[Header], header: Header, what: str) -> None:
    if type(header) is not kind and header is not NO_HEADER:
        raise ProtocolError(f"{what} came with {type(header).__name__}, not with {kind.__name__}")

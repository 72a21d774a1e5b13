"""One request or response of the protocol, as values.

In process these objects are handed over as they are, so nothing is encoded, copied or decoded. On the
wire the header becomes ext fields (``headers.py``) and a typed body becomes bytes.

Source: ``RemotingCommand.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, TypeAlias, TypeVar

from seglog.errors import ProtocolError, RemoteProtocolError
from seglog.remoting.codes import ResponseCode
from seglog.remoting.frames.languages import OUR_LANGUAGE
from seglog.storage.kernels.made import quickly_made

WireNames = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Header:
    """The base of typed headers; itself the header of requests and responses without fields.

    Attributes:
        WIRE: The names of its fields as ext fields.
    """

    WIRE: ClassVar[WireNames] = {}


class TypedBody:
    """Marks bodies that are values; see ``bodies.py``."""

    __slots__ = ()


Body: TypeAlias = bytes | memoryview | TypedBody | None
H = TypeVar("H", bound=Header)
B = TypeVar("B", bound=TypedBody)

NO_HEADER: Final = Header()


class Sender(NamedTuple):
    """The software that sent a request over a connection.

    Attributes:
        language: Name of RocketMQ's ``LanguageCode``.
        version: Ordinal of RocketMQ's ``MQVersion``.
    """

    language: str
    version: int


OUR_SENDER: Final = Sender(OUR_LANGUAGE, 493)
"""``MQVersion`` V5_4_0, what this client and broker are like; clients take brokers below 401 to be old."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        code: A ``RequestCode``, or any other number that a client sent.
        header: Typed; its class belongs to the code.
        body: Message, batch or typed body, as the code says.
        ext: Fields beyond the header's own; all of them in a request that came over a connection.
        is_oneway: The answer is not wanted and never sent.
        sender: What sent it over a connection; None in process.
    """

    code: int
    header: Header = NO_HEADER
    body: Body = None
    ext: Mapping[str, str] | None = None
    is_oneway: bool = False
    sender: Sender | None = None


@quickly_made
@dataclass(frozen=True, slots=True)
class Response:
    """An answer.

    Attributes:
        code: The result; only some codes besides ``SUCCESS`` have a header.
        header: Typed; its class belongs to the request's code.
        body: Records or typed body, as the request's code says.
        remark: Explanation of a refusal, or the store's status of a pull.
        ext: Fields beyond the header's own; all of them in an answer that came over a connection.
    """

    code: ResponseCode
    header: Header = NO_HEADER
    body: Body = None
    remark: str | None = None
    ext: Mapping[str, str] | None = None


def refuse(code: ResponseCode, remark: str) -> Response:
    """Returns the answer to a request that is not carried out."""
    return Response(code, remark=remark)


def expect_header(message: Request | Response, kind: type[H]) -> H:
    """Returns the header if it is of the class that the code requires.

    Raises:
        RemoteProtocolError: ``message`` is a refusal and so has no header.
        ProtocolError: It is of another class.
    """
    header = message.header
    if isinstance(header, kind):
        return header
    raise _unexpected(message, header, kind)


def expect_body(message: Request | Response, kind: type[B]) -> B:
    """Returns the body if it is of the class that the code requires.

    Raises:
        RemoteProtocolError: ``message`` is a refusal and so has no body.
        ProtocolError: It is of another class.
    """
    body = message.body
    if isinstance(body, kind):
        return body
    raise _unexpected(message, body, kind)


def _unexpected(message: Request | Response, part: object, expected: type) -> ProtocolError:
    if isinstance(message, Response) and message.code is not ResponseCode.SUCCESS:
        return RemoteProtocolError(message.code, message.remark or message.code.name)
    kind = type(message).__name__.lower()
    return ProtocolError(
        f"a {kind} of code {int(message.code)} came with {type(part).__name__}, not with {expected.__name__}"
    )

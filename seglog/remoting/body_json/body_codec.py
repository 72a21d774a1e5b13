"""One kind of body: how it is written and read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from seglog.remoting.body_json.dialects import Dialect, read_json, write_json
from seglog.remoting.body_json.fields import Form
from seglog.remoting.command import TypedBody
from seglog.remoting.frames.limits import Limits

B = TypeVar("B", bound=TypedBody)


class BodyCodec(NamedTuple, Generic[B]):
    """Writes and reads bodies of one class.

    Attributes:
        kind: The class.
        encode: Body to bytes.
        decode: Bytes to body, within limits; ProtocolError if they are none.
    """

    kind: type[B]
    encode: Callable[[B, Dialect], bytes]
    decode: Callable[[bytes | memoryview, Limits], B]


def json_body(kind: type[B], form: Form[B]) -> BodyCodec[B]:
    """Returns the codec of a body that is JSON of a form."""

    def encode(body: B, dialect: Dialect) -> bytes:
        return write_json(form.encode(body), dialect).encode("utf-8", "replace")

    def decode(data: bytes | memoryview, limits: Limits) -> B:
        return form.decode(read_json(data, limits), kind.__name__)

    return BodyCodec(kind, encode, decode)

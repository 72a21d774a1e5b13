"""One kind of body: how it is written and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from seglog.remoting.body_json.dialects import Dialect, read_json, write_json
from seglog.remoting.body_json.fields import Form, JsonField, object_of
from seglog.remoting.command import TypedBody
from seglog.remoting.frames.limits import Limits
from seglog.storage.format.config import ConfigValue

B = TypeVar("B", bound=TypedBody)


class BodyCodec(NamedTuple, Generic[B]):
    """Writes and reads bodies of one class.

    Attributes:
        kind: The class.
        encode: Body to bytes.
        decode: Bytes to body, within limits; ProtocolError if they are none.
        is_json: Whether they are JSON, of which each value is an object: to read many takes long.
    """

    kind: type[B]
    encode: Callable[[B, Dialect], bytes]
    decode: Callable[[bytes | memoryview, Limits], B]
    is_json: bool = False


def json_body(kind: type[B], form: Form[B]) -> BodyCodec[B]:
    """Returns the codec of a body that is JSON of a form."""

    def encode(body: B, dialect: Dialect) -> bytes:
        return write_json(form.encode(body), dialect).encode("utf-8", "replace")

    def decode(data: bytes | memoryview, limits: Limits) -> B:
        return form.decode(read_json(data, limits), kind.__name__)

    return BodyCodec(kind, encode, decode, is_json=True)


def object_body(
    kind: type[B], derived: Callable[[B], Mapping[str, ConfigValue]] | None = None, **fields: JsonField
) -> BodyCodec[B]:
    """Returns the codec of a body that is an object; arguments as for :func:`object_of`."""
    return json_body(kind, object_of(kind, derived, **fields))

"""Headers of frames: usual ones are read and written natively.

There is no Python twin here: the codecs of :mod:`seglog.remoting` are complete, and define the right result.
They call these functions first, and do the work themselves if the result is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias, TypeVar

from seglog.storage.kernels import KERNELS, NATIVE

ReadHeader: TypeAlias = Callable[
    [bytes, int], tuple[int, str | None, int, int, int, str | None, dict[str, str] | None] | None
]
WriteHeader: TypeAlias = Callable[
    [int, Mapping[str, str] | None, int, str, int, str | None, str, int], bytes | None
]
FieldPlan: TypeAlias = tuple[tuple[str, str, int, object], ...]
"""For each field its attribute, its name on the wire, its kind, and its value if it is missing."""
H = TypeVar("H")


class ReadFields(Protocol):
    """Creates a header from fields."""

    def __call__(self, kind: type[H], fields: Mapping[str, str], plan: FieldPlan, /) -> H | None:
        """Returns the header; None if a field is missing, wrong or unusual."""


WriteFields: TypeAlias = Callable[[object, FieldPlan], dict[str, str] | None]

TEXT: Final = 0
I32: Final = 1
I64: Final = 2
BOOL: Final = 3
BYTES: Final = 4
"""Kinds of fields."""
REQUIRED: Final = 8
"""Added to the kind of a field that must not be missing."""

native_read: ReadHeader | None = None
native_write: WriteHeader | None = None
native_read_fields: ReadFields | None = None
native_write_fields: WriteFields | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_read, native_write = _native.read_header, _native.write_header
    native_read_fields, native_write_fields = _native.read_fields, _native.write_fields

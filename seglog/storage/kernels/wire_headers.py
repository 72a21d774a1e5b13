"""Headers of frames, read and written natively where they are usual.

There is no Python twin here: the codecs of :mod:`seglog.remoting` are complete, and say what is right. They
try these first, and do themselves what None comes back for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from seglog.storage.kernels import KERNELS, NATIVE

ReadHeader: TypeAlias = Callable[
    [bytes, int], tuple[int, str | None, int, int, int, str | None, dict[str, str] | None] | None
]
WriteHeader: TypeAlias = Callable[
    [int, Mapping[str, str] | None, int, str, int, str | None, str, int], bytes | None
]
FieldPlan: TypeAlias = tuple[tuple[str, int, object], ...]
"""Of each field its name, its kind, and the value where it is missing."""
ReadFields: TypeAlias = Callable[[Mapping[str, str], FieldPlan], tuple[Any, ...] | None]

TEXT: Final = 0
I32: Final = 1
I64: Final = 2
BOOL: Final = 3
BYTES: Final = 4
"""Kinds of fields."""
REQUIRED: Final = 8
"""Added to the kind of one that may not be missing."""

native_read: ReadHeader | None = None
native_write: WriteHeader | None = None
native_fields: ReadFields | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_read, native_write = _native.read_header, _native.write_header
    native_fields = _native.read_fields

"""Frozen dataclasses with a native ``__init__``: it creates an object in a fifth of the time.

``__init__`` of a frozen dataclass calls ``object.__setattr__`` for each field, 0.1 µs a time. With native
kernels the classes that are created for every request get a native ``__init__``, which takes the same
arguments and calls the old one for unusual arguments; with Python kernels they stay as they are.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Final, TypeVar

from seglog.storage.kernels import KERNELS, NATIVE

T = TypeVar("T")

_INIT: Final = "__init__"
_SIGNATURE: Final = "__signature__"


def quickly_made(kind: type[T]) -> type[T]:
    """Returns the class, with a native ``__init__`` if there are native kernels.

    Args:
        kind: A frozen dataclass with slots; its fields may have default values, but no default factories.
            No subclass of it may define ``__init__``.
    """
    if KERNELS == NATIVE:
        from seglog.storage.kernels import _native

        fields = tuple(
            (field.name,) if field.default is dataclasses.MISSING else (field.name, field.default)
            for field in dataclasses.fields(kind)  # type: ignore[arg-type]  # it is a dataclass
        )
        setattr(kind, _SIGNATURE, inspect.signature(kind))
        setattr(kind, _INIT, _native.quick_init(kind, fields, getattr(kind, _INIT)))
    return kind

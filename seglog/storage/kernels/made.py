"""Frozen dataclasses whose objects are made natively: an object of many fields in a fifth of the time.

``__init__`` of a frozen dataclass calls ``object.__setattr__`` for each field, 0.1 µs a time. Over native
kernels the classes that every request is made of have another one, which takes the same arguments and leaves
to theirs what is not usual; over Python kernels they stay as they are.
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
    """Returns the class, whose objects are made natively where that can be.

    Args:
        kind: A frozen dataclass with slots, whose fields have values of their own, if any, and no factories.
            No class that inherits from it may state ``__init__``.
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

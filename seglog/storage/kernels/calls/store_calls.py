"""Native calls of a store, with the signatures and docstrings of the Python class that declares them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar

from seglog.storage.kernels import KERNELS, NATIVE

T = TypeVar("T")

CALLS: Final = ("put", "append", "put_batch", "append_batch", "get")
"""The calls that have a native implementation."""


def with_native_calls(python: type[T]) -> type[T]:
    """Returns a subclass whose calls enter the kernel at once; with Python kernels the class itself.

    Args:
        python: Declares the calls, and does those that the kernel leaves to it; has no instance fields.
    """
    if KERNELS != NATIVE:
        return python
    from seglog.storage.kernels import _native

    return _native.store_calls(python, {name: _document(getattr(python, name)) for name in CALLS})


def _document(call: Callable[..., Any]) -> str:
    """Returns the text from which ``inspect`` and ``help`` read the signature and the docstring."""
    signature = inspect.signature(call)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    told = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    return f"{call.__name__}(${str(told)[1:]}\n--\n\n{call.__doc__ or ''}"

"""The hot loops over records; they take buffers, never files.

Each has a Python kernel, which is complete and says what is right. Where the C extension ``_native`` was
built, it takes the same loops over; the environment variable ``SEGLOG_KERNEL`` (``python`` or ``native``)
forces one.
"""

from __future__ import annotations

import importlib
import os
from typing import Final

from seglog.errors import InvalidArgumentError, MissingDependencyError

VARIABLE: Final = "SEGLOG_KERNEL"
NATIVE: Final = "native"
PYTHON: Final = "python"


def choose_kernels(wanted: str) -> str:
    """Returns which kernels run.

    Args:
        wanted: Value of the variable; empty to take the native ones where there are any.

    Raises:
        InvalidArgumentError: There are no such kernels.
        MissingDependencyError: The native ones are wanted and cannot be loaded.
    """
    if wanted not in ("", NATIVE, PYTHON):
        raise InvalidArgumentError(
            f"{VARIABLE} is {wanted!r}; there are {NATIVE} and {PYTHON} kernels", help=f"unset {VARIABLE}"
        )
    if wanted == PYTHON:
        return PYTHON
    try:
        importlib.import_module("seglog.storage.kernels._native")
    except ImportError as error:
        if wanted == NATIVE:
            raise MissingDependencyError(
                f"{VARIABLE} is {NATIVE}, but the native kernels cannot be loaded: {error}",
                help=f"install seglog again where a C compiler is, or unset {VARIABLE}",
            ) from error
        return PYTHON
    return NATIVE


KERNELS: Final = choose_kernels(os.environ.get(VARIABLE, ""))
"""Which implementation runs, ``native`` or ``python``; ``seglog version`` shows it."""

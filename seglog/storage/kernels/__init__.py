"""The hot loops over records; they take buffers, never files.

Each has a Python kernel, which is complete and says what is right. Where the C extension ``_native`` was
built, it takes the same loops over; the environment variable ``SEGLOG_KERNEL`` (``python`` or ``native``)
forces one.
"""

from __future__ import annotations

import importlib
import os
from typing import Final, NoReturn

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
        native = importlib.import_module("seglog.storage.kernels._native")
    except ImportError as error:
        if wanted == NATIVE:
            raise MissingDependencyError(
                f"{VARIABLE} is {NATIVE}, but the native kernels cannot be loaded: {error}",
                help=f"install seglog again where a C compiler is, or unset {VARIABLE}",
            ) from error
        return PYTHON
    vars(native)["__getattr__"] = _refuse_older
    return NATIVE


def _refuse_older(name: str) -> NoReturn:
    """Serves as ``__getattr__`` of the extension: for names that it was compiled without."""
    # An AttributeError too, for hasattr, and for pickle, which looks for names in every module.
    error = type(MissingDependencyError.__name__, (MissingDependencyError, AttributeError), {})
    raise error(
        f"the native kernels lack {name!r}: they were compiled from older sources than these",
        help="compile them again: `pip install -e .` in the sources, or install seglog again",
    )


KERNELS: Final = choose_kernels(os.environ.get(VARIABLE, ""))
"""Which implementation runs, ``native`` or ``python``; ``seglog version`` shows it."""

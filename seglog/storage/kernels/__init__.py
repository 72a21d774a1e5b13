"""The hot loops over records; they take buffers, or descriptors that their caller opened.

What defines the right result is Python, and complete: the kernel in the same module, or the code that does
the work where a module says that it has no Python kernel. If the C extension ``_native`` was built, it
replaces the Python kernels; the environment variable ``SEGLOG_KERNEL`` (``python`` or ``native``) forces one
of them. An extension that was compiled for another version of these modules is not used.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Final

from seglog.errors import InvalidArgumentError, MissingDependencyError

VARIABLE: Final = "SEGLOG_KERNEL"
NATIVE: Final = "native"
PYTHON: Final = "python"

INTERFACE: Final = "1d502cbb"
"""The interface for which the extension must have been compiled: the CRC-32 of ``_native.pyi`` and
``layout.h``, the contract between modules and extension. Written by `make docs`."""
_COMPILE: Final = (
    "compile them again: `make kernels` or `pip install -e .` in the sources, or install seglog again"
)


def choose_kernels(wanted: str) -> str:
    """Returns the kernels to use.

    Args:
        wanted: Value of the variable; empty for the native kernels if they exist.

    Raises:
        InvalidArgumentError: There are no such kernels.
        MissingDependencyError: The native kernels are wanted, but cannot be loaded or have another interface.

    Warns:
        RuntimeWarning: The native kernels have another interface: the Python kernels are used.
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
    found: str = getattr(native, "INTERFACE", "none, as of sources older than it")
    if found == INTERFACE:
        return NATIVE
    problem = (
        "the native kernels were compiled from other sources than these modules: their interface is"
        f" {found}, expected {INTERFACE}"
    )
    if wanted == NATIVE:
        raise MissingDependencyError(f"{VARIABLE} is {NATIVE}, but {problem}", help=_COMPILE)
    warnings.warn(
        f"{problem}; the Python kernels serve, which are slower; {_COMPILE}", RuntimeWarning, stacklevel=2
    )
    return PYTHON


KERNELS: Final = choose_kernels(os.environ.get(VARIABLE, ""))
"""The kernels in use, ``native`` or ``python``; ``seglog version`` shows it."""

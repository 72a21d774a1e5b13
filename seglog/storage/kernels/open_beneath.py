"""Linux's ``openat2``, for which Python has no call: opens a path below a folder without following links.

Each function is None without the C kernel; :mod:`seglog.storage.files.beneath` then does the same in Python.
"""

from __future__ import annotations

from collections.abc import Callable

from seglog.storage.kernels import KERNELS, NATIVE

native_open_beneath: Callable[[int, bytes, int], int] | None = None
native_open_plain: Callable[[int, bytes, int], int] | None = None
native_mode_beneath: Callable[[int, bytes], int] | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_open_beneath = _native.open_beneath
    native_open_plain = _native.open_plain
    native_mode_beneath = _native.mode_beneath

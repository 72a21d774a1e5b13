"""How many descriptors the process may have, and whether one that it was handed can be written."""

from __future__ import annotations

import fcntl
import os
import resource
from contextlib import suppress
from typing import Final

import click

_MOST_DESCRIPTORS: Final = 1 << 20


def raise_descriptor_limit() -> None:
    """Lets the process have as many descriptors as it may: each client and each file takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def check_descriptor(option: str, number: int) -> None:
    """Checks that a descriptor is open for writing.

    Raises:
        UsageError: It is not; the option is named.
    """
    try:
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError as error:
        raise click.UsageError(f"{option} {number} is no open descriptor") from error
    if mode == os.O_RDONLY:
        raise click.UsageError(f"{option} {number} is open for reading only")

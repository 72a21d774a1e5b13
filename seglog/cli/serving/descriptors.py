"""The limit of open descriptors, and a check that a descriptor from the command line can be written."""

from __future__ import annotations

import fcntl
import os
import resource
from contextlib import suppress
from typing import Final

import click

_MOST_DESCRIPTORS: Final = 1 << 20


def raise_descriptor_limit() -> int:
    """Raises the limit of descriptors, for clients and files, as far as allowed; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # some systems allow less than they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else soft


def connections_of(descriptors: int, usual: int) -> int:
    """Returns the limit of connections: half of the descriptors are reserved for the store's files.

    Args:
        descriptors: Number of descriptors that the process may have.
        usual: The limit if there are enough descriptors.
    """
    return max(1, min(usual, descriptors // 2))


def check_descriptor(option: str, number: int) -> None:
    """Checks that a descriptor is open for writing.

    Raises:
        UsageError: It is not; the error names the option.
    """
    try:
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError as error:
        raise click.UsageError(f"{option} {number} is no open descriptor") from error
    if mode == os.O_RDONLY:
        raise click.UsageError(f"{option} {number} is open for reading only")

"""How many descriptors the process may have, and whether one that it was handed can be written."""

from __future__ import annotations

import fcntl
import os
import resource
from contextlib import suppress
from typing import Final

import click

_MOST_DESCRIPTORS: Final = 1 << 20


def raise_descriptor_limit() -> int:
    """Lets the process have as many descriptors as it may, for clients and files; returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else soft


def connections_of(descriptors: int, usual: int) -> int:
    """Returns how many connections there may be: clients leave half of the descriptors to the store's files.

    Args:
        descriptors: How many the process may have.
        usual: How many there may be where descriptors abound.
    """
    return max(1, min(usual, descriptors // 2))


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

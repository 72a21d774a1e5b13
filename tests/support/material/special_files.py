"""What may be in a store in place of a regular file."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Final

import pytest


def a_link(path: Path, outside: Path) -> None:
    """Makes a link to a file outside."""
    path.symlink_to(outside / "keys")


def a_dangling_link(path: Path, outside: Path) -> None:
    """Makes a link to a file that does not exist."""
    path.symlink_to(outside / "new")


def a_link_within(path: Path, outside: Path) -> None:
    """Makes a link to a file beside it."""
    path.symlink_to("topics.json")


def a_pipe(path: Path, outside: Path) -> None:
    """Makes a pipe."""
    os.mkfifo(path)


def a_socket(path: Path, outside: Path) -> None:
    """Makes a socket."""
    here = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)  # the path itself may be too long for one
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def a_device(path: Path, outside: Path) -> None:
    """Makes a device that never ends."""
    if os.geteuid():
        pytest.skip("only root makes devices")
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("this system lets nobody make devices")


def a_folder(path: Path, outside: Path) -> None:
    """Makes a folder."""
    path.mkdir()


SPECIAL_KINDS: Final = [a_link, a_dangling_link, a_link_within, a_pipe, a_socket, a_device, a_folder]

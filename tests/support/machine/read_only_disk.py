"""A store on a file system that is mounted for reading, in a mount namespace of the command's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

_COPY = """
mount -t tmpfs -o size=64M none "$1" && cp -a "$2" "$1/store" && mount -o remount,ro "$1" || exit 99
"""
_SAME = """
mkdir -p "$1/store" && mount --bind "$2" "$1/store" && mount -o remount,bind,ro "$1/store" || exit 99
"""
_RUN = """
shift 2
exec "$@"
"""


def on_read_only_disk(
    folder: Path, *command: object, is_same: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Runs a command where ``folder/s`` is seen as ``folder/disk/store``, on a disk mounted for reading.

    Args:
        folder: Of the test.
        command: What runs; the test is skipped where nothing can be mounted.
        is_same: Whether it is the store itself, which others may write to; else a copy of it.
    """
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    script = (_SAME if is_same else _COPY) + _RUN
    words = ["unshare", "-rm", "sh", "-c", script, "sh", disk, folder / "s", *command]
    try:
        done = subprocess.run(list(map(str, words)), capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare here to mount a disk with")
    if done.returncode in (1, 99) and b"error:" not in done.stderr:
        pytest.skip(f"no disk can be mounted here: {done.stderr.decode().strip()}")
    return done

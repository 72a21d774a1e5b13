"""Real file systems for tests: small ones that fill up, lose power, or sit on a disk that loses writes.

Only root may mount, and only where loop devices work; :func:`why_not` says why a machine cannot. What a
context manager mounts is unmounted and its loop device given back however the block ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SHUTDOWN: Final = 0x8004587D  # EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN: _IOR('X', 125, __u32)
_NO_LOG_FLUSH: Final = 2
_MAKE: Final = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
}
_MIB: Final = 1 << 20


def why_not(kind: str) -> str | None:
    """Returns why this machine cannot mount a file system of a kind, None if it can."""
    if os.geteuid() != 0:
        return "only root may mount"
    if kind == "tmpfs":
        return None
    for command in (_MAKE[kind][0], "losetup"):
        if shutil.which(command, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            return f"there is no {command}"
    found = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=False)
    return None if found.returncode == 0 else f"no loop device: {found.stderr.strip()}"


@dataclass
class Disk:
    """A file system in a file, mounted.

    Attributes:
        path: Where it is mounted.
    """

    kind: str
    image: Path
    path: Path
    is_direct: bool = False
    _device: str = ""

    def mount(self) -> None:
        """Mounts the image, through a loop device of its own."""
        direct = ["--direct-io=on"] if self.is_direct else []
        self._device = _run("losetup", *direct, "--find", "--show", str(self.image)).strip()
        _run("mount", self._device, str(self.path))

    def unmount(self) -> None:
        """Unmounts it; no process may have a file of it open."""
        _run("umount", str(self.path))
        _run("losetup", "--detach", self._device)
        self._device = ""

    def lose_power(self) -> None:
        """Shuts the file system down: what it had not written is lost, and everything fails from now on."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(descriptor)

    def give_back(self) -> None:
        """Takes away what is left of it, in any state."""
        if self._device:
            subprocess.run(["umount", "--lazy", self.path], check=False, capture_output=True)
            subprocess.run(["losetup", "--detach", self._device], check=False, capture_output=True)


@contextmanager
def disk(folder: Path, kind: str, size_mib: int, *, is_direct: bool = False) -> Iterator[Disk]:
    """Makes and mounts a file system below ``folder``; its image takes space as it is written to."""
    made = Disk(kind, folder / f"{kind}.img", folder / kind, is_direct)
    made.path.mkdir()
    with made.image.open("wb") as image:
        image.truncate(size_mib * _MIB)
    _run(*_MAKE[kind], str(made.image))
    try:
        made.mount()
        yield made
    finally:
        made.give_back()


@contextmanager
def memory_disk(folder: Path, size_mib: int) -> Iterator[Path]:
    """Mounts a file system in memory, below ``folder``."""
    path = folder / "tmpfs"
    path.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "none", str(path))
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=False, capture_output=True)


@contextmanager
def thin_disk(folder: Path) -> Iterator[tuple[Disk, Path]]:
    """Mounts an ext4 that has more room than the memory below it; yields it, and a ballast file's path.

    While :func:`fill` has taken the rest of that memory, writes to blocks that were never written are lost:
    the next sync of the file fails, once, and later ones succeed although the disk has not got the data.
    Its journal has its memory already and continues.
    """
    with ExitStack() as stack:
        below = stack.enter_context(memory_disk(folder, 64))
        made = stack.enter_context(disk(below, "ext4", 256, is_direct=True))
        yield made, below / "ballast"


def fill(ballast: Path) -> None:
    """Takes what space there is; removing the file gives it back."""
    with ballast.open("wb", buffering=0) as file:
        for size_bytes in (_MIB, 4096, 512):
            with suppress(OSError):
                while file.write(bytes(size_bytes)) == size_bytes:
                    pass


def drop_caches() -> None:
    """Has the next reads come from the disk, where no process maps the pages."""
    Path("/proc/sys/vm/drop_caches").write_text("1")


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

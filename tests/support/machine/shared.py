"""Work that the tests of a run do once: the first process that needs it does it, the others wait for it.

What was made is in a folder that all processes of the run share. Readers use it as it is; a test that
writes takes a copy (:func:`copy_tree`; never hard links, which maps write through). At the end of the run a
digest proves that nothing in it has changed.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import pickle
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from tests.support.machine.memory_folder import room_in_memory

T = TypeVar("T")

_VARIABLE: Final = "SEGLOG_TEST_SHARED"
_DONE: Final = ".done"
_PREFIX: Final = "seglog-tests-"
_HELD: Final = "held"
"""A file that the process of the folder keeps locked until it ends."""
_YOUNG_S: Final = 60
_BLOCK_BYTES: Final = 1 << 13
_ZEROS: Final = memoryview(bytes(_BLOCK_BYTES))


def open_shared() -> Path | None:
    """Makes the folder for this process and its children; None where a parent has made it."""
    if os.environ.get(_VARIABLE):
        return None
    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=room_in_memory()))
    fcntl.flock(os.open(made / _HELD, os.O_CREAT | os.O_WRONLY, 0o600), fcntl.LOCK_EX)
    atexit.register(_remove, made, os.getpid())  # where no session of pytest ends, as with --help
    _remove_left(made.parent)
    os.environ[_VARIABLE] = str(made)
    return made


def close_shared(folder: Path) -> list[str]:
    """Removes the folder; returns the keys of what is not as it was made."""
    changed = [
        done.name.removesuffix(_DONE) for done in sorted(folder.glob(f"*{_DONE}")) if _has_changed(done)
    ]
    shutil.rmtree(folder, ignore_errors=True)
    os.environ.pop(_VARIABLE, None)
    return changed


def once(key: str, make: Callable[[Path], object]) -> Path:
    """Returns the folder that ``make`` has filled, for reading only.

    Args:
        key: Names what is made: the same text in each process.
        make: Fills the empty folder that it is given.
    """
    folder = _folder()
    # A key may be any text; the start of it is for people who look at the folder.
    start = "".join(c if c.isalnum() else "-" for c in key)[:60]
    name = f"{start}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    place, done = folder / name, folder / f"{name}{_DONE}"
    if done.exists():
        return place
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if not done.exists():
                shutil.rmtree(place, ignore_errors=True)  # of a process that ended within
                place.mkdir()
                make(place)
                written = done.with_suffix(".part")
                written.write_text(json.dumps({"key": key, "digest": _digest(place)}))
                written.rename(done)
        finally:  # closing would leave it to a child that was forked meanwhile
            fcntl.flock(lock, fcntl.LOCK_UN)
    return place


def value_once(key: str, compute: Callable[[], T]) -> T:
    """Returns what ``compute`` has returned in the first process that asked: a value that pickle takes."""

    def make(place: Path) -> None:
        (place / "value").write_bytes(pickle.dumps(compute()))

    # Written by a process of this run.
    value: T = pickle.loads((once(key, make) / "value").read_bytes())  # noqa: S301
    return value


def copy_tree(source: Path, target: Path) -> Path:
    """Copies a folder with modes and times, zeros as holes, and returns the copy."""
    target.mkdir(parents=True)
    with os.scandir(source) as entries:
        for entry in entries:
            made = target / entry.name
            if entry.is_symlink():
                made.symlink_to(Path(entry.path).readlink())
            elif entry.is_dir():
                copy_tree(Path(entry.path), made)
            elif entry.is_file():
                _copy_file(Path(entry.path), made)
            else:
                os.mknod(made, entry.stat().st_mode)  # a pipe or a socket: no user needs a device
    shutil.copystat(source, target)
    return target


def _folder() -> Path:
    open_shared()  # outside of pytest, such as a tool
    return Path(os.environ[_VARIABLE])


def _remove(folder: Path, owner: int) -> None:
    """Removes the folder of a process at its end, not at that of a child that was forked."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left(folder: Path) -> None:
    """Removes what runs that were killed have left: their lock is free."""
    for left in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), (left / _HELD).open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if left.stat().st_mtime < time.time() - _YOUNG_S:  # else it may be about to take its lock
                shutil.rmtree(left, ignore_errors=True)


def _has_changed(done: Path) -> bool:
    place = done.with_name(done.name.removesuffix(_DONE))
    noted: object = json.loads(done.read_text())["digest"]
    return not place.is_dir() or _digest(place) != noted


def _digest(folder: Path) -> str:
    """Returns a digest of names, kinds, modes, lengths and content."""
    return hashlib.sha256(json.dumps(content_digest(folder), sort_keys=True).encode()).hexdigest()


def content_digest(folder: Path) -> dict[str, str]:
    """Returns by name what is below a folder: kind and mode, and of a file length and content.

    Nothing waits for a pipe, and zeros cost little, whether they are holes or not.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        told = f"{status.st_mode:o}"
        if stat.S_ISREG(status.st_mode):
            told += f" {status.st_size} {_content(path)}"
        elif stat.S_ISLNK(status.st_mode):
            told += f" {path.readlink()}"
        found[path.relative_to(folder).as_posix()] = told
    return found


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb", buffering=0) as read, target.open("xb", buffering=0) as written:
        size_bytes = os.fstat(read.fileno()).st_size
        for at, block in _blocks(read.fileno(), size_bytes):
            os.pwrite(written.fileno(), block, at)
        os.ftruncate(written.fileno(), size_bytes)
    shutil.copystat(source, target)


def _content(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        for at, block in _blocks(file.fileno(), os.fstat(file.fileno()).st_size):
            digest.update(at.to_bytes(8, "big"))
            digest.update(block)
    return digest.hexdigest()


def _blocks(fd: int, size_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yields the blocks of a file that are not all zeros, each with its place.

    Places are multiples of the length of a block, wherever the system has its holes: that may change without
    a change of the content.
    """
    at = 0
    while at < size_bytes:
        try:
            data_at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                return
            raise
        at = data_at - data_at % _BLOCK_BYTES
        block = os.pread(fd, _BLOCK_BYTES, at)
        if block != _ZEROS[: len(block)]:
            yield at, block
        at += _BLOCK_BYTES

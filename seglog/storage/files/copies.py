"""Puts files of one store into another: by a hard link if the file system allows it, otherwise by a copy.

The source is a regular file below the first store, and the target is below the second.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Final

from seglog.storage.files.files import OpenFile, RestoringFiles
from seglog.storage.files.hardlinks import can_link, copy_bytes
from seglog.storage.files.os_errors import is_full, translate
from seglog.storage.files.store_root import StoreRoot

_CHUNK_BYTES: Final = 8 << 20


def copy_file(files: StoreRoot, source: Path, other: StoreRoot, target: Path, end: int | None = None) -> None:
    """Copies a file durably: holes stay holes, and its time of change is kept.

    Args:
        files: Files of the first store.
        source: The file.
        other: Files of the second store.
        target: Path of the copy, which must not exist.
        end: End of the bytes to copy; behind it the copy is a hole, up to the same length. None for all
            bytes.

    Raises:
        FileKindError: The source is no regular file.
    """
    with closing(files.open(source, writable=False)) as read:
        write = other.create(target, 0)
        try:
            copy_bytes(read.descriptor, write.descriptor, end)
        except OSError as error:
            raise translate(error, target if is_full(error) else source) from error
        finally:
            write.close()


def link_or_copy(files: StoreRoot, source: Path, other: StoreRoot, target: Path) -> bool:
    """Creates a hard link to a file, or a copy if no link is possible; returns whether it is a link."""
    try:
        files.link(source, other, target)
    except OSError as error:
        if can_link(error):
            raise
        copy_file(files, source, other, target)
        return False
    with closing(other.open(target, writable=False)) as made:
        os.fsync(made.descriptor)  # the linked bytes may be in the page cache only
    return True


def copy_tree(files: RestoringFiles, source: Path, target: Path, *, is_dir: bool) -> None:
    """Copies a file, or a folder with all its contents, durably; holes stay holes.

    Args:
        files: The files of both.
        source: The file or folder.
        target: Path of the copy, which must not exist.
        is_dir: Whether the source is a folder.
    """
    if is_dir:
        files.make_dirs(target)
        for entry in files.list_dir(source):
            copy_tree(files, source / entry.name, target / entry.name, is_dir=entry.is_dir)
        files.sync_dir(target)
        return
    with (
        closing(files.open(source, writable=False)) as read,
        closing(files.create(target, read.size_bytes)) as write,
    ):
        _copy_data(read, write)
        write.sync()
    files.set_stamp(target, files.stamp(source))


def remove_tree(files: RestoringFiles, folder: Path) -> None:
    """Removes a folder with all its contents."""
    for entry in files.list_dir(folder):
        if entry.is_dir:
            remove_tree(files, folder / entry.name)
        else:
            files.remove(folder / entry.name)
    files.remove_dir(folder)


def _copy_data(read: OpenFile, write: OpenFile) -> None:
    buffer = memoryview(bytearray(min(_CHUNK_BYTES, max(1, read.size_bytes))))
    at = read.next_data(0)
    while at is not None:
        count = read.read_into(buffer, at)
        if not count:
            return
        write.write_at(buffer[:count], at)
        at = read.next_data(at + count)

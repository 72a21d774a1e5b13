"""What keeps a RocksDB of a store from being opened: files of it that are missing, or not whole.

``CURRENT`` names the manifest, and the manifest the table files with their lengths; RocksDB opens every one
of them when RocketMQ starts. The contents of tables and logs are not looked at.

Source: RocksDB's ``db/version_set.cc`` Recover and ``table/format.cc``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from seglog.errors import CorruptError, StoreError
from seglog.storage.files.files import Files, read_part
from seglog.storage.format.rocksdb_manifest import CURRENT_TEXT, live_tables

_CURRENT: Final = "CURRENT"
_TABLE_MAGICS: Final = (b"\xf7\xcf\xf4\x85\xb7\x41\xe2\x88", b"\x57\xfb\x80\x8b\x24\x75\x47\xdb")
"""The last bytes of a table of blocks; the second of its first version."""
_MOST_LOOKS: Final = 3
"""A broker that is at work may remove a file between two steps of a look."""


def rocksdb_fault(files: Files, root: Path, name: str) -> tuple[str, str]:
    """Returns a file with which a RocksDB cannot be opened, and what is wrong with it; empty without one.

    Args:
        files: Access to the store.
        root: The store directory.
        name: Folder of the RocksDB, relative to the store.
    """
    found = ("", "")
    for _look in range(_MOST_LOOKS):
        before, found = found, next(_faults(files, root / name), ("", ""))
        if found in (before, ("", "")):
            break
    return found


def _faults(files: Files, folder: Path) -> Iterator[tuple[str, str]]:
    current = _content(files, folder / _CURRENT)
    if current is None:
        yield _CURRENT, "none"
        return
    named = CURRENT_TEXT.fullmatch(current)
    if named is None:
        yield _CURRENT, "no name of a manifest"
        return
    name = named[1].decode()
    manifest = _content(files, folder / name)
    if manifest is None:
        yield name, "none"
        return
    try:
        tables = live_tables(manifest)
    except CorruptError as error:
        yield name, f"{error.kind} at {error.position_bytes}: {error.found}"
        return
    sizes = {entry.name: entry.size_bytes for entry in files.list_dir(folder) if not entry.is_dir}
    for number, size in sorted(tables.items()):
        table = f"{number:06}.sst"
        if sizes.get(table) != size:
            yield table, f"{sizes[table]} bytes, not {size}" if table in sizes else "none"
        elif _end(files, folder / table, size) not in _TABLE_MAGICS:
            yield table, "no end of a table"


def _content(files: Files, path: Path) -> bytes | None:
    """Returns the content of a file, None without one that can be read."""
    with suppress(OSError, StoreError):
        if files.exists(path):
            return files.read_file(path)
    return None


def _end(files: Files, path: Path, size_bytes: int) -> bytes:
    with suppress(OSError, StoreError):
        handle = files.open(path, writable=False)
        try:
            return bytes(read_part(handle, size_bytes - len(_TABLE_MAGICS[0]), len(_TABLE_MAGICS[0])))
        finally:
            handle.close()
    return b""

"""Puts a new store in the place of an old one, so that a reader finds either, never parts of both.

Beside the store, in ``STORE.compact/``, ``new/`` is made; ``manifest.json`` appears when it is whole and
verified. Then the folders are exchanged, in one system call where the system has it (Linux); elsewhere the
old one is renamed and then the new one, and for a moment there is no store. What was the store is
``STORE.compact/old/`` in the end, until it is discarded, or put back.

Interrupted anywhere: without a manifest what is there is rubbish. With one, the name of the first segment
says which of the folders is which; a new store whose old one was written to meanwhile is rubbish too.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.doctor.copies import branch_names
from seglog.errors import ConfigError, CorruptError, NotFoundError, UndoError, UnsupportedStoreError
from seglog.storage.files import StoreRoot, SwappingFiles, explained, remove_tree
from seglog.storage.format.config import decode_json_object
from seglog.storage.format.names import COMMIT_LOG, LOCK_FILE, parse_segment_file_name
from seglog.text import shell_text

_SUFFIX: Final = ".compact"
_MANIFEST: Final = "manifest.json"
_NEW: Final = "new"
_OLD: Final = "old"
_WRITTEN: Final = ".written"
NOTED: Final = ".noted"
"""A folder beside the new store until that was audited: its records, as they were written."""
_OURS: Final = frozenset({_NEW, _OLD, NOTED, _MANIFEST, _MANIFEST + _WRITTEN, f"{_NEW}.unfinished"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a new store is.

    Attributes:
        first_phy_offset: Where its log begins: after the old one's end.
        old_state: The old store's files, as :func:`state_of_store` has them.
        new_state: Its own.
        made_ms: When.
        segments: Name, used bytes, records and CRC-32 of each segment.
    """

    first_phy_offset: int
    old_state: str
    new_state: str
    made_ms: int
    segments: tuple[tuple[str, int, int, int], ...]


def work_folder(root: Path) -> Path:
    """Returns where a store is made that is to take another's place."""
    return root.with_name(root.name + _SUFFIX)


def new_store(root: Path) -> Path:
    """Returns where it is."""
    return work_folder(root) / _NEW


def old_store(root: Path) -> Path:
    """Returns where the old one is afterwards."""
    return work_folder(root) / _OLD


def files_around(root: Path) -> StoreRoot:
    """Returns the files of a store and of the folder beside it, in which a new one is made."""
    return StoreRoot(root.parent)


def state_of_store(files: SwappingFiles, root: Path) -> str:
    """Returns a digest of names, lengths and times of all files of a store; the lock does not count."""
    digest = hashlib.sha256()
    for name, size in sorted(_walk(files, root, root)):
        if name != LOCK_FILE:
            digest.update(f"{name}\0{size}\0{files.stamp(root / name).modified_ns}\n".encode())
    return digest.hexdigest()


def check_swappable(files: SwappingFiles, root: Path) -> None:
    """Does nothing if a store's folder can be exchanged for another.

    Raises:
        UnsupportedStoreError: It cannot, or something in it would be lost.
    """
    if root.is_mount():
        raise UnsupportedStoreError(
            f"{root} is a mount point: a new store could not take the old one's place at once",
            help="put the whole store into one folder of one file system",
        )
    if branch_names(files, root):
        raise UnsupportedStoreError(
            f"{root} has branches, which share files with it",
            help="drop them first: seglog branch drop --apply",
        )


def turn_back_text(root: Path) -> str:
    """Returns what to run where the old store is still there."""
    command = f"seglog spark compact {shell_text(root)}"
    return (
        f"`{command} --discard-old --apply` removes it, `{command} --undo` puts it back; then run this again"
    )


def write_manifest(files: SwappingFiles, root: Path, manifest: Manifest) -> None:
    """Says durably that the new store is whole."""
    folder = work_folder(root)
    fields = {name: getattr(manifest, name) for name in Manifest.__slots__}
    text = json.dumps(fields, indent=1)
    files.write_file(folder / (_MANIFEST + _WRITTEN), text.encode())
    files.rename(folder / (_MANIFEST + _WRITTEN), folder / _MANIFEST)
    files.sync_dir(folder)


def read_manifest(files: SwappingFiles, root: Path) -> Manifest | None:
    """Returns what was said of the new store; None if nothing was.

    Raises:
        ConfigError: It cannot be read.
    """
    path = work_folder(root) / _MANIFEST
    if not files.exists(path):
        return None
    try:
        fields = decode_json_object(files.read_file(path))
        fields["segments"] = tuple(tuple(segment) for segment in fields["segments"])
        return Manifest(**fields)
    except (CorruptError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{path} is no manifest: {error}", help="remove its folder") from error


def clear_rubbish(files: SwappingFiles, root: Path) -> None:
    """Removes what an attempt left that did not come to a manifest.

    Raises:
        UnsupportedStoreError: Something else is in the folder, which is not ours to remove.
    """
    folder = work_folder(root)
    if read_manifest(files, root) is not None or not files.exists(folder):
        return
    strange = sorted(entry.name for entry in files.list_dir(folder) if entry.name not in _OURS)
    if strange:
        raise UnsupportedStoreError(
            f"{folder} is where the new store is made, and holds {strange[0]!r}, which is of something else",
            help="nothing was changed; move that folder away, or call the store another name",
        )
    remove_tree(files, folder)


def finish_swap(files: SwappingFiles, root: Path) -> bool:
    """Does what is left to do of a swap; returns whether the new store is in place.

    The caller holds the store's lock, if there is a store. False without anything to do, and where the old
    store was written to since the new one was made, or was put back: what was made is removed then.

    Raises:
        ConfigError: The manifest cannot be read.
        NotFoundError: The store was removed after a swap.
    """
    manifest = read_manifest(files, root)
    if manifest is None:
        return False
    folder = work_folder(root)
    if not files.exists(root):  # between two renames
        if not files.exists(folder / _NEW):
            raise NotFoundError(
                f"{root} is gone; {folder / _OLD} is what it was before its last compaction or restore",
                help=f"move that to {root}, or remove {folder}",
            )
        files.rename(folder / _NEW, root)
        _sync(files, root)
        return True
    if _first_phy_offset(files, root) == manifest.first_phy_offset or _has_moved(files, root, manifest):
        if files.exists(folder / _NEW):
            files.rename(folder / _NEW, folder / _OLD)
            _sync(files, root)
        return True
    if not files.exists(folder / _NEW) or state_of_store(files, root) != manifest.old_state:
        files.remove(folder / _MANIFEST)
        remove_tree(files, folder)
        return False
    if files.exchange(root, folder / _NEW):
        files.sync_dir(root.parent)
        files.sync_dir(folder)
        files.rename(folder / _NEW, folder / _OLD)
    else:
        files.rename(root, folder / _OLD)
        _sync(files, root)
        files.rename(folder / _NEW, root)
    _sync(files, root)
    return True


@explained()
def undo_swap(files: SwappingFiles, root: Path) -> None:
    """Puts the old store back in place; the caller holds the store's lock.

    Raises:
        NotFoundError: There is none.
        UndoError: The new one was written to since.
    """
    manifest = read_manifest(files, root)
    if manifest is None or not files.exists(work_folder(root) / _OLD):
        raise NotFoundError(f"{root} has no older state to put back", help="it was discarded, or never made")
    if state_of_store(files, root) != manifest.new_state:
        raise UndoError(
            f"{root} was written to since it was compacted: {work_folder(root) / _OLD} has nothing of that",
            help=f"nothing was changed; `seglog spark compact {shell_text(root)} --discard-old"
            f" --apply` keeps the store as it is; to give up what was written since, stop its broker, move"
            f" {root} away and {work_folder(root) / _OLD} into its place",
        )
    folder = work_folder(root)
    if not files.exchange(root, folder / _OLD):
        files.rename(root, folder / _NEW)
        files.rename(folder / _OLD, root)
    _sync(files, root)
    files.remove(folder / _MANIFEST)
    remove_tree(files, folder)


def has_old(files: SwappingFiles, root: Path) -> bool:
    """Returns whether the store has an old one beside it, which a compaction or restore left."""
    return files.exists(root) and files.exists(old_store(root)) and not files.exists(new_store(root))


@explained()
def discard_old(files: SwappingFiles, root: Path) -> None:
    """Removes the old store, and so gives its space back."""
    if read_manifest(files, root) is not None and not files.exists(work_folder(root) / _NEW):
        files.remove(work_folder(root) / _MANIFEST)
        remove_tree(files, work_folder(root))


def _has_moved(files: SwappingFiles, root: Path, manifest: Manifest) -> bool:
    """Returns whether the old store is beside its place: a restored log begins where the old one does."""
    beside = [path for path in (new_store(root), old_store(root)) if files.exists(path)]
    return any(state_of_store(files, path) == manifest.old_state for path in beside)


def _first_phy_offset(files: SwappingFiles, root: Path) -> int | None:
    names = [parse_segment_file_name(entry.name) for entry in files.list_dir(root / COMMIT_LOG)]
    return min((first for first in names if first is not None), default=None)


def _sync(files: SwappingFiles, root: Path) -> None:
    files.sync_dir(root.parent)
    files.sync_dir(work_folder(root))


def _walk(files: SwappingFiles, root: Path, folder: Path) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for entry in files.list_dir(folder):
        path = folder / entry.name
        if entry.is_dir:
            found += _walk(files, root, path)
        else:
            found.append((path.relative_to(root).as_posix(), entry.size_bytes))
    return found

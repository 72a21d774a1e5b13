"""Replaces an old store by a new one, so that a reader finds one or the other, never parts of both.

The new store is made beside the store, in ``STORE.compact/new/``; ``STORE.compact/manifest.json`` appears
when it is complete and verified. Then the folders are exchanged, in one system call if the system has it
(Linux); elsewhere the old one is renamed and then the new one, and for a moment there is no store. Afterwards
the old store is ``STORE.compact/old/``, until it is discarded or put back.

After an interruption: without a manifest the new store is incomplete and is removed. With a manifest, the
name of the first segment shows which folder is which store; if the old store was written to meanwhile, the
new store is removed too.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.doctor.copies import branch_names
from seglog.errors import ConfigError, CorruptError, NotFoundError, UndoError, UnsupportedStoreError
from seglog.storage.directory import LogRoot
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
"""A folder beside the new store until the store was audited: its records, as they were written."""
_OURS: Final = frozenset({_NEW, _OLD, NOTED, _MANIFEST, _MANIFEST + _WRITTEN, f"{_NEW}.unfinished"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """A description of a new store.

    Attributes:
        first_phy_offset: Start of its log: after the old one's end.
        old_state: Digest of the old store's files, from :func:`state_of_store`.
        new_state: Digest of its own files.
        made_ms: Time at which it was made, ms since 1970 UTC.
        segments: Name, used bytes, records and CRC-32 of each segment.
    """

    first_phy_offset: int
    old_state: str
    new_state: str
    made_ms: int
    segments: tuple[tuple[str, int, int, int], ...]


def work_folder(root: Path) -> Path:
    """Returns the folder in which the new store is made."""
    return root.with_name(root.name + _SUFFIX)


def new_store(root: Path) -> Path:
    """Returns the path of the new store."""
    return work_folder(root) / _NEW


def old_store(root: Path) -> Path:
    """Returns the path of the old store after the swap."""
    return work_folder(root) / _OLD


def files_around(root: Path) -> StoreRoot:
    """Returns the files of a store and of the folder beside it, in which a new store is made."""
    return StoreRoot(root.parent)


def state_of_store(files: SwappingFiles, root: Path) -> str:
    """Returns a digest of names, lengths and times of all files of a store, without the lock."""
    digest = hashlib.sha256()
    for name, size in sorted(_walk(files, root, root)):
        if name != LOCK_FILE:
            digest.update(f"{name}\0{size}\0{files.stamp(root / name).modified_ns}\n".encode())
    return digest.hexdigest()


def check_swappable(files: SwappingFiles, root: Path) -> None:
    """Checks that a store's folder can be exchanged for another.

    Raises:
        UnsupportedStoreError: It cannot, or something in it would be lost.
    """
    if root.is_mount():
        raise UnsupportedStoreError(
            f"{root} is a mount point: a new store could not take the old one's place at once",
            help="put the whole store into one folder of one file system",
        )
    with closing(LogRoot(root)) as own:
        folders = own.log_folders
    if folders:
        raise UnsupportedStoreError(
            f"the log of {root} is in several folders, {', '.join((COMMIT_LOG, *folders))}",
            help="nothing was changed; put all of its files into commitlog/, while no broker is open",
        )
    if branch_names(files, root):
        raise UnsupportedStoreError(
            f"{root} has branches, which share files with it",
            help="drop them first: seglog branch drop --apply",
        )


def turn_back_text(root: Path) -> str:
    """Returns the command to run while the old store still exists."""
    command = f"seglog spark compact {shell_text(root)}"
    return (
        f"`{command} --discard-old --apply` removes it, `{command} --undo` puts it back; then run this again"
    )


def write_manifest(files: SwappingFiles, root: Path, manifest: Manifest) -> None:
    """Records durably that the new store is complete."""
    folder = work_folder(root)
    fields = {name: getattr(manifest, name) for name in Manifest.__slots__}
    text = json.dumps(fields, indent=1)
    files.write_file(folder / (_MANIFEST + _WRITTEN), text.encode())
    files.rename(folder / (_MANIFEST + _WRITTEN), folder / _MANIFEST)
    files.sync_dir(folder)


def read_manifest(files: SwappingFiles, root: Path) -> Manifest | None:
    """Returns the manifest of the new store; None if there is none.

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
    """Removes the files of an attempt that wrote no manifest.

    Raises:
        UnsupportedStoreError: The folder has other files, which are not seglog's to remove.
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
    """Completes a swap that was begun; returns whether the new store is in place.

    The caller holds the store's lock, if there is a store. False if there is nothing to do, or if the old
    store was written to since the new one was made, or was put back: the new store is removed then.

    Raises:
        ConfigError: The manifest cannot be read.
        NotFoundError: The store was removed after a swap.
    """
    manifest = read_manifest(files, root)
    if manifest is None:
        return False
    folder = work_folder(root)
    if not files.exists(root):  # interrupted between the two renames
        if not files.exists(folder / _NEW):
            raise NotFoundError(
                f"{root} is gone; {folder / _OLD} is what it was before its last compaction or restore",
                help=f"move that to {root}, or remove {folder}",
            )
        files.rename(folder / _NEW, root)
        _sync(files, root)
        return True
    if _first_phy_offset(files, root) == manifest.first_phy_offset or _has_moved(files, root, manifest):
        # The new store is in place; the old one may still be in the folder of the new one.
        if files.exists(folder / _NEW):
            files.rename(folder / _NEW, folder / _OLD)
            _sync(files, root)
        return True
    if not files.exists(folder / _NEW) or state_of_store(files, root) != manifest.old_state:
        # The manifest is removed first: without it the rest counts as an incomplete attempt.
        files.remove(folder / _MANIFEST)
        remove_tree(files, folder)
        return False
    if files.exchange(root, folder / _NEW):
        # After a crash from here on the next run finds the new store in place.
        files.sync_dir(root.parent)
        files.sync_dir(folder)
        files.rename(folder / _NEW, folder / _OLD)
    else:
        # After a crash between the two renames there is no store: the next run makes the second one.
        files.rename(root, folder / _OLD)
        _sync(files, root)
        files.rename(folder / _NEW, root)
    _sync(files, root)
    return True


@explained()
def undo_swap(files: SwappingFiles, root: Path) -> None:
    """Puts the old store back in place; the caller holds the store's lock.

    Raises:
        NotFoundError: There is no old store.
        UndoError: The new store was written to since.
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
        # After a crash between the two renames `finish_swap` moves the new store back.
        files.rename(root, folder / _NEW)
        files.rename(folder / _OLD, root)
    _sync(files, root)
    files.remove(folder / _MANIFEST)
    remove_tree(files, folder)


def has_old(files: SwappingFiles, root: Path) -> bool:
    """Returns whether an old store, left by a compaction or restore, is beside the store."""
    return files.exists(root) and files.exists(old_store(root)) and not files.exists(new_store(root))


@explained()
def discard_old(files: SwappingFiles, root: Path) -> None:
    """Removes the old store, which frees its space."""
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

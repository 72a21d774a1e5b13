"""Copies a store while it is in use: links for full files, copies for files that are still written.

The log is the truth, so it is copied last: everything that the copied queues, index and tables refer to is
then in the copied log, and so is everything that was acknowledged before the backup began. The last file of
an open store is copied up to the end of the last complete record at that time; queues that lack units are
repaired when the backup is opened. Tables are copied first: a group whose offset is a little old gets a
message again, while a group whose offset is too new would miss messages.

A backup of an open store is marked as crashed and has no checkpoint, so RocketMQ too reads all of its log. It
gets its name when it is complete. Files that it shares with the store are separated before either is written
(:mod:`seglog.storage.files.hardlinks`). RocketMQ does not do this, so give it a backup without links.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seglog.doctor.copies.branch_places import UNFINISHED
from seglog.doctor.message.log_access import LogView
from seglog.doctor.undo.copied_names import (
    COPIED_FOLDERS,
    FIRST_FOLDERS,
    NOT_COPIED_FILES,
    OF_ONE_STORE,
    QUEUE_FOLDERS,
    TEMPORARY,
)
from seglog.errors import InvalidArgumentError, ReadOnlyError, StoreLockedError
from seglog.storage.directory import (
    LogReader,
    RocksKind,
    as_stated,
    demand_log,
    demand_store,
    find_rocksdb,
    is_rocksdb_file,
)
from seglog.storage.files import HeldLock, StoreRoot, copy_file, link_or_copy
from seglog.storage.format import names
from seglog.storage.walk import LogScan

_KEPT_BACK: Final = NOT_COPIED_FILES | {names.ABORT_FILE, names.CHECKPOINT_FILE}
"""Of these the last two are copied apart, if the store is closed."""
_MOST_LOOKS: Final = 32


@dataclass(slots=True)
class Copied:
    """The result of a backup.

    Attributes:
        target: The backup.
        end_phy_offset: End of its log; for a store that was closed, the end of its last file.
        is_hot: Whether another process had the store open meanwhile.
        is_locked: Whether no other process could open the store for writing meanwhile.
        linked: Lengths of files that share their bytes with the store.
        copied: Lengths of files that do not.
        left_out: Names in the store that do not belong to a store, or that seglog does not read.
    """

    target: Path
    end_phy_offset: int = 0
    is_hot: bool = False
    is_locked: bool = True
    linked: list[int] = field(default_factory=list)
    copied: list[int] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def make_backup(
    files: StoreRoot, root: Path, target: Path, *, links: bool = True, others: StoreRoot | None = None
) -> Copied:
    """Makes a backup; the store may be open, in this process or by a broker.

    Args:
        files: Access to the store.
        root: The store directory.
        target: Must not exist, or be an empty directory.
        links: Whether full files are linked if the file system can do so; False copies all files.
        others: Access to the target; None for a folder that the caller names.

    Raises:
        NotFoundError: There is no store.
        NotAStoreError: ``root`` is not a store.
        InvalidArgumentError: There is something at ``target``, or it is at a place that is not allowed.
        OSError: The file system refuses; nothing is left at ``target``.
    """
    demand_store(files, root)
    demand_log(files, root)
    if others is None:
        _check_target(root, target)
    others = others or StoreRoot(target.parent)
    others.make_dirs(target.parent)
    if others.exists(target) and (not others.is_dir(target) or others.scan(target)):
        raise InvalidArgumentError(f"{target} exists and is no empty folder", help="name a new folder")
    made = target.with_name(target.name + UNFINISHED)
    others.remove_tree(made)
    lock, is_hot = _try_lock(files, root)
    try:
        done = _Backup((files, root), (others, made), is_hot=is_hot, links=links).run()
        done.is_locked = lock is not None
        if others.exists(target):
            others.remove_dir(target)
        others.rename(made, target)
    except BaseException:
        others.remove_tree(made)
        raise
    finally:
        if lock is not None:
            lock.release()
    others.sync_dir(target.parent)
    done.target = target
    return done


def _check_target(root: Path, target: Path) -> None:
    if target.resolve().is_relative_to(root.resolve()):
        raise InvalidArgumentError(
            f"{target} is in the store: RocketMQ would find it there", help="name a folder outside of it"
        )


def _try_lock(files: StoreRoot, root: Path) -> tuple[HeldLock | None, bool]:
    """Returns the store's lock, which keeps others from opening it, and whether a process has it open.

    The lock is None if a process has the store open, and if the store cannot be written here: on a file
    system mounted read-only, or as another user.
    """
    try:
        files.demand_kinds(root)
        return files.hold(root), False  # nothing is written, however many folders the log has
    except StoreLockedError:
        return None, True
    except ReadOnlyError:
        return None, files.lock_holder() is not None


class _Backup:
    """A backup in progress."""

    def __init__(
        self, store: tuple[StoreRoot, Path], made: tuple[StoreRoot, Path], *, is_hot: bool, links: bool
    ) -> None:
        self._files, self._root = store
        self._others, self._made = made
        self._links = links
        self._folders = [self._made]
        self._done = Copied(self._made, is_hot=is_hot)
        self._rocksdb = {part.name: part for part in find_rocksdb(self._files, self._root)}

    def run(self) -> Copied:
        self._others.make_dirs(self._made)
        self._root_files()
        for folder in (*FIRST_FOLDERS, *QUEUE_FOLDERS, *self._queues_apart):
            if self._files.is_dir(self._root / folder):
                self._folder(Path(folder))
        self._log()
        for made in self._folders:
            self._others.sync_dir(made)
        return self._done

    def _root_files(self) -> None:
        for entry in self._files.list_dir(self._root):
            is_of_log = any(Path(folder).parts[0] == entry.name for folder in self._files.log_folders)
            is_copied = is_of_log or entry.name in COPIED_FOLDERS | self._queues_apart
            if entry.is_dir and not is_copied:
                self._done.left_out.append(entry.name)
            elif not entry.is_dir and entry.name not in _KEPT_BACK and entry.name not in COPIED_FOLDERS:
                self._copy(Path(entry.name))
        if self._done.is_hot:
            self._others.write_file(self._made / names.ABORT_FILE, b"%d" % os.getpid())
        else:
            for name in (names.ABORT_FILE, names.CHECKPOINT_FILE):
                self._copy(Path(name))
        self._copy(Path("timerwheel"))

    @property
    def _queues_apart(self) -> frozenset[str]:
        """Folders with queues in RocksDB that no store of files has."""
        queues = (name for name, part in self._rocksdb.items() if part.kind is RocksKind.QUEUES)
        return frozenset(queues) - COPIED_FOLDERS

    def _folder(self, folder: Path) -> None:
        """Copies a folder: of consecutive files, and of index files, only the last is still written.

        Of seglog's own, only the last file of the history of offsets is. A RocksDB is copied if the store is
        closed: its files belong together, and an open one changes all of them.
        """
        entries = self._files.list_dir(self._root / folder)
        if self._done.is_hot and str(folder) in self._rocksdb:
            self._leave_out(f"{folder} (RocksDB)")
            entries = [entry for entry in entries if entry.is_dir or not is_rocksdb_file(entry.name)]
            if not entries:
                return
        self._make(folder)
        row = [entry.name for entry in entries if not entry.is_dir and entry.name.isdecimal()]
        for entry in entries:
            place = folder / entry.name
            is_ours = folder.parts[0] == names.OURS
            if is_ours and len(folder.parts) == 1 and entry.name in OF_ONE_STORE:
                continue
            if entry.is_dir:
                self._folder(place)
            elif entry.name.endswith(TEMPORARY):
                continue
            elif entry.name in row[:-1] or (is_ours and len(folder.parts) > 1 and entry.name not in row):
                self._link(place)
            else:
                self._copy(place)

    def _log(self) -> None:
        """Copies the log's folder; of an open store, the log up to the end of its last complete record.

        Retention may remove all listed files before they are copied; then the new files are listed. A log in
        several folders is copied to as many, of the same names.
        """
        for folder in (names.COMMIT_LOG, *self._files.log_folders):
            self._make(Path(folder))
        for _look in range(_MOST_LOOKS):
            if self._log_now() or not self._done.is_hot:
                return

    def _log_now(self) -> bool:
        """Copies the log as it is listed now; returns False if all listed files were removed meanwhile.

        If files have each other's names, every file is copied whole, with its present name.
        """
        folder = Path(names.COMMIT_LOG)
        # Listed before the search for the log's end: files that a writer adds meanwhile are after that end.
        entries = self._files.list_dir(self._root / folder)
        numbers = {entry.name: names.parse_segment_file_name(entry.name) for entry in entries}
        placed = as_stated(self._files, self._root)
        with LogView(placed, self._root) as view:
            segment = view.segment_size_bytes
            firsts = [file.first_offset for file in view.listing.log_files]
            is_cut = self._done.is_hot and placed is self._files
            end = _end_of(view) if is_cut else max(firsts, default=0) + segment
        if is_cut:
            end = min(end, max(set(firsts) & set(numbers.values()), default=0) + segment)
        self._done.end_phy_offset = end
        last = max((number for number in numbers.values() if number is not None), default=None)
        for entry in reversed(entries):  # newest first: if retention removes the oldest, no gap results
            first = numbers[entry.name]
            place = self._files.real_path(self._root / folder / entry.name).relative_to(self._root)
            if entry.is_dir:
                self._leave_out(str(place))
            elif first is None or (not is_cut and first == last):
                self._copy(place)
            elif not is_cut or first not in firsts or (first + segment <= end and first != last):
                self._link(place)
            elif first < end or first == firsts[0]:
                self._copy(place, end - first)
        folders = (names.COMMIT_LOG, *self._files.log_folders)
        made = {entry.name for one in folders for entry in self._others.list_dir(self._made / one)}
        logs = {name for name, first in numbers.items() if first is not None}
        return not logs or bool(logs & made)

    def _leave_out(self, name: str) -> None:
        if name not in self._done.left_out:
            self._done.left_out.append(name)

    def _link(self, place: Path) -> None:
        if not self._links:
            self._copy(place)
            return
        source, target = self._root / place, self._made / place
        if self._others.exists(target):
            return
        try:
            is_link = link_or_copy(self._files, source, self._others, target)
        except FileNotFoundError:  # its owner removed it meanwhile, as retention does
            return
        (self._done.linked if is_link else self._done.copied).append(self._others.status(target).st_size)

    def _make(self, folder: Path) -> None:
        self._others.make_dirs(self._made / folder)
        self._folders.append(self._made / folder)

    def _copy(self, place: Path, end: int | None = None) -> None:
        source, target = self._root / place, self._made / place
        if not self._files.exists(source) or self._files.is_dir(source) or self._others.exists(target):
            return
        try:
            copy_file(self._files, source, self._others, target, end)
        except FileNotFoundError:  # as above
            return
        self._done.copied.append(self._others.status(target).st_size)


def _end_of(view: LogView) -> int:
    """Returns the end of the last record that is complete now, by a walk over the last files only."""
    log_files = view.listing.log_files
    last = 0
    for number, file in enumerate(log_files):
        if view.message_at(file.first_offset) is not None:
            last = number
    reader = LogReader(view.files, view.root, view.segment_size_bytes)
    with closing(LogScan(reader, log_files[last:], view.segment_size_bytes)) as scan:
        for _rows in scan.iter_rows():
            pass  # only the end of the walk matters
    return scan.end_phy_offset

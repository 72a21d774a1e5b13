"""The files of one store, all of them below one open folder.

A store is untrusted: its names, links and kinds of files are the enemy's, and may change while we
look. So nothing in it is ever opened by a path that the kernel may resolve outside. A :class:`StoreRoot`
holds the store directory open; every call resolves the folder of the thing below that descriptor, through no
link (:mod:`seglog.storage.files.beneath`), and then names the thing in it, without following a link.

Only regular files are opened: what a name stands for is looked at first, so that no device is touched,
opened without waiting, and looked at again. Anything else raises :class:`~seglog.errors.FileKindError`; a
reader takes :class:`~seglog.storage.directory.reading_root.ReadingRoot`, which counts it as absent and
remembers it.

The store directory itself may be reached through links: that path is the caller's. Of its folders those may
be links that the caller names (``follow``), as with RocketMQ's ``storePathCommitLog``; such a folder is held
open too, and what is in it is resolved below it in the same way.

No other descriptor is kept: a folder that is renamed or replaced is seen at the next call.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import Final

from seglog.storage.files.beneath import FOLDER_FLAGS, PATH_ONLY
from seglog.storage.files.exchange import exchange
from seglog.storage.files.file_kinds import (
    FILE,
    FOLDER,
    UNDO_FOLDER,
    kind_error,
    kind_of,
    may_hold_numbers,
    wanted_kind,
)
from seglog.storage.files.file_owner import give_file, give_folder
from seglog.storage.files.files import DiskUsage, Entry, RealFiles, Stamp, read_whole
from seglog.storage.files.hardlinks import break_link, unfinished_path
from seglog.storage.files.os_errors import translate, with_path
from seglog.storage.files.real_file import RealFile
from seglog.storage.files.root_folder import NOT_THROUGH, RootFolder
from seglog.storage.files.store_lock import StoreLock, lock_holder
from seglog.storage.format.names import COMMIT_LOG, CONFIG, INDEX, LOCK_FILE, OURS
from seglog.storage.kernels.open_beneath import native_mode_beneath, native_open_beneath, native_open_plain

SAFE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags with which a name of a store is opened."""
_MOST_TRIES: Final = 8
_NAME: Final = attrgetter("name")
_RIGHTS: Final = 0o777
_LOOK_CLOSER: Final = 1
"""No mode of anything."""


class StoreRoot(RootFolder):
    """The real files of one store; :class:`~seglog.storage.files.files.SwappingFiles`.

    Args:
        path: The store directory, which need not exist yet.
        follow: Folders directly in it that may be links to folders elsewhere.
        opener: How folders below it are opened; None for the way that is best here.

    Raises:
        InvalidArgumentError: ``follow`` names something that is no plain name.

    Thread rule: any thread.
    """

    # --------------------------------------------------------------------------------------- looks

    def list_dir(self, path: Path) -> list[Entry]:
        """Returns the entries of a directory sorted by name; an absent directory has none.

        Raises:
            FileKindError: One is neither a file nor a folder, or a folder called like a file.
        """
        parts = self._parts(path)
        is_checked = may_hold_numbers(parts)
        entries: list[Entry] = []
        folder = self._open_listing(path, parts)
        if folder < 0:
            return entries
        try:
            for item, status in self._items(folder, parts, looks_at_folders=is_checked):
                if status is None:
                    entries.append(Entry(item.name, is_dir=True, size_bytes=0))
                    continue
                if parts and stat.S_ISREG(status.st_mode):
                    entries.append(Entry(item.name, is_dir=False, size_bytes=status.st_size))
                    continue
                kind = kind_of(status.st_mode)
                if (expected := wanted_kind(parts, item.name, kind)) and parts != UNDO_FOLDER:
                    self.meet_odd(path / item.name, kind, expected)
                    continue
                entries.append(Entry(item.name, kind == FOLDER, status.st_size))
        finally:
            os.close(folder)
        return entries

    def folder_names(self) -> list[str]:
        """Returns the names of the folders directly in the store, and of the links that are followed."""
        folder = self._open_listing(self.path, ())
        if folder < 0:
            return []
        try:
            found = _items_of(folder)
            return [
                item.name for item in found if item.name in self._mounts or item.is_dir(follow_symlinks=False)
            ]
        finally:
            os.close(folder)

    def scan(self, path: Path) -> list[tuple[str, os.stat_result]]:
        """Returns each name in a directory, sorted, of any kind, and what the system keeps of it.

        Links are not followed. An absent directory, or a file in place of one, has no names.
        """
        parts = self._parts(path)
        folder = self._open_listing(path, parts)
        if folder < 0:
            return []
        try:
            seen = self._items(folder, parts, looks_at_folders=True)
        finally:
            os.close(folder)
        return [(item.name, status) for item, status in seen if status is not None]

    def _items(
        self, folder: int, parts: tuple[str, ...], *, looks_at_folders: bool
    ) -> list[tuple[os.DirEntry[str], os.stat_result | None]]:
        """Returns the items of a folder, sorted, and what the system keeps of each.

        Where the owner removes one meanwhile, it lists again: of a log that is written and deleted, all files
        that were listed may be gone, and none that came since would be seen. Of a folder that it need not
        look at, it returns None.
        """
        seen: list[tuple[os.DirEntry[str], os.stat_result | None]] = []
        for _try in range(_MOST_TRIES):
            seen = []
            is_one_gone = False
            for item in _items_of(folder):
                if not looks_at_folders and item.is_dir(follow_symlinks=False):
                    seen.append((item, None))  # most, and without a look
                    continue
                status = self._status_of(item, parts)
                is_one_gone = is_one_gone or status is None
                if status is not None:
                    seen.append((item, status))
            if not is_one_gone:
                break
        return seen

    def _status_of(self, item: os.DirEntry[str], parts: tuple[str, ...]) -> os.stat_result | None:
        """Returns what the system keeps of an item, None if its owner removed it while we looked."""
        if not parts and item.name in self._mounts:
            return os.fstat(self._mounts[item.name])
        try:
            return item.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _open_listing(self, path: Path, parts: tuple[str, ...]) -> int:
        """Opens a folder to list it, most in one call; returns -1 where there is none."""
        name = self._plain_name(path)
        if name is not None and self._root is not None and native_open_beneath is not None:
            try:
                return native_open_beneath(self._root, name, os.O_RDONLY | FOLDER_FLAGS)
            except FileNotFoundError:
                return -1
            except OSError as error:
                if error.errno not in NOT_THROUGH:
                    raise OSError(error.errno, error.strerror, str(path)) from error
        try:
            return self._open_folder(parts, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return -1

    def status(self, path: Path) -> os.stat_result:
        """Returns what the system keeps of a file or folder; of a link, of the link itself.

        Raises:
            FileNotFoundError: There is nothing.
        """
        parts = self._parts(path)
        if not parts:
            return self.path.stat() if self._root is None else os.fstat(self._root)
        if len(parts) == 1 and parts[0] in self._mounted():
            return os.fstat(self._mounts[parts[0]])
        with self._at(path) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)

    @property
    def log_folders(self) -> tuple[str, ...]:
        """Folders of the log beside ``commitlog``, relative to the store; a plain root has none."""
        return ()

    @property
    def unstated_folders(self) -> tuple[str, ...]:
        """Those of :attr:`log_folders` that no configuration states."""
        return ()

    @property
    def as_it_is(self) -> StoreRoot:
        """The files of the store with each in the folder where it is; a plain root shows no others."""
        return self

    def real_path(self, path: Path) -> Path:
        """Returns where a file is: one of a log in several folders is shown in ``commitlog``."""
        return path

    def exists(self, path: Path) -> bool:
        """Whether there is anything of that name."""
        return self._mode(path) != 0

    def is_dir(self, path: Path) -> bool:
        """Whether there is a directory of that name."""
        return stat.S_ISDIR(self._mode(path))

    def _mode(self, path: Path) -> int:
        """Returns what a name stands for, 0 for nothing."""
        name = self._plain_name(path)
        if name is not None and self._root is not None and native_mode_beneath is not None:
            mode = native_mode_beneath(self._root, name)
            if mode != _LOOK_CLOSER:
                return mode
        try:
            return self.status(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def usage(self, path: Path) -> DiskUsage:
        """Asks with ``statvfs``."""
        folder = self._open_folder(self._parts(path), os.O_RDONLY)
        try:
            return DiskUsage.of(folder)
        finally:
            os.close(folder)

    def stamp(self, path: Path) -> Stamp:
        """Returns the rights and the time of a file."""
        with self._at(path) as (folder, name):
            status = self._file_status(path, folder, name)
        return Stamp(stat.S_IMODE(status.st_mode), status.st_mtime_ns)

    # ------------------------------------------------------------------------------- open and write

    def open(self, path: Path, *, writable: bool) -> RealFile:
        """Opens an existing file; breaks the hard links of one that is to be written.

        Raises:
            FileKindError: It is no regular file.
        """
        flags = os.O_RDWR if writable else os.O_RDONLY
        if (descriptor := self._open_plain(path, flags | SAFE)) >= 0:
            return self._new_file(path, flags, None, descriptor)
        with self._at(path) as (folder, name):
            for _try in range(_MOST_TRIES):
                status = self._file_status(path, folder, name)
                if writable and status.st_nlink > 1:
                    self._break_link(path, folder, name)
                file = self._new_file(path, flags, folder)
                status = os.fstat(file.descriptor)
                if stat.S_ISREG(status.st_mode) and not (writable and status.st_nlink > 1):
                    return file
                file.close()  # it was exchanged since we looked
        raise kind_error(self._name(path), "another thing at each look", FILE)

    def create(self, path: Path, size_bytes: int) -> RealFile:
        """Creates a sparse file of that size; leaves none behind if that fails."""
        with self._at(path) as (folder, name):
            try:
                made = self._new_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, folder)
            except OSError as error:
                raise translate(error, path) from error
            try:
                give_file(made.descriptor, folder)
                made.set_size(size_bytes)
            except BaseException:
                made.close()
                os.unlink(name, dir_fd=folder)
                raise
        return made

    def read_file(self, path: Path) -> bytes:
        """Returns the whole content."""
        with closing(self.open(path, writable=False)) as file:
            return read_whole(file, path)

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Creates or replaces a small file in place; not atomic."""
        with self._at(path) as (folder, name):
            try:
                status = self._file_status(path, folder, name)
            except FileNotFoundError:
                is_new = True
            else:
                is_new = status.st_nlink > 1
                if is_new:
                    os.unlink(name, dir_fd=folder)  # the other names keep what they have
        file = self.create(path, 0) if is_new else self.open(path, writable=True)
        try:
            file.set_size(0)
            file.write_at(data, 0)
        except BaseException:
            file.close()
            if is_new:
                self.remove(path)
            raise
        try:
            if sync:
                os.fsync(file.descriptor)  # "no space" from here is data lost, not a write refused
        except OSError as error:
            raise with_path(error, path) from error
        finally:
            file.close()

    def set_stamp(self, path: Path, stamp: Stamp) -> None:
        """Gives a file rights and a time."""
        with self._at(path) as (folder, name):
            self._file_status(path, folder, name)
            descriptor = os.open(name, PATH_ONLY | SAFE, dir_fd=folder)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise kind_error(self._name(path), "another thing at each look", FILE)
                _set_rights(descriptor, stamp.mode & _RIGHTS)
                accessed_ns = status.st_atime_ns
            finally:
                os.close(descriptor)
            os.utime(name, ns=(accessed_ns, stamp.modified_ns), dir_fd=folder, follow_symlinks=False)

    # ---------------------------------------------------------------------------------------- names

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        """Creates a directory and its parents where they are missing; ``sync`` makes the names durable."""
        parts = self._parts(path)
        if not self._is_there():
            RealFiles().make_dirs(self.path, sync=sync)  # it is the caller's path
        if not parts or self.is_dir(path):
            return
        self.make_dirs(path.parent, sync=sync)
        with self._at(path) as (folder, name):
            try:
                os.mkdir(name, dir_fd=folder)
                give_folder(name, folder)
            except FileExistsError:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    kind = kind_of(status.st_mode)
                    raise kind_error(self._name(path), kind, FOLDER) from None
            except OSError as error:
                raise translate(error, path) from error
        if sync:
            self.sync_dir(path.parent)

    def rename(self, source: Path, target: Path) -> None:
        """Renames atomically, replacing ``target``; a link is renamed or replaced itself."""
        with self._at(source) as (source_folder, source_name), self._at(target) as (folder, name):
            try:
                os.replace(source_name, name, src_dir_fd=source_folder, dst_dir_fd=folder)
            except OSError as error:
                raise translate(error, target) from error

    def link(self, source: Path, other: StoreRoot, target: Path) -> None:
        """Makes a second name for a file, in this store or another.

        Raises:
            FileKindError: It is no regular file.
        """
        with self._at(source) as (source_folder, source_name), other._at(target) as (folder, name):
            self._file_status(source, source_folder, source_name)
            os.link(source_name, name, src_dir_fd=source_folder, dst_dir_fd=folder, follow_symlinks=False)

    def remove(self, path: Path) -> None:
        """Removes a file, or a link itself."""
        with self._at(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def remove_dir(self, path: Path) -> None:
        """Removes an empty directory."""
        with self._at(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)

    def remove_tree(self, path: Path) -> None:
        """Removes a directory and all that is in it, links themselves; does nothing where there is none."""
        try:
            with self._at(path) as (folder, name):
                shutil.rmtree(name, dir_fd=folder)
        except FileNotFoundError:
            return

    def exchange(self, first: Path, second: Path) -> bool:
        """Exchanges with ``renameat2``; a system or file system without it says so."""
        with self._at(first) as one, self._at(second) as other:
            return exchange(one, other)

    def sync_dir(self, path: Path) -> None:
        """Syncs the directory itself."""
        folder = self._open_folder(self._parts(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        except OSError as error:
            raise with_path(error, path) from error
        finally:
            os.close(folder)

    def lock(self, root: Path) -> StoreLock:
        """Takes the lock that RocketMQ honours too.

        Every writer takes it, so the folders for writing are checked here, before the first write.

        Raises:
            FileKindError: ``lock`` is no regular file, or there is something in the store that no store has.
        """
        self.demand_kinds(root)
        return self.hold(root)

    def hold(self, root: Path) -> StoreLock:
        """Takes the lock to keep writers away, without a look at whether the store can be written.

        Raises:
            FileKindError: ``lock`` is no regular file.
        """
        with self._at(root / LOCK_FILE) as (folder, name):
            try:
                self._file_status(root / LOCK_FILE, folder, name)
            except FileNotFoundError:  # it will be made
                return StoreLock(root, folder)
            return StoreLock(root, folder)

    def demand_kinds(self, root: Path) -> None:
        """Looks at the folders of a store that writers write to, as taking its lock does; changes nothing.

        Raises:
            FileKindError: There is something in the store that no store has.
        """
        for name in ("", COMMIT_LOG, INDEX, CONFIG):
            self.list_dir(root / name)
        self._look_through(root / OURS)

    def _look_through(self, folder: Path) -> None:
        """Lists a folder of ours and all in it, but for branches, which are stores of their own."""
        for entry in self.list_dir(folder):
            if entry.is_dir and entry.name != "branches":
                self._look_through(folder / entry.name)

    def lock_holder(self) -> int | None:
        """Returns the id of the process that has the store open for writing, as ``lock_holder`` does."""
        try:
            return lock_holder(self.path, self._base(()))
        except FileNotFoundError:
            return None

    def _new_file(
        self, path: Path, flags: int, folder: int | None, descriptor: int | None = None
    ) -> RealFile:
        """Opens a file in a folder, unless it is open already; flags that keep it safe are added here."""
        return RealFile(path, flags | SAFE, folder, descriptor)

    def _open_plain(self, path: Path, flags: int) -> int:
        """Opens what is a regular file in one call; returns -1 where it takes a closer look.

        Most files of a store are opened so: a store has thousands of queues.
        """
        name = self._plain_name(path)
        if name is None or self._root is None or native_open_plain is None:
            return -1
        return native_open_plain(self._root, name, flags)

    def _break_link(self, path: Path, folder: int, name: str) -> None:
        made = unfinished_path(path)
        parts = self._parts(path)
        if len(parts) == 2 and parts[0] in self._mounted():
            made = path.with_name(made.name)  # beside a folder that is followed begins another file system
        try:
            with self._at(made) as (made_folder, made_name):
                break_link((folder, name), (made_folder, made_name))
        except OSError as error:
            raise translate(error, path) from error
        self.sync_dir(path.parent)


def _items_of(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return sorted(found, key=_NAME)


def _set_rights(descriptor: int, mode: int) -> None:
    """Gives a file rights that was opened to name it only."""
    if not PATH_ONLY:
        os.fchmod(descriptor, mode)
        return
    # Linux changes none through such a descriptor; its name in /proc leads to that very file.
    os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101 - it is no path of a store

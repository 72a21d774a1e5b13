"""An open store directory, below which every name of a store is resolved.

:mod:`seglog.storage.files.store_root` describes the rules, and opens, lists and changes the files.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from seglog.arguments import refusal
from seglog.errors import InvalidArgumentError, UnsafePathError
from seglog.storage.files.beneath import PATH_ONLY, Opener, choose_opener, openat2_beneath
from seglog.storage.files.file_kinds import FILE, FOLDER, kind_error, kind_of
from seglog.storage.files.store_names import MAX_NAME_BYTES, parts_of

_SHORT = MAX_NAME_BYTES // 4
"""No name of so many characters is too long."""
NOT_THROUGH = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EXDEV})
"""Errors of a path that has a name which is no plain folder."""


def _names_of(follow: object) -> tuple[str, ...]:
    # A text is a collection of texts too, of its letters.
    if isinstance(follow, str) or not isinstance(follow, Collection):
        raise refusal("follow", follow, "a list of names, such as ('commitlog',)")
    names: list[str] = []
    for name in follow:
        if not isinstance(name, str) or _is_path(name):
            raise refusal("follow", name, "the bare name of a folder in the store, such as commitlog")
        names.append(name)
    return tuple(names)


def _is_path(name: str) -> bool:
    try:
        return parts_of(Path(), Path(name)) != (name,)
    except UnsafePathError:
        return True


class RootFolder:
    """The open folder of one store, and the folders of it that may be links to other places.

    Args:
        path: The store directory, which need not exist yet.
        follow: Folders directly in it that may be links to folders elsewhere.
        opener: Opens folders below it; None for the best way on this system.

    Raises:
        InvalidArgumentError: ``follow`` names something that is no plain name.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, follow: Collection[str] = (), opener: Opener | None = None
    ) -> None:
        self._root: int | None = None
        self._mounts: dict[str, int] = {}
        self.path = Path(path).absolute()
        self._prefix = f"{self.path}/"
        self.follow = _names_of(follow)
        self._opener = opener
        self._lock = threading.Lock()

    def __del__(self) -> None:
        """Closes the descriptors."""
        if "_mounts" in vars(self):  # __init__ was not interrupted before
            self.close()

    def close(self) -> None:
        """Closes the descriptors; the next call that needs them opens the folder again."""
        mounts, root = self._mounts, self._root
        self._mounts, self._root = {}, None
        for descriptor in (*mounts.values(), *(() if root is None else (root,))):
            os.close(descriptor)

    def meet_odd(self, path: Path, found: str, expected: str) -> None:
        """Raises the error for a directory entry of the wrong kind; a reader records it instead."""
        raise kind_error(self._name(path), found, expected)

    def _plain_name(self, path: Path) -> bytes | None:
        """Returns a path relative to the root, None if it must be resolved name by name."""
        if self._opener is not openat2_beneath or self._mounts:
            return None
        text = str(path)
        if not text.startswith(self._prefix) or "/.." in text[len(self._prefix) - 1 :] or "\0" in text:
            return None
        return os.fsencode(text[len(self._prefix) :])

    def _parts(self, path: Path) -> tuple[str, ...]:
        text = str(path)
        if text.startswith(self._prefix) and "\0" not in text:
            parts = tuple(text[len(self._prefix) :].split("/"))
            if ".." not in parts and max(map(len, parts)) <= _SHORT:
                return parts
        return parts_of(self.path, path if path.is_absolute() else path.absolute())

    def _name(self, path: Path) -> str:
        return "/".join(self._parts(path))

    def _is_there(self) -> bool:
        try:
            self._base(())
        except FileNotFoundError:
            return False
        return True

    def _base(self, parts: tuple[str, ...]) -> int:
        """Returns the descriptor at which a path begins: the root, or a folder in ``follow``."""
        if self._root is None:
            self._open_root()
        if parts and parts[0] in self._mounts:
            return self._mounts[parts[0]]
        if self._root is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
        return self._root

    def _mounted(self) -> dict[str, int]:
        self._base(())
        return self._mounts

    def _open_root(self) -> None:
        with self._lock:
            if self._root is not None:
                return
            # Links are allowed in the caller's own path, and for the folders that the caller named.
            root = os.open(self.path, PATH_ONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            for name in self.follow:
                try:
                    flags = PATH_ONLY | os.O_DIRECTORY | os.O_CLOEXEC
                    self._mounts[name] = os.open(name, flags, dir_fd=root)
                except (FileNotFoundError, NotADirectoryError):
                    if self._is_missing(root, name):  # a store without that folder
                        continue
                    os.close(root)
                    raise self._no_folder(name) from None
            self._opener = self._opener or choose_opener(root)
            self._root = root

    @staticmethod
    def _is_missing(root: int, name: str) -> bool:
        try:
            os.stat(name, dir_fd=root, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return False

    def _no_folder(self, name: str) -> InvalidArgumentError:
        return refusal(
            "follow",
            name,
            f"a folder or a link to one at {self.path / name}",
            "mount or make its folder first",
        )

    def _open_folder(self, parts: tuple[str, ...], access: int) -> int:
        """Returns a new descriptor of a folder."""
        base = self._base(parts)
        rest = parts[1:] if parts and parts[0] in self._mounts else parts
        opener = self._opener
        if opener is None:
            raise RuntimeError("the root is open without a way to open what is below it")
        try:
            return opener(base, rest or (".",), access)
        except OSError as error:
            if error.errno in NOT_THROUGH:
                self._explain(base, parts, rest)
            raise OSError(error.errno, error.strerror, str(self.path.joinpath(*parts))) from error

    def _explain(self, base: int, parts: tuple[str, ...], rest: tuple[str, ...]) -> None:
        """Finds the name on a path that is no folder; raises FileKindError unless it is a plain file."""
        skipped = len(parts) - len(rest)
        for count in range(1, len(rest) + 1):
            opener = self._opener or choose_opener(base)
            above = opener(base, rest[: count - 1] or (".",), PATH_ONLY)
            try:
                mode = os.stat(rest[count - 1], dir_fd=above, follow_symlinks=False).st_mode
            finally:
                os.close(above)
            kind = kind_of(mode)
            if kind == FILE:
                return
            if kind != FOLDER:
                self._refuse(self.path.joinpath(*parts[: skipped + count]), kind, FOLDER)

    @contextmanager
    def _at(self, path: Path) -> Iterator[tuple[int, str]]:
        """Opens the folder of a path; yields its descriptor and the last name."""
        parts = self._parts(path)
        if not parts:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        above = parts[:-1]
        base = self._base(above)
        is_held = not above or (len(above) == 1 and above[0] in self._mounts)
        folder = base if is_held else self._open_folder(above, PATH_ONLY)
        try:
            yield folder, parts[-1]
        except OSError as error:
            error.filename = str(path)  # the whole path instead of the last name
            raise
        finally:
            if not is_held:
                os.close(folder)

    def _file_status(self, path: Path, folder: int, name: str) -> os.stat_result:
        """Returns the status of a name that must be a file."""
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            self._refuse(path, kind_of(status.st_mode), FILE)
        return status

    def _refuse(self, path: Path, found: str, expected: str) -> NoReturn:
        """Ends a call that found a directory entry of the wrong kind."""
        raise kind_error(self._name(path), found, expected)

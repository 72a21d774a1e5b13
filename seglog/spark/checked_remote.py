"""Access to the files of a store for an audit, at a path or at an address."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from typing_extensions import override

from seglog.doctor.parts import CheckedFiles, ForgivingFiles, UnreadFiles
from seglog.spark.remote_files import RemoteFiles, connect, is_address
from seglog.storage.findings import Finding


def checked_files(store: str) -> tuple[CheckedFiles, Path]:
    """Returns access to the files of a store for an audit, and the store directory in it.

    Args:
        store: A path or an address.

    Raises:
        MissingDependencyError: No installed package supports such addresses.
        NotFoundError: The text is no valid address.
    """
    if not is_address(store):
        return ForgivingFiles(store), Path(store).absolute()
    system, root = connect(store)
    return CheckedRemoteFiles(system, root), root


class CheckedRemoteFiles(RemoteFiles):
    """A store at an address. An absent file reads as an empty one; owners and rights are not known there.

    An error of the connection ends the audit, because it is no fact about the store.

    Args:
        files: The file system.
        root: The store directory.
    """

    def __init__(self, files: RemoteFiles, root: Path) -> None:
        super().__init__(files.system, starts_with_slash=files.starts_with_slash)
        self._root = root
        self._unread = UnreadFiles()

    @property
    def findings(self) -> list[Finding]:
        """Returns findings on files that could not be read so far, and on file kinds that no store has."""
        return self._unread.findings()

    def add(self, finding: Finding) -> None:
        """Records a file that another reader could not read."""
        self._unread.add(finding)

    def meet_odd(self, path: Path, found: str, expected: str) -> None:
        """Records a name that is of another kind than it should be."""
        name = path.relative_to(self._root).as_posix()
        self.add(Finding("file-kind", name, expected=expected, found=found))

    def status(self, path: Path) -> os.stat_result:
        """Returns a status like that of a file of the user.

        Raises:
            FileNotFoundError: There is nothing.
        """
        is_dir = self.is_dir(path)
        if not is_dir and not self.exists(path):
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return _status(is_dir=is_dir, size_bytes=0)

    def scan(self, path: Path) -> list[tuple[str, os.stat_result]]:
        """Returns each name in a directory, sorted, with a status like that of a file of the user."""
        return [
            (entry.name, _status(is_dir=entry.is_dir, size_bytes=entry.size_bytes))
            for entry in self.list_dir(path)
        ]

    @property
    def log_folders(self) -> tuple[str, ...]:
        """None: a log in several folders is refused at an address."""
        return ()

    def lock_holder(self) -> None:
        """Returns None: another machine cannot see the lock."""

    @override
    def read_file(self, path: Path) -> bytes:
        try:
            return super().read_file(path)
        except FileNotFoundError:
            return b""


def _status(*, is_dir: bool, size_bytes: int) -> os.stat_result:
    mode = stat.S_IFDIR | stat.S_IRWXU if is_dir else stat.S_IFREG | stat.S_IRUSR | stat.S_IWUSR
    return os.stat_result((mode, 0, 0, 1, 0, 0, size_bytes, 0, 0, 0))

"""Stores at an address (``s3://``, ``gs://``, ``hdfs://``, ``file://`` …): read-only, by ranges.

pyarrow reads the addresses that it supports; other addresses are opened by fsspec, if it is installed. Each
task opens a connection of its own: only the address is sent to the tasks. These file systems report no holes,
so the zeros after the end of a log are read, while a local file system would report that nothing was ever
written there.
"""

from __future__ import annotations

import errno
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NoReturn

from seglog.errors import MissingDependencyError, NotFoundError, ReadOnlyError
from seglog.storage.directory import ReadingRoot
from seglog.storage.files import DiskUsage, Entry, Files, HeldLock, OpenFile
from seglog.text import shell_text

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

_SCHEME_END: Final = "://"
_NO_SIZE: Final = 0


def is_address(path: str) -> bool:
    """Returns whether a path is an address and no path of the operating system."""
    return _SCHEME_END in path


def typed_path(path: str) -> str:
    """Returns a path or address as a shell takes it."""
    return shell_text(path if is_address(path) else Path(path))


def locate(path: str) -> tuple[Files, Path]:
    """Returns the file system of a path or address, and the store directory there.

    Raises:
        MissingDependencyError: No installed package supports such addresses.
        NotFoundError: The text is no valid address.
    """
    if not is_address(path):
        return ReadingRoot(path), Path(path).absolute()
    return connect(path)


def connect(address: str) -> tuple[RemoteFiles, Path]:
    """Returns the file system of an address, and the store directory there.

    Raises:
        MissingDependencyError: No installed package supports such addresses.
        NotFoundError: The text is no valid address.
    """
    system, name = _connect(address)
    return RemoteFiles(system, starts_with_slash=name.startswith("/")), Path("/") / name.lstrip("/")


def _connect(address: str) -> tuple[pyarrow.fs.FileSystem, str]:
    import pyarrow as pa
    import pyarrow.fs

    try:
        found: tuple[pyarrow.fs.FileSystem, str] = pyarrow.fs.FileSystem.from_uri(address)
    except pa.ArrowInvalid as error:
        return _connect_with_fsspec(address, error)
    return found


def _connect_with_fsspec(address: str, refusal: pa.ArrowInvalid) -> tuple[pyarrow.fs.FileSystem, str]:
    import pyarrow.fs

    try:
        import fsspec
    except ImportError as error:
        raise MissingDependencyError(
            f"pyarrow cannot read {address}: {refusal}", help="pip install fsspec, which knows more addresses"
        ) from error
    try:
        system, name = fsspec.core.url_to_fs(address)
    except ValueError as error:
        raise NotFoundError(f"nothing knows the address {address}: {error}") from error
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(system)), str(name)


class RemoteFile:
    """An open file of a remote file system."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file

    @property
    def size_bytes(self) -> int:
        """Length of the file when it was opened."""
        return int(self._file.size())

    @property
    def descriptor(self) -> int:
        """None: there is no descriptor of the operating system."""
        return -1

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Reads one range."""
        wanted = min(len(buffer), self.size_bytes - position)
        if wanted <= 0:
            return 0
        found = self._file.read_at(wanted, position)
        buffer[: len(found)] = found
        return len(found)

    def next_data(self, position: int) -> int | None:
        """Returns the position itself, because holes are not known."""
        return position if position < self.size_bytes else None

    def map(self) -> memoryview:
        """Raises the error of a file that cannot be mapped."""
        raise OSError(errno.ENODEV, "a remote file cannot be mapped")

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Refuses."""
        _refuse(f"{len(data)} bytes at {position}")

    def set_size(self, size_bytes: int) -> None:
        """Refuses."""
        _refuse(f"a length of {size_bytes}")

    def reserve(self, position: int, size_bytes: int) -> None:
        """Refuses."""
        _refuse(f"{size_bytes} bytes at {position}")

    def sync(self) -> None:
        """Does nothing: nothing was written."""

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class RemoteFiles:
    """A remote file system, for reading only.

    Args:
        system: The file system.
        starts_with_slash: Whether its names start with a slash.

    Attributes:
        system: The file system.
        starts_with_slash: Whether its names start with a slash.
    """

    def __init__(self, system: pyarrow.fs.FileSystem, *, starts_with_slash: bool) -> None:
        self.system = system
        self.starts_with_slash = starts_with_slash

    def list_dir(self, path: Path) -> list[Entry]:
        """Returns the entries of a directory sorted by name; an absent directory has none."""
        import pyarrow.fs

        chosen = pyarrow.fs.FileSelector(self._name(path), allow_not_found=True)
        try:
            infos = self.system.get_file_info(chosen)
        except NotADirectoryError:
            return []
        entries = [
            Entry(info.base_name, info.type == pyarrow.fs.FileType.Directory, info.size or _NO_SIZE)
            for info in infos
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def exists(self, path: Path) -> bool:
        """Whether there is anything of that name."""
        import pyarrow.fs

        return bool(self._type(path) != pyarrow.fs.FileType.NotFound)

    def is_dir(self, path: Path) -> bool:
        """Whether there is a directory of that name."""
        import pyarrow.fs

        return bool(self._type(path) == pyarrow.fs.FileType.Directory)

    def open(self, path: Path, *, writable: bool) -> OpenFile:
        """Opens an existing file for reading."""
        if writable:
            _refuse(str(path))
        return RemoteFile(self.system.open_input_file(self._name(path)))

    def read_file(self, path: Path) -> bytes:
        """Returns the whole content."""
        with self.system.open_input_file(self._name(path)) as file:
            content: bytes = file.read()
        return content

    def create(self, path: Path, size_bytes: int) -> OpenFile:
        """Refuses."""
        _refuse(f"{path} of {size_bytes} bytes")

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Refuses."""
        _refuse(f"{path} of {len(data)} bytes{', durably' if sync else ''}")

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        """Refuses."""
        _refuse(f"{path}{', durably' if sync else ''}")

    def remove_dir(self, path: Path) -> None:
        """Refuses."""
        _refuse(str(path))

    def usage(self, path: Path) -> DiskUsage:
        """Refuses: object stores do not fill up."""
        _refuse(str(path))

    def rename(self, source: Path, target: Path) -> None:
        """Refuses."""
        _refuse(f"{source} as {target}")

    def remove(self, path: Path) -> None:
        """Refuses."""
        _refuse(f"without {path}")

    def sync_dir(self, path: Path) -> None:
        """Refuses."""
        _refuse(str(path))

    def lock(self, root: Path) -> HeldLock:
        """Refuses."""
        _refuse(f"{root} for writing")

    def _name(self, path: Path) -> str:
        name = str(PurePosixPath(path))
        return name if self.starts_with_slash else name.lstrip("/")

    def _type(self, path: Path) -> pyarrow.fs.FileType:
        return self.system.get_file_info(self._name(path)).type


def _refuse(what: str) -> NoReturn:
    raise ReadOnlyError(f"a remote store can only be read: {what}", help="write to a local or mounted folder")

"""Log files under another file's name: found by what their records say, and shown under the right one.

Each record states its own place, so a file of which the records belong elsewhere was given a wrong name: two
files changed places, or a copy was made under the next name. Who only reads sees such files where they
belong (:class:`PlacedFiles`); the doctor renames them; opening for writing refuses the store. A copy over a
file of the log is what is left of that file: readers and writers see a hole there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from pathlib import Path

from seglog.errors import MisnamedFileError
from seglog.storage.file_facts import PAGE_BYTES
from seglog.storage.files import DiskUsage, Entry, Files, HeldLock, OpenFile
from seglog.storage.findings import Finding
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.log_facts import stated_place
from seglog.storage.log_files import LogFile, list_log_files


@dataclass(frozen=True, slots=True)
class Misnamed:
    """The log files of a store that are not what they are called.

    Attributes:
        moves: First offset in the name, and the one that it should be; of a file whose place is free, or is
            held by another one that goes elsewhere.
        copies: First offsets in the names of files whose place a rightly named file holds.
        written_over: Those of the copies that have the name of a file of the log, which they took the place
            of: one that files of the log lie around, or right before the first of them.
    """

    moves: Mapping[int, int] = field(default_factory=dict)
    copies: tuple[int, ...] = ()
    written_over: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.moves or self.copies)


def find_misnamed(files: Files, root: Path) -> Misnamed:
    """Returns the log files of a store that are not what they are called."""
    log_files, _strays = list_log_files(files, root)
    stated = {file.first_offset: stated_place(files, root, file.first_offset) for file in log_files}
    return sort_out(log_files, stated)


def sort_out(log_files: Sequence[LogFile], stated: Mapping[int, int | None]) -> Misnamed:
    """Returns which files go where.

    Args:
        log_files: Files of the log, by their names.
        stated: Where the records of each say that it belongs; None for one that does not say.
    """
    named = [file.first_offset for file in log_files]
    step = gcd(*named) or PAGE_BYTES
    stated = {first: None if place is not None and place % step else place for first, place in stated.items()}
    right = {first for first in named if stated[first] == first}
    moves: dict[int, int] = {}
    copies: list[int] = []
    for first in named:
        place = stated[first]
        if place is None or place == first:
            continue
        if place in right or place in moves.values() or place < 0:
            copies.append(first)
        else:
            moves[first] = place
    # A copy, or a file that does not say where it belongs, gives way to one that does: its name is free.
    free = [first for first in moves if first not in moves.values()]
    for place in list(moves.values()):
        gives_way = place in copies or (place in stated and stated[place] is None)
        if gives_way and place not in moves and free:
            moves[place] = free.pop(0)
    copies = [first for first in copies if first not in moves]
    names = {moves.get(first, first) for first in named} - set(copies)
    return Misnamed(moves, tuple(copies), tuple(_written_over(log_files, names, copies)))


def _written_over(log_files: Sequence[LogFile], names: set[int], copies: Sequence[int]) -> Iterator[int]:
    """Yields the names of copies within a log, the last first.

    Args:
        log_files: Its files.
        names: First offsets of those that are no copies, where they belong.
        copies: First offsets in the names of the copies.
    """
    if not names:
        return
    segment = Counter(file.size_bytes for file in log_files).most_common(1)[0][0]
    start, end = min(names), max(names)
    for first in sorted(set(copies) - names, reverse=True):
        # What is further in front may be older than all that retention left.
        if start - segment <= first < end:
            start = min(start, first)
            yield first


def misnamed_findings(misnamed: Misnamed) -> list[Finding]:
    """Returns a finding for each file that has another's name."""
    return [
        _finding(first, f"{COMMIT_LOG}/{segment_file_name(place)}")
        for first, place in sorted(misnamed.moves.items())
    ] + [_finding(first, "records of its own") for first in misnamed.copies]


def _finding(first: int, expected: str) -> Finding:
    return Finding("log-file-misnamed", f"{COMMIT_LOG}/{segment_file_name(first)}", expected=expected)


def check_names(files: Files, root: Path) -> None:
    """Refuses a store to readers that take log files for what they are called.

    Raises:
        MisnamedFileError: A file has the name of another one.
    """
    for finding in misnamed_findings(find_misnamed(files, root)):
        raise MisnamedFileError(
            f"{root / finding.file} is not what it is called: its records belong into {finding.expected}",
            help="`seglog repair STORE` gives each file its name; `seglog dump` and `export` read without",
        )


def as_stated(files: Files, root: Path) -> Files:
    """Returns the files of a store as one who only reads them should see them."""
    misnamed = find_misnamed(files, root)
    return PlacedFiles(files, root, misnamed) if misnamed else files


class PlacedFiles:
    """Files whose log has each file under the name that its records say, for readers.

    Attributes:
        misnamed: What is shown otherwise than it is.
    """

    def __init__(self, files: Files, root: Path, misnamed: Misnamed) -> None:
        self._files = files
        self._folder = root / COMMIT_LOG
        self.misnamed = misnamed
        self._real = {
            segment_file_name(place): segment_file_name(first) for first, place in misnamed.moves.items()
        }
        shown = set(self._real)
        copies = set(misnamed.copies) - set(misnamed.written_over)
        hidden = {segment_file_name(first) for first in (*misnamed.moves, *copies)}
        self._hidden = hidden - shown

    def _path(self, path: Path) -> Path:
        if path.parent != self._folder:
            return path
        if path.name in self._hidden:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return self._folder / self._real.get(path.name, path.name)

    def list_dir(self, path: Path) -> list[Entry]:
        """Returns the entries of a directory sorted by name."""
        entries = self._files.list_dir(path)
        if path != self._folder:
            return entries
        there = {entry.name: entry for entry in entries}
        shown = {name: there[real] for name, real in self._real.items() if real in there}
        kept = {
            name: entry for name, entry in there.items() if name not in self._hidden and name not in shown
        }
        return [Entry(name, entry.is_dir, entry.size_bytes) for name, entry in sorted((kept | shown).items())]

    def exists(self, path: Path) -> bool:
        """Whether there is anything of that name."""
        try:
            return self._files.exists(self._path(path))
        except FileNotFoundError:
            return False

    def is_dir(self, path: Path) -> bool:
        """Whether there is a directory of that name."""
        return self._files.is_dir(path)

    def open(self, path: Path, *, writable: bool) -> OpenFile:
        """Opens an existing file."""
        return self._files.open(self._path(path), writable=writable)

    def read_file(self, path: Path) -> bytes:
        """Returns the whole content."""
        return self._files.read_file(self._path(path))

    def usage(self, path: Path) -> DiskUsage:
        """Returns how full the file system is."""
        return self._files.usage(path)

    def create(self, path: Path, size_bytes: int) -> OpenFile:
        """Creates a file of that size."""
        return self._files.create(self._path(path), size_bytes)

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Creates or replaces a small file."""
        self._files.write_file(self._path(path), data, sync=sync)

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        """Creates a directory and its parents."""
        self._files.make_dirs(path, sync=sync)

    def rename(self, source: Path, target: Path) -> None:
        """Renames a file."""
        self._files.rename(self._path(source), self._path(target))

    def remove(self, path: Path) -> None:
        """Removes a file."""
        self._files.remove(self._path(path))

    def remove_dir(self, path: Path) -> None:
        """Removes an empty directory."""
        self._files.remove_dir(path)

    def sync_dir(self, path: Path) -> None:
        """Returns once the names in the directory are on the disk."""
        self._files.sync_dir(path)

    def lock(self, root: Path) -> HeldLock:
        """Takes the lock of a store directory."""
        return self._files.lock(root)

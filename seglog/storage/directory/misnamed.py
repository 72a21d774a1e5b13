"""Log files under another name than their own: found by their records, and shown under the right one.

Each record states its own place, so a file of which the records belong elsewhere was given a wrong name: two
files changed places, a copy was made under the next name, or a copy under a name that no log file has
(``.bak``, the partial file of a transfer) is all that is left of one. Who only reads sees such files where
they belong (:class:`PlacedFiles`); the doctor renames them; opening for writing refuses the store. A copy
over a file of the log is what is left of that file: readers and writers see a hole there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from seglog.errors import MisnamedFileError
from seglog.storage.directory.file_facts import PAGE_BYTES
from seglog.storage.directory.geometry import MAX_SEGMENT_BYTES
from seglog.storage.directory.log_facts import record_times, stated_place
from seglog.storage.directory.log_files import MAX_MISSING, LogFile, list_log_files
from seglog.storage.directory.replaced_paths import ReplacedPaths
from seglog.storage.files.files import Entry, Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.small_files.erased_places import erased_places


@dataclass(frozen=True, slots=True)
class Misnamed:
    """The files in the folder of a log that are not what they are called.

    Attributes:
        moves: Name of a file, and the one that it should have; of a file whose place is free, or is held by
            another one that goes elsewhere.
        copies: Names of log files whose place a rightly named file holds.
        written_over: Those of the copies that have the name of a file of the log, which they took the place
            of: one between files of the log, or right before the first of them.
    """

    moves: Mapping[str, str] = field(default_factory=dict)
    copies: tuple[str, ...] = ()
    written_over: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.moves or self.copies)


def find_misnamed(files: Files, root: Path) -> Misnamed:
    """Returns the files in the folder of a log that are not what they are called."""
    log_files, strays = list_log_files(files, root)
    stated = {
        file.first_offset: stated_place(files, root, segment_file_name(file.first_offset))
        for file in log_files
    }
    found = sort_out(log_files, stated)
    if not strays:
        return found
    named = [finding.file.removeprefix(f"{COMMIT_LOG}/") for finding in strays]
    return _with_strays(_Folder(files, root, _segment(log_files)), found, stated, named)


def sort_out(log_files: Sequence[LogFile], stated: Mapping[int, int | None]) -> Misnamed:
    """Returns which log files go where.

    Args:
        log_files: Files of the log, by their names.
        stated: Where the records of each say that it belongs; None for one that does not say.
    """
    named = [file.first_offset for file in log_files]
    step = _segment(log_files) or PAGE_BYTES
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
    return Misnamed(
        {segment_file_name(first): segment_file_name(place) for first, place in moves.items()},
        tuple(map(segment_file_name, copies)),
        tuple(map(segment_file_name, _written_over(log_files, names, copies))),
    )


def _common(sizes: Sequence[int]) -> int:
    """Returns the length that most files have."""
    return Counter(sizes).most_common(1)[0][0]


def _segment(log_files: Sequence[LogFile]) -> int:
    """Returns how far from each other the files of a log are, 0 where their names do not say."""
    step = gcd(*(file.first_offset for file in log_files))
    common = _common([file.size_bytes for file in log_files]) if step else 0
    return common if common and step % common == 0 else step


def _written_over(log_files: Sequence[LogFile], names: set[int], copies: Sequence[int]) -> Iterator[int]:
    """Yields the names of copies within a log, the last first.

    Args:
        log_files: Its files.
        names: First offsets of those that are no copies, where they belong.
        copies: First offsets in the names of the copies.
    """
    if not names:
        return
    segment = _common([file.size_bytes for file in log_files])
    start, end = min(names), max(names)
    for first in sorted(set(copies) - names, reverse=True):
        # What is further in front may be older than all that retention left.
        if start - segment <= first < end:
            start = min(start, first)
            yield first


class _Folder(NamedTuple):
    """The folder of a log.

    Attributes:
        files: Where it is.
        root: The store directory.
        segment: How far from each other log files are, 0 where nothing says so.
    """

    files: Files
    root: Path
    segment: int


class _Stray(NamedTuple):
    """A file that no log file can be called like, and whose records are the log's.

    Attributes:
        name: What it is called.
        place: Where its records say that it belongs.
        first_ms: Store time of its first record.
        last_ms: Store time of its last record.
    """

    name: str
    place: int
    first_ms: int
    last_ms: int


def _with_strays(
    folder: _Folder, found: Misnamed, stated: Mapping[int, int | None], names: Sequence[str]
) -> Misnamed:
    """Returns what is misnamed, with the files under any other name that fill a free place of the log.

    Args:
        folder: The folder of the log.
        found: What is misnamed among the log files.
        stated: Where the records of each log file say that it belongs.
        names: What the others are called.
    """
    moves = dict(found.moves)
    silent = {segment_file_name(first) for first, place in stated.items() if place is None} - moves.keys()
    log = {
        moves.get(name, name): name
        for name in map(segment_file_name, stated)
        if name not in silent and name not in found.copies
    }
    erased = [one.phy_offset for one in erased_places(folder.files, folder.root)]
    wanted: dict[int, _Stray] = {}
    for stray in _strays(folder, names, erased):
        known = wanted.get(stray.place)
        is_better = known is None or (known.last_ms, known.name) < (stray.last_ms, stray.name)
        if segment_file_name(stray.place) not in log and is_better:
            wanted[stray.place] = stray
    for stray in _joining(folder, log, wanted):
        target = segment_file_name(stray.place)
        moves[stray.name] = target
        if target in silent or target in found.copies:
            moves[target] = stray.name
    return Misnamed(
        moves,
        tuple(name for name in found.copies if name not in moves),
        tuple(name for name in found.written_over if name not in moves),
    )


def _strays(folder: _Folder, names: Sequence[str], erased: Sequence[int]) -> Iterator[_Stray]:
    """Yields the files under other names whose records say where in the log they belong."""
    files, root, segment = folder
    for name in names:
        place = stated_place(files, root, name)
        if place is None or place < 0 or place % (segment or PAGE_BYTES):
            continue
        if any(place <= phy_offset < place + (segment or MAX_SEGMENT_BYTES) for phy_offset in erased):
            continue  # what was erased never comes back
        times = record_times(files, root, name, place)
        if times is not None:
            yield _Stray(name, place, *times)


def _joining(folder: _Folder, log: Mapping[str, str], wanted: Mapping[int, _Stray]) -> Iterator[_Stray]:
    """Yields the strays that a log lacks.

    That is one between two of its files; one right in front of its first, since what is further in front
    may be older than all that retention left; and one behind its last with records that are not older, since
    what was cut off a log belongs to an older life of it. Of a log without files any, by the same rules.

    Args:
        folder: The folder of the log.
        log: Name of each file of the log that says where it belongs, and the one that it has.
        wanted: The strays, by place.
    """
    if not wanted:
        return
    left = dict(wanted)
    places = [int(name) for name in log]
    if places:
        last = max(places)
        times = record_times(folder.files, folder.root, log[segment_file_name(last)], last)
        newest_ms = -1 if times is None else times[1]
    else:
        oldest = left.pop(min(left))
        places.append(oldest.place)
        newest_ms = oldest.last_ms
        yield oldest
    for place in sorted(left):
        stray = left[place]
        is_near = place - max(places) <= (MAX_MISSING + 1) * (folder.segment or MAX_SEGMENT_BYTES)
        if place > max(places) and is_near and stray.first_ms >= newest_ms:
            newest_ms = stray.last_ms
        elif not min(places) < place < max(places):
            continue
        places.append(place)
        yield left.pop(place)
    while (before := left.pop(min(places) - folder.segment, None)) is not None:
        places.append(before.place)
        yield before


def misnamed_findings(misnamed: Misnamed) -> list[Finding]:
    """Returns a finding for each file that has another's name."""
    return [_finding(name, f"{COMMIT_LOG}/{target}") for name, target in sorted(misnamed.moves.items())] + [
        _finding(name, "records of its own") for name in misnamed.copies
    ]


def _finding(name: str, expected: str) -> Finding:
    return Finding("log-file-misnamed", f"{COMMIT_LOG}/{name}", expected=expected)


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


class PlacedFiles(ReplacedPaths):
    """Files whose log has each file under the name that its records say, for readers.

    Attributes:
        misnamed: What is shown otherwise than it is.
    """

    def __init__(self, files: Files, root: Path, misnamed: Misnamed) -> None:
        super().__init__(files)
        self._folder = root / COMMIT_LOG
        self.misnamed = misnamed
        self._real = {target: name for name, target in misnamed.moves.items()}
        copies = set(misnamed.copies) - set(misnamed.written_over)
        self._hidden = {*misnamed.moves, *copies} - self._real.keys()

    @override
    def _path(self, path: Path) -> Path:
        if path.parent != self._folder:
            return path
        if path.name in self._hidden:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return self._folder / self._real.get(path.name, path.name)

    @override
    def list_dir(self, path: Path) -> list[Entry]:
        entries = self._files.list_dir(path)
        if path != self._folder:
            return entries
        there = {entry.name: entry for entry in entries}
        shown = {name: there[real] for name, real in self._real.items() if real in there}
        kept = {
            name: entry for name, entry in there.items() if name not in self._hidden and name not in shown
        }
        return [Entry(name, entry.is_dir, entry.size_bytes) for name, entry in sorted((kept | shown).items())]

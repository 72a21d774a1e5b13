"""Records that were walked as they were written: what an audit may take for a walk of the new file.

Who writes a log verifies each record in the memory that goes to the file, and leaves its row here. An audit
of what was written then has the rows and keys without reading the log again, and holds queues and index
against them as after any walk. It reads the file itself at the edges of each group of records, and from the
last of them on. That the file has every byte between as it was verified is up to who wrote it: a compaction
reads each segment back, in the task that wrote it.

Beside the rows of each segment lie its keys (``KEY_ROW``) and its marks: where a group of records ends. No
group reaches over a border of :data:`~seglog.storage.splits.splits.DEFAULT_SPLIT_BYTES`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from seglog.storage.directory import LogReader
from seglog.storage.files import OpenFile, RestoringFiles, StoreRoot, read_all
from seglog.storage.format.index import KEY_ROW
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.record import Damage, examine
from seglog.storage.kernels.index_keys import RecordKeys
from seglog.storage.kernels.walk import ROW, Rows
from seglog.storage.splits.splits import DEFAULT_SPLIT_BYTES
from seglog.storage.walk import Split

KNOWN_KEYS: Final = "keys"
"""The folder of the keys, within that of the rows."""
_MARKS: Final = ".marks"
_GROUP_ROWS: Final = 1 << 15
_NOT_TEXT: Final = "\N{REPLACEMENT CHARACTER}"
Key = tuple[str, int]


class Mark(NamedTuple):
    """Where a group of records ends; all numbers count from the start of the segment.

    Attributes:
        rows: Records up to here.
        keys: Their keys.
        with_crc: How many of the records have a record CRC.
        first: Physical offset of the group's first record.
        end: Physical offset where its last record ends.
    """

    rows: int
    keys: int
    with_crc: int
    first: int
    end: int


class RecordNotes:
    """Writes down the records of one segment as they are written. One thread at a time.

    Args:
        files: Where the folder is.
        folder: Where rows and marks go.
        attempt: The ending of names until :meth:`save`: several may write the same.
        first: Physical offset of the segment's first byte.
        tags: Whether tags are among the keys.
    """

    def __init__(self, files: RestoringFiles, folder: Path, attempt: str, first: int, *, tags: bool) -> None:
        self._files = files
        self._path = folder / segment_file_name(first)
        self._attempt = attempt
        self._file: OpenFile = files.create(self._path.with_name(self._path.name + attempt), 0)
        self._first = first
        self._tags = tags
        self._marks: list[Mark] = []
        self._at = Mark(0, 0, 0, -1, first)

    def border(self, phy_offset: int) -> int:
        """Returns up to where records may be noted at once with one that begins at a place."""
        into = phy_offset - self._first
        return phy_offset - into % DEFAULT_SPLIT_BYTES + DEFAULT_SPLIT_BYTES

    def note(self, rows: Rows, keys: RecordKeys) -> None:
        """Takes the next records, all of which begin before the next border.

        Args:
            rows: ``(n,) ROW``, n > 0.
            keys: Their keys.
        """
        begin, last = int(rows["phy_offset"][0]), rows[-1]
        at = self._at
        if at.first >= 0 and begin >= self.border(at.first):
            at = self._mark()
        self._file.write_at(np.ascontiguousarray(rows).data.cast("B"), at.rows * ROW.itemsize)
        end = int(last["phy_offset"]) + int(last["size_bytes"])
        counts = at.rows + len(rows), at.keys + len(keys.rows), at.with_crc + keys.with_crc
        self._at = Mark(*counts, at.first if at.first >= 0 else begin, end)
        if self._at.rows - (self._marks[-1].rows if self._marks else 0) >= _GROUP_ROWS:
            self._mark()

    def save(self, names: Sequence[Key]) -> None:
        """Says that these are all records of the segment."""
        if self._at.first >= 0:
            self._mark()
        self._file.close()
        data = json.dumps({"names": names, "tags": self._tags, "marks": self._marks}).encode()
        for ending in ("", _MARKS):
            path = self._path.with_name(self._path.name + ending)
            attempt = path.with_name(path.name + self._attempt)
            if ending:
                self._files.write_file(attempt, data, sync=False)
            self._files.rename(attempt, path)

    def drop(self) -> None:
        """Leaves nothing: some record has more to it than rows and keys say."""
        self._file.close()
        self._files.remove(self._path.with_name(self._path.name + self._attempt))

    def _mark(self) -> Mark:
        self._marks.append(self._at)
        self._at = self._at._replace(first=-1)
        return self._at


@dataclass(frozen=True, slots=True)
class KnownRecords:
    """Where the records of a log are noted.

    Attributes:
        folder: Where rows and marks are, and the folder of the keys.
    """

    folder: Path

    def within(self, split: Split, segment_bytes: int, *, tags: bool) -> KnownStretch | None:
        """Returns what is known of the records that begin in a split; None if nothing.

        Args:
            split: The split.
            segment_bytes: Length of the segments.
            tags: Whether tags have to be among the keys.
        """
        files, name = StoreRoot(self.folder), segment_file_name(split.segment_end - segment_bytes)
        path = self.folder / f"{name}{_MARKS}"
        if not files.exists(path):
            return None
        fields = json.loads(read_all(files, path))
        marks = [Mark(0, 0, 0, -1, -1), *(Mark(*mark) for mark in fields["marks"])]
        inside = [at for at, mark in enumerate(marks) if split.start <= mark.first < split.end]
        names = [(topic, queue_id) for topic, queue_id in fields["names"]]
        if not inside or fields["tags"] is not tags or any(_NOT_TEXT in topic for topic, _queue in names):
            return None
        return KnownStretch(self.folder, name, names, marks[inside[0] - 1 : inside[-1] + 1])


@dataclass(frozen=True, slots=True)
class KnownStretch:
    """Known records that follow each other.

    Attributes:
        folder: As of :class:`KnownRecords`.
        name: That of their segment.
        names: Topic and number by the rows' ``queue``.
        marks: The mark before them, then theirs.
    """

    folder: Path
    name: str
    names: Sequence[Key]
    marks: Sequence[Mark]

    @property
    def start(self) -> int:
        """Where the first of them begins."""
        return self.marks[1].first

    @property
    def end(self) -> int:
        """Where the last of them ends."""
        return self.marks[-1].end

    def groups(self) -> Iterator[tuple[Rows, RecordKeys]]:
        """Yields them with their keys, group by group."""
        files = StoreRoot(self.folder)
        with (
            closing(files.open(self.folder / self.name, writable=False)) as of_rows,
            closing(files.open(self.folder / KNOWN_KEYS / self.name, writable=False)) as of_keys,
        ):
            for before, mark in pairwise(self.marks):
                rows = _part(of_rows, ROW, before.rows, mark.rows)
                keys = _part(of_keys, KEY_ROW, before.keys, mark.keys)
                yield rows, RecordKeys(keys, (), mark.with_crc - before.with_crc)

    def is_there(self, reader: LogReader) -> bool:
        """Returns whether the first and the last record of each group prove themselves in the log."""
        with closing(StoreRoot(self.folder).open(self.folder / self.name, writable=False)) as file:
            for before, mark in pairwise(self.marks):
                for number in (before.rows, mark.rows - 1):
                    (row,) = _part(file, ROW, number, number + 1)
                    place, size = int(row["phy_offset"]), int(row["size_bytes"])
                    found = examine(reader.read(place, size), 0, place)
                    if isinstance(found, Damage) or found.size_bytes != size:
                        return False
        return True


def known_within(
    known: KnownRecords | None, split: Split, segment_bytes: int, *, tags: bool
) -> KnownStretch | None:
    """Returns as :meth:`KnownRecords.within`; None if nothing is known at all."""
    return None if known is None else known.within(split, segment_bytes, tags=tags)


def _part(file: OpenFile, dtype: np.dtype[np.void], start: int, end: int) -> npt.NDArray[np.void]:
    found = np.empty(end - start, dtype)
    if len(found):
        file.read_into(found.data.cast("B"), start * dtype.itemsize)
    return found

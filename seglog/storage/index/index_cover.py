"""Which stretches of the log the key index answers for.

An index file answers for the records from the last one of the file before it to its own last one. Where a
file is missing, or cannot be read, the next one begins further on. A message is denied only for the stretches
that index files cover; the rest of the log is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from seglog.storage.directory.index_files import IndexFile

Stretch = tuple[int, int]
"""Start and end of a part of the log, physical offsets."""


def usable(files: Sequence[IndexFile]) -> list[IndexFile]:
    """Returns the files that have entries, in their order: the first entry of a file is never used."""
    return [file for file in files if file.header.index_count > 1]


def uncovered(files: Sequence[IndexFile], start: int, end: int) -> list[Stretch]:
    """Returns the stretches of the log that index files do not cover, in order.

    Each begins and ends with a record. The last record of a file may have further keys in the next file,
    which then begins with it.

    Args:
        files: The usable files, in order.
        start: Start of the log.
        end: End of the log.
    """
    begins = [*(file.header.begin_phy_offset for file in files), end]
    ends = [start, *(file.header.end_phy_offset for file in files)]
    found = [(reach, min(begin, end)) for reach, begin in zip(accumulate(ends, max), begins, strict=True)]
    return [(reach, stop) for reach, stop in found if reach < stop]

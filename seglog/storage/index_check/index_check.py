"""Holds the key index of a surveyed store against its log: entries, times, chains and headers.

``check`` does the same while it walks the log (:class:`~seglog.storage.index_check.key_check.KeyCheck` sees
the records of both), so what is said of an index does not depend on the command.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import Final

import numpy as np

from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.index_check.index_chains import chain_finding
from seglog.storage.index_check.index_coverage import IndexFacts, load_index
from seglog.storage.index_check.key_check import KeyCheck, KeyDiff
from seglog.storage.index_check.walk_findings import index_findings
from seglog.storage.kernels.index_keys import index_keys
from seglog.storage.kernels.walk import Rows
from seglog.storage.survey.store_survey import Survey

_WINDOW_BYTES: Final = 8 << 20
_WINDOW_RECORDS: Final = 1 << 14


def check_index(found: Survey, files: Files, *, is_live: bool = False) -> list[Finding]:
    """Returns what is wrong about the index.

    Args:
        found: The whole log.
        files: Where the store is.
        is_live: Whether a process writes to it now.
    """
    index = load_index(found, files, is_live=is_live)
    is_closed = found.mode == "normal" and not is_live
    chains = [chain_finding(files, outline.file, is_closed=is_closed) for outline in index.outlines]
    of_chains = [finding for finding in chains if finding is not None]
    log = found.min_phy_offset, found.max_phy_offset
    return index_findings(found, files, index, of_chains, compare_log(found, files, index), log)


def compare_log(found: Survey, files: Files, index: IndexFacts) -> KeyDiff:
    """Returns how an index differs from a log that was walked whole."""
    check = KeyCheck(index, files)
    edges = [max(0, found.min_phy_offset)]
    edges += [edge for hole in found.holes for edge in (hole.phy_offset, hole.end)] + [found.max_phy_offset]
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        for begin, stop in list(pairwise(edges))[::2]:
            check.begin(begin)
            first, last = np.searchsorted(found.rows["phy_offset"], (begin, stop)).tolist()
            for start, end in _windows(found.rows[first:last], found.geometry.segment_size_bytes):
                check.note(index_keys(reader.read(start, end - start), start, tags=check.tags), end)
            check.end(stop)
    return check.diff


def _windows(rows: Rows, segment_size_bytes: int) -> Iterator[tuple[int, int]]:
    """Yields where some records start and end that follow each other in one file, until all were."""
    for at in range(0, len(rows), _WINDOW_RECORDS):
        part = rows[at : at + _WINDOW_RECORDS]
        starts = part["phy_offset"]
        numbers = np.stack([starts // segment_size_bytes, starts // _WINDOW_BYTES])
        cuts = np.flatnonzero(np.diff(numbers).any(axis=0)) + 1
        for here in np.split(part, cuts):
            yield int(here["phy_offset"][0]), int(here["phy_offset"][-1]) + int(here["size_bytes"][-1])

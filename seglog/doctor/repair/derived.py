"""Data derived from the log, apart from the queues: the logs of compaction topics, and the key index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from seglog.clock import Clock
from seglog.doctor.plans.actions import Action
from seglog.storage.directory import LogReader, list_index_files
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.index import IndexGeometry
from seglog.storage.format.names import ABORT_FILE, INDEX
from seglog.storage.index_check import check_index
from seglog.storage.overlay import is_message
from seglog.storage.recovery import open_key_index
from seglog.storage.segments import MapPool
from seglog.storage.small_files import leave_to_rescan
from seglog.storage.survey import Survey
from seglog.storage.writes import CompactionWriter

_WRONG = frozenset(
    {"index-damaged", "index-missing", "index-due", "index-short", "index-entry-stray", "record-keys"}
)
"""If a record has keys that the index lacks, either may be wrong: the repair follows the log."""


class _Records:
    """Reads records through ``pread``."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        record = self._reader.read(phy_offset, size_bytes)
        return record if len(record) == size_bytes else None


def mend_compaction(found: Survey, files: Files) -> None:
    """Adds records to the logs of compaction topics that only the commit log has."""
    if not found.compaction:
        return
    with (
        closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader,
        closing(CompactionWriter(files, found.root, MapPool(), _Records(reader), None, {})) as writer,
    ):
        writer.open(found)
        writer.sync()


def mend_index(
    found: Survey, files: Files, clock: Clock, geometry: IndexGeometry | None, wrong: Sequence[Finding]
) -> Iterator[Action]:
    """Makes the key index agree with the log; yields the actions.

    Args:
        found: A survey of the store, whose log and queues are already repaired.
        files: Access to the store.
        clock: Gives new files their names.
        geometry: Division of index files; None if nothing shows it, which leaves them to RocketMQ.
        wrong: The findings of a comparison of index and log.
    """
    known, damaged = list_index_files(files, found.root)
    codes = sorted({finding.code for finding in wrong} & _WRONG)
    if not codes:
        return
    if geometry is None:
        for path in damaged:
            files.remove(path)
        detail = f"{', '.join(codes)}: {len(damaged)} files removed, only RocketMQ knows their division"
        yield Action("index", INDEX, detail=detail)
        return
    _catch_up(found, files, clock, geometry)
    how = "brought to the end of the log"
    if any(finding.code in _WRONG for finding in check_index(found, files)):
        known, damaged = list_index_files(files, found.root)
        for path in (*(file.path for file in known), *damaged):
            files.remove(path)
        _catch_up(found, files, clock, geometry)
        how = "rebuilt"
    yield Action("index", INDEX, detail=f"{', '.join(codes)}: {how}")


def rescan_action(found: Survey, files: Files, *, knows_queues: bool, was_due: bool) -> Action:
    """Leaves the store to RocketMQ's walk over the whole log; returns the action.

    Args:
        found: The survey.
        files: Access to the store.
        knows_queues: Whether the length of queue files is known.
        was_due: Whether it did so before this repair, too: the repair then saves nothing by it.
    """
    leave_to_rescan(files, found.root)
    if knows_queues:
        return Action("rescan", ABORT_FILE)
    detail = (
        "no queue file is left that shows their length: it makes them itself; or give"
        " mappedFileSizeConsumeQueue of broker.conf with --queue-file-bytes"
    )
    saved = 0 if was_due else sum(int(is_message(state.units).sum()) for state in found.queues.values())
    return Action("rescan", ABORT_FILE, detail=detail, saved=saved)


def _catch_up(found: Survey, files: Files, clock: Clock, geometry: IndexGeometry) -> None:
    index, _findings = open_key_index(
        files,
        found.root,
        MapPool(),
        clock,
        found,
        found.geometry.segment_size_bytes,
        lambda: (found.max_phy_offset, found.max_phy_offset),
        geometry,
    )
    with closing(index):
        index.catch_up()
        index.sync()

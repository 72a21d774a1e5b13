"""States what a check cannot detect, or did not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seglog.doctor.check.record_observer import Seen
from seglog.storage.audit import AuditReport
from seglog.storage.directory import RocksPart
from seglog.storage.small_files import LogOrigin
from seglog.text import moment


def blind_spots(
    report: AuditReport, seen: Seen, origin: LogOrigin | None, rocksdb: Sequence[RocksPart], *, is_live: bool
) -> Iterator[str]:
    """Yields a sentence for each limitation.

    Args:
        report: The facts about the files.
        seen: The facts about the records.
        origin: The start of a log that a compaction wrote, None for other logs.
        rocksdb: The parts of the store that are in RocksDB.
        is_live: Whether a process has the store open.
    """
    without = seen.records - seen.with_crc
    if without:
        yield (
            f"properties, times, hosts and flags of {without:,} of {seen.records:,} records: without record"
            " CRC only their bodies are covered by a checksum, and a flipped bit elsewhere may be unseen"
        )
    if is_live:
        yield "what came after the check began, and what the process that writes keeps in memory"
    if report.min_phy_offset > 0:
        yield _front(report.min_phy_offset, origin)
    if report.mode != "normal":
        yield "messages of the moment before the crash that reached neither log nor queue: they left no trace"
    if rocksdb:
        yield f"what RocketMQ keeps in RocksDB: {', '.join(part.text for part in rocksdb)}"
    yield "the contents of message bodies, and the meaning of values in config files"


def _front(min_phy_offset: int, origin: LogOrigin | None) -> str:
    """Returns the sentence for a log that does not begin at 0."""
    if origin is not None and origin.first_phy_offset == min_phy_offset:
        return (
            f"the {origin.dropped:,} messages that a compaction dropped at {moment(origin.made_ms)}: it wrote"
            f" the log anew from {min_phy_offset:,} on, with the {origin.kept:,} that it kept"
        )
    since = ""
    if origin is not None and origin.first_phy_offset < min_phy_offset:
        since = f" since a compaction began it at {origin.first_phy_offset:,}"
    return (
        f"what the log held before {min_phy_offset:,}{since}: whether retention took those files, or they"
        " were lost, cannot be told"
    )

"""What a check cannot tell, or did not look at, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from seglog.doctor.check.record_observer import Seen
from seglog.storage.audit import AuditReport


def blind_spots(report: AuditReport, seen: Seen, *, is_live: bool, has_rocksdb: bool) -> Iterator[str]:
    """Yields a sentence for each."""
    without = seen.records - seen.with_crc
    if without:
        yield (
            f"properties, times, hosts and flags of {without:,} of {seen.records:,} records: without record"
            " CRC only their bodies are covered by a checksum, and a flipped bit elsewhere may be unseen"
        )
    if is_live:
        yield "what came after the check began, and what the process that writes keeps in memory"
    if report.min_phy_offset > 0:
        yield (
            f"what the log held before {report.min_phy_offset:,}: whether retention took those files, or they"
            " were lost, cannot be told"
        )
    if report.mode != "normal":
        yield "messages of the moment before the crash that reached neither log nor queue: they left no trace"
    if has_rocksdb:
        yield "what RocketMQ keeps in RocksDB beside the files"
    yield "what bodies say, and what the values of config files mean to a broker"

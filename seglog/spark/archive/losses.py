"""Messages that the queues of a store have and the archive lacks: gaps of queue offsets, and the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from seglog.doctor.check import CheckReport
from seglog.errors import DataLossError
from seglog.spark.archive.folder import Held, Key, gaps_of
from seglog.spark.archive.manifest import EXPIRED, LOST, UNREADABLE, Interval, Missing
from seglog.spark.archive.store_facts import QueueEnds
from seglog.storage.findings import Finding, Severity

_NAMED_QUEUES: Final = 3


def missing_ranges(
    held: Held,
    named: Iterable[Missing],
    added: Sequence[Interval],
    before: Mapping[Key, QueueEnds],
    after: Mapping[Key, QueueEnds],
    *,
    is_log_cut: bool,
) -> Iterator[Missing]:
    """Yields ranges of queue offsets that a run did not find, and that no earlier run listed.

    Args:
        held: The messages that were archived before.
        named: The messages that were listed as missing before.
        added: The messages that the run found.
        before: The ends of the wanted queues before the run read: the run had to reach them.
        after: The ends of the queues after the run read: retention may have worked meanwhile.
        is_log_cut: Whether the log no longer begins at 0.
    """
    known: dict[Key, list[Interval | Missing]] = {key: list(parts) for key, parts in held.items()}
    named = list(named)
    of_old = held.keys() | {(one.topic, one.queue_id) for one in named}
    for lost in named:
        known.setdefault((lost.topic, lost.queue_id), []).append(lost)
    for interval in added:
        known.setdefault((interval.topic, interval.queue_id), []).append(interval)
    for key in sorted({*known, *before}):
        parts = sorted(known.get(key, []), key=lambda part: part.first)
        ends, now = before.get(key), after.get(key)
        starts = [part.first for part in parts]
        if key not in of_old and ends is not None and ends.first < ends.end:
            starts.append(ends.first)
        if not starts:
            continue
        stops = [part.end for part in parts] + ([ends.end] if ends else [])
        for first, end in gaps_of(parts, min(starts), max(stops)):
            is_in_front = not any(one.first < first for one in added if (one.topic, one.queue_id) == key)
            floor = now.first if now else end if is_log_cut and is_in_front else 0
            if first < min(end, floor):
                yield Missing(*key, first, min(end, floor), EXPIRED)
            if max(first, floor) < end:
                yield Missing(*key, max(first, floor), end, LOST)


def unreadable_stretches(report: CheckReport, named: Iterable[Missing]) -> list[Missing]:
    """Returns the stretches of the log that an audit could not read and that were not listed before."""
    known = {(one.phy_offset, one.phy_end) for one in named}
    holes = [(hole.phy_offset, hole.end) for hole in report.holes]
    return [Missing("", -1, -1, -1, UNREADABLE, *hole) for hole in holes if hole not in known]


def losses_of(report: CheckReport) -> list[Finding]:
    """Returns the findings of an audit that mean lost messages."""
    return [finding for finding in report.findings if finding.severity is Severity.LOSS]


def damage_of(report: CheckReport) -> list[Finding]:
    """Returns the findings of an audit about unreadable messages: lost, or restored by a repair."""
    repairable = [finding for finding in report.findings if finding.code == "record-repairable"]
    return losses_of(report) + repairable


def loss_error(report: CheckReport) -> DataLossError:
    """Returns the error for a damaged store, which names its damage."""
    first, *others = damage_of(report)
    where = f"{first.file} +{first.position_bytes}: " if first.file else ""
    codes = ", ".join(dict.fromkeys(finding.code for finding in (first, *others)))
    lost = [f"{count} of {topic}/{number}" for (topic, number), count in report.messages.lost_of.items()]
    named = f"; lost messages: {', '.join(lost[:_NAMED_QUEUES])}" if lost else ""
    more = f" and of {len(lost) - _NAMED_QUEUES} queues more" if len(lost) > _NAMED_QUEUES else ""
    return DataLossError(
        f"{report.root} is damaged: {where}{codes}{named}{more}",
        help="nothing was archived: repair it first (`seglog repair STORE`), or archive what is left with"
        " --allow-loss, which writes down what is missing",
    )

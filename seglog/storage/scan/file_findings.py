"""Findings about the files of a log and of queues: holes, ends, names, lengths."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from seglog.storage.directory import LogFile, StoreGeometry
from seglog.storage.directory.queue_files import QueueFiles, data_end
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format import names
from seglog.storage.format.record.record import Damage
from seglog.storage.overlay.lost_messages import LostMessages, tell_lost
from seglog.storage.scan.holes_file import LOST_END, KnownHole
from seglog.storage.walk.behind_damage import Hole

_UNCOUNTED_END: Final = "the end of the log was lost, and queues had no units to count what it held"
_UNCOUNTED_FILE: Final = "records that nothing counts were in the place of others"
_NOUNS: Final = {
    "body-crc": "body CRC {}",
    "lengths": "a record of {} bytes",
    "magic": "magic {}",
    "phy-offset": "physical offset {}",
    "record-crc": "record CRC {}",
    "short": "{} bytes",
    "size": "a size of {} bytes",
}
"""Nouns for the numbers of a damage, by its kind."""
_BARE: Final = re.compile(r"(?:0x[0-9a-f]+|[0-9]+)(?:(?:\.\.| or )(?:0x[0-9a-f]+|[0-9]+))?")


def _with_noun(kind: str, value: str) -> str:
    """Returns a value of a damage with its noun."""
    return _NOUNS.get(kind, "{}").format(value) if _BARE.fullmatch(value) else value


def log_findings(
    log_files: list[LogFile],
    geometry: StoreGeometry,
    holes: Sequence[Hole],
    tail: Damage | None,
    end_phy_offset: int,
    lost: Sequence[Sequence[LostMessages]] = (),
    open_at: Collection[int] = (),
) -> list[Finding]:
    """Returns the findings about a log that was walked to its end.

    Args:
        log_files: Its files.
        geometry: Their length.
        holes: Its holes.
        tail: The damage at its end.
        end_phy_offset: Its end.
        lost: The messages that were in each of the holes, if the caller has them.
        open_at: Physical offsets of the holes that may have held further messages.
    """
    segment = geometry.segment_size_bytes
    findings: list[Finding] = []
    for hole, messages in zip(holes, lost or [()] * len(holes), strict=True):
        code = "log-file-missing" if hole.why == "missing-file" else "log-hole"
        found = _with_noun(hole.why, hole.found)
        told = "; ".join(text for text in (found, tell_lost(messages)) if text)
        expected = _with_noun(hole.why, hole.expected)
        finding = _log_finding(code, hole.phy_offset, segment, hole.size_bytes, expected, told)
        count, is_open = sum(len(one.offsets) for one in messages), hole.phy_offset in open_at
        findings.append(replace(finding, messages=count, may_be_more=is_open))
    if tail is not None:
        words = (_with_noun(tail.kind, str(tail.expected)), _with_noun(tail.kind, str(tail.found)))
        findings.append(_log_finding("log-torn-tail", end_phy_offset, segment, 0, *words))
    for file in log_files:
        if file.size_bytes != segment and geometry.is_segment_known:
            findings.append(
                _log_finding(
                    "log-file-size", file.first_offset, segment, 0, str(segment), str(file.size_bytes)
                )
            )
        elif file.first_offset > end_phy_offset:
            findings.append(_log_finding("log-spare", file.first_offset, segment, 0, "", ""))
    return findings


def _log_finding(code: str, phy_offset: int, segment: int, size: int, expected: str, got: str) -> Finding:
    position = phy_offset % segment
    file = f"{names.COMMIT_LOG}/{names.segment_file_name(phy_offset - position)}"
    return Finding(code, file, position, size, expected, got)


def tombstone_findings(standing: Iterable[KnownHole], segment: int) -> list[Finding]:
    """Returns a note for each stretch that tombstones replace, and each place where the log had ended.

    Args:
        standing: The stretches, as earlier recoveries wrote them down.
        segment: Length of the log's files, in bytes.
    """
    findings: list[Finding] = []
    for known in standing:
        told = _UNCOUNTED_END if known.why == LOST_END else tell_lost(known.lost) or _UNCOUNTED_FILE
        finding = _log_finding("tombstones", known.phy_offset, segment, known.size_bytes, "", told)
        findings.append(replace(finding, messages=sum(len(one.offsets) for one in known.lost)))
    return findings


def queue_file_findings(queue: QueueFiles, file_size_bytes: int) -> list[Finding]:
    """Returns the findings about names and lengths of a queue's files."""
    wrong = [
        Finding(
            "queue-file-size",
            f"{queue.name}/{names.segment_file_name(first)}",
            expected=str(file_size_bytes),
            found=str(size),
        )
        for first, size in sorted(queue.sizes.items())
        if size != file_size_bytes
    ]
    return wrong + [Finding("queue-file-stray", f"{queue.name}/{name}") for name in queue.strays]


def empty_file_findings(
    files: Files, queue: QueueFiles, max_offset: int, *, is_closed: bool
) -> list[Finding]:
    """Returns a finding for each file of a plain queue that begins behind its last unit and holds none.

    It is a note for the file of the next unit in a store that was not closed.

    RocketMQ takes the first unit of its last file without a check (``ConsumeQueue.java
    truncateDirtyLogicFiles``), so a unit of zeros counts as a message.
    """
    findings: list[Finding] = []
    for first, size in sorted(queue.sizes.items()):
        if not size or first < max_offset * queue.layout.size_bytes:
            continue
        file = f"{queue.name}/{names.segment_file_name(first)}"
        try:
            handle = files.open(queue.directory / names.segment_file_name(first), writable=False)
        except FileNotFoundError:
            continue  # the store's owner deleted it after the listing, as retention does
        with closing(handle):
            if not data_end(handle, queue.layout.size_bytes):
                is_next = first < max_offset * queue.layout.size_bytes + size
                code = "queue-file-due" if is_next and not is_closed else "queue-file-empty"
                findings.append(Finding(code, file, 0, 0, "a unit", "zeros"))
    return findings

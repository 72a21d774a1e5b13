"""``seglog inspect segments``: the files of the commit log, one a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from seglog.cli.read.dump import HoleFound, iter_holes
from seglog.cli.read.reading import disk_bytes, survey_store
from seglog.cli.ui import options, render
from seglog.cli.ui.findings import show_findings
from seglog.errors import CorruptError
from seglog.storage.files import Files
from seglog.storage.findings import Finding, findings_fields
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.kernels.walk import Rows
from seglog.storage.seals import list_seals, read_seal
from seglog.storage.survey import Survey


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of the commit log.

    Attributes:
        size_bytes: Length of the file, -1 for a file that is missing between others.
        disk_bytes: Its bytes on the disk.
        used_bytes: Bytes up to the end of its last record.
        times_ms: Store times of its first and last record, None without records.
        state: ``full``, ``open`` (the next record is written here), ``spare`` or ``missing``.
        seal: ``sealed``, ``none``, ``unreadable``, or ``differs`` if it counts other records.
        holes: Stretches of it that cannot be read.
    """

    first_phy_offset: int
    size_bytes: int
    disk_bytes: int
    used_bytes: int
    records: int
    times_ms: tuple[int, int] | None
    state: str
    seal: str
    holes: tuple[HoleFound, ...]

    @property
    def file(self) -> str:
        """The file, relative to the store."""
        return f"{COMMIT_LOG}/{segment_file_name(self.first_phy_offset)}"


@click.command
@options.store
@click.option("--verify", is_flag=True, help="Compute the checksums of all records.")
@options.as_json
def command(*, path: Path, verify: bool, as_json: bool) -> None:
    """Show each file of the commit log of STORE: what is in it, since when, and how full it is.

    `sealed` says that there is a seal that counts the same records; `seglog verify` compares the bytes.
    """
    found = survey_store(path, verify=verify)
    segments = look_at_segments(found)
    findings = [finding for finding in found.findings if finding.file.startswith(f"{COMMIT_LOG}/")]
    if as_json:
        for segment in segments:
            render.emit(_fields(segment))
        for fields in findings_fields(findings, found.findings):
            render.emit({"kind": "finding", **fields})
    else:
        _show(segments, findings, found)


def look_at_segments(found: Survey) -> list[Segment]:
    """Returns every file of the log, and every file that is missing between two others."""
    length = found.geometry.segment_size_bytes
    sizes = {file.first_offset: file.size_bytes for file in found.log_files}
    holes: dict[str, list[HoleFound]] = {}
    for hole in iter_holes(found):
        holes.setdefault(hole.file, []).append(hole)
    missing = {
        int(name.removeprefix(f"{COMMIT_LOG}/"))
        for name, inside in holes.items()
        if any(hole.size_bytes == length for hole in inside)
    }
    files = options.reading(found.root)
    seals = set(list_seals(files, found.root))
    segments: list[Segment] = []
    for first in sorted({*sizes, *missing}):
        name = f"{COMMIT_LOG}/{segment_file_name(first)}"
        low, high = np.searchsorted(found.rows["phy_offset"], (first, first + length)).tolist()
        rows = found.rows[low:high]
        used = int(rows["phy_offset"][-1]) + int(rows["size_bytes"][-1]) - first if len(rows) else 0
        times = rows["store_timestamp_ms"]
        segments.append(
            Segment(
                first,
                sizes.get(first, -1),
                disk_bytes(files, found.root / name) if first in sizes else 0,
                used,
                len(rows),
                (int(times[0]), int(times[-1])) if len(rows) else None,
                _state(found, first) if first in sizes else "missing",
                _seal(files, found, first, rows) if first in seals else "none",
                tuple(holes.get(name, ())),
            )
        )
    return segments


def _state(found: Survey, first: int) -> str:
    end = found.max_phy_offset
    if first + found.geometry.segment_size_bytes <= end:
        return "full"
    return "open" if first <= end else "spare"


def _seal(files: Files, found: Survey, first: int, rows: Rows) -> str:
    try:
        seal = read_seal(files, found.root, first)
    except (CorruptError, FileNotFoundError):
        return "unreadable"
    return "sealed" if seal.record_count == len(rows) else "differs"


def _fields(segment: Segment) -> dict[str, object]:
    first_ms, last_ms = segment.times_ms or (None, None)
    return {
        "kind": "segment",
        "file": segment.file,
        "firstOffset": segment.first_phy_offset,
        "size": None if segment.size_bytes < 0 else segment.size_bytes,
        "diskBytes": segment.disk_bytes,
        "usedBytes": segment.used_bytes,
        "records": segment.records,
        "firstStoreTimestamp": first_ms,
        "lastStoreTimestamp": last_ms,
        "state": segment.state,
        "seal": segment.seal,
        "holes": [
            {"pos": hole.position_bytes, "size": hole.size_bytes, "why": hole.why} for hole in segment.holes
        ],
    }


def _show(segments: Sequence[Segment], findings: Sequence[Finding], found: Survey) -> None:
    columns = ("first offset", "size", "used", "records", "first stored", "last stored", "state", "seal")
    render.table((*columns, "holes"), [_cells(segment) for segment in segments], numbers=columns[:4])
    records = sum(segment.records for segment in segments)
    render.say(f"{render.count_text(len(segments), 'file')}, {render.count_text(records, 'record')}")
    if findings:
        render.say()
        show_findings(findings, found.root, found.findings)


def _cells(segment: Segment) -> tuple[str, ...]:
    times = [render.time_text(moment) for moment in segment.times_ms or ()] or ["-", "-"]
    holes = sum(hole.size_bytes for hole in segment.holes)
    return (
        str(segment.first_phy_offset),
        "-" if segment.size_bytes < 0 else render.size_text(segment.size_bytes),
        render.size_text(segment.used_bytes),
        render.count_text(segment.records),
        *times,
        segment.state,
        segment.seal,
        f"{len(segment.holes)}, {render.size_text(holes)}" if segment.holes else "-",
    )

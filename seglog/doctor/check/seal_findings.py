"""Compares a log whose blocks were summed split by split with its seals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seglog.doctor.check.log_walk import SplitOutcome
from seglog.errors import CorruptError
from seglog.storage.audit import AuditPlan
from seglog.storage.directory import LogFile, LogReader
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.ours import Seal
from seglog.storage.format.record import FILLER, FILLER_BYTES, Damage, examine
from seglog.storage.seals import BlockCheck, Concerned, judge, list_seals, read_seal, seal_file, segment_path


@dataclass(frozen=True, slots=True)
class Seals:
    """The seals of a store.

    Attributes:
        present: Seals of segments that exist, by their first offset.
        absent: Seals of segments that do not exist.
        findings: Findings on files that are not valid seals.
    """

    present: dict[int, Seal]
    absent: list[Seal]
    findings: list[Finding]


def load_seals(files: Files, root: Path, log_files: Sequence[LogFile], segment: int) -> Seals:
    """Returns the seals of a store.

    Args:
        files: Access to the files.
        root: The store directory.
        log_files: The files of its log.
        segment: Length of a segment, in bytes.
    """
    listed = {file.first_offset for file in log_files}
    seals = Seals({}, [], [])
    for first in list_seals(files, root):
        try:
            seal = read_seal(files, root, first)
            if seal.segment_bytes != segment:
                raise CorruptError("seal-lengths", expected=segment, found=seal.segment_bytes)
        except CorruptError as error:
            words = (f"{error.kind} {error.expected}", str(error.found))
            seals.findings.append(
                Finding("seal-unreadable", seal_file(first), error.position_bytes, 0, *words)
            )
            continue
        if first in listed:
            seals.present[first] = seal
        else:
            seals.absent.append(seal)
    return seals


def seal_findings(
    plan: AuditPlan, seals: Seals, outcomes: Iterable[SplitOutcome], files: Files, newest_ms: int
) -> tuple[list[Finding], list[Concerned]]:
    """Returns the differences from the seals, and the messages in such places.

    Args:
        plan: The store.
        seals: Its seals.
        outcomes: The outcomes of all splits.
        files: Access to the files.
        newest_ms: Latest store time of all records.
    """
    findings, concerned = list(seals.findings), list[Concerned]()
    segment = plan.geometry.segment_size_bytes
    sums: defaultdict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    for outcome in outcomes:
        split = plan.splits[outcome.split]
        sums[split.segment_end - segment].append((split.start, outcome.sums))
    with closing(LogReader(files, plan.root, segment)) as reader:
        for first, seal in seals.present.items():
            found = [value for _start, part in sorted(sums[first]) for value in part]
            check = BlockCheck(seal, np.array(found, np.int64))
            if len(found) != len(seal.blocks) or not check.wrong.any():
                continue
            if not files.exists(plan.root / segment_path(first)):  # retention removed it during the check
                continue
            verdict = judge(files, plan.root, check, first_store_ms(reader, first + segment))
            findings += verdict.findings
            concerned += verdict.concerned
        if seals.present or seals.absent:
            findings += _unsealed(plan, seals, reader)
    return findings + _absent(plan, seals, newest_ms), concerned


def first_store_ms(reader: LogReader, first_phy_offset: int) -> int | None:
    """Returns the store time of the first record of a segment, None if it has no record."""
    head = reader.read(first_phy_offset, FILLER_BYTES)
    size = FILLER.struct.unpack(head)[0] if len(head) == FILLER_BYTES else 0
    row = examine(reader.read(first_phy_offset, max(0, size)), 0, first_phy_offset)
    return None if isinstance(row, Damage) else row.store_timestamp_ms


def _unsealed(plan: AuditPlan, seals: Seals, reader: LogReader) -> list[Finding]:
    segment = plan.geometry.segment_size_bytes
    return [
        Finding("seal-missing", segment_path(file.first_offset))
        for file in plan.log_files
        if file.first_offset not in seals.present
        and not any(Path(finding.file) == Path(seal_file(file.first_offset)) for finding in seals.findings)
        # A file of zeros may follow the last segment: RocketMQ allocates one ahead.
        and first_store_ms(reader, file.first_offset + segment) is not None
    ]


def _absent(plan: AuditPlan, seals: Seals, newest_ms: int) -> list[Finding]:
    """Returns findings on sealed segments after the last file; those before the log's start are expired."""
    last = plan.log_files[-1].first_offset if plan.log_files else -1
    findings: list[Finding] = []
    for seal in seals.absent:
        if seal.first_phy_offset < last:
            continue
        # Records before it are newer than the seal: the log was cut before it and continued.
        code = "seal-stale" if newest_ms >= seal.created_ms else "log-file-missing"
        file = segment_path(seal.first_phy_offset)
        findings.append(Finding(code, file, 0, seal.segment_bytes, messages=seal.record_count))
    return findings

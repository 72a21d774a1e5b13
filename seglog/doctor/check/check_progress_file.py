"""The progress file of a check that was stopped: one line for each split that was walked.

The file is outside of the store. A line is valid only while the files that the split was compared with are
unchanged (:mod:`seglog.doctor.check.check_progress_stamps`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, BinaryIO, Final

from seglog.doctor.check.check_progress_stamps import ResumeStamps
from seglog.doctor.check.log_walk import SplitOutcome
from seglog.doctor.check.record_observer import Seen
from seglog.errors import CorruptError, InvalidArgumentError
from seglog.storage.audit import AuditPlan
from seglog.storage.files import StoreRoot, open_outside
from seglog.storage.format.config import decode_json_line
from seglog.storage.format.record import Damage
from seglog.storage.index_check import KeyDiff, Places
from seglog.storage.small_files import open_regular
from seglog.storage.splits import BatchRun, Interval, QueueEnd, Stretch, UnitState
from seglog.storage.walk import Head, Stopped

MAX_RESUME_BYTES: Final = 1 << 30
"""Largest file that a check resumes from; a file holds some KiB for each 128 MiB of the log."""

_MAX_HEADER_BYTES: Final = 16 << 20
_MAX_LINE_BYTES: Final = 256 << 20
_HELP: Final = "start again without --resume"
_VERSION: Final = 3
_Json = Any  # the result of json.loads: every field is rebuilt from it, and a wrong shape is refused


def default_resume_file(root: Path) -> Path:
    """Returns the default place of the resume file of a store, in the user's state folder."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    digest = hashlib.sha256(str(root.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return base / "seglog" / "check" / f"{root.absolute().name}-{digest}.jsonl"


class ResumeFile:
    """A resume file that a check writes.

    Args:
        path: The file.
        plan: The store.
        stamps: Stamps of the files that the splits are compared with.
    """

    def __init__(self, path: Path, plan: AuditPlan, stamps: ResumeStamps) -> None:
        self.path = path
        self._plan = plan
        self._stamps = stamps
        self._file: BinaryIO | None = None

    def begin(self, files: StoreRoot) -> None:
        """Creates the file, outside of the store of ``files``; replaces an old one.

        Raises:
            InvalidArgumentError: The file would be inside the store.
            OSError: The file cannot be written.
        """
        self._file = open_outside(files, self.path)
        self._write(_header(self._plan))

    def add(self, outcome: SplitOutcome) -> None:
        """Appends the outcome of a split."""
        split = self._plan.splits[outcome.split]
        self._write([split.start, split.end, self._stamps.of(outcome), _fields(outcome)])

    def remove(self) -> None:
        """Removes the file, because the check is complete."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the file; the outcomes in it are kept."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, value: object) -> None:
        if self._file is not None:
            self._file.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
            self._file.flush()


def load_outcomes(path: Path, plan: AuditPlan, stamps: ResumeStamps) -> list[SplitOutcome]:
    """Returns the outcomes of an earlier check that are still valid.

    Args:
        path: The resume file.
        plan: The store as it is now.
        stamps: The stamps of the splits as they are now.

    Raises:
        InvalidArgumentError: The file is no resume file, or belongs to another store or another kind of
            check.
    """
    try:
        with open_regular(path, MAX_RESUME_BYTES, advice=_HELP) as file:
            return _read_outcomes(file, path, plan, stamps)
    except FileNotFoundError as error:
        raise InvalidArgumentError(
            f"there is no resume file {path}", help="a check that was stopped says where it left one"
        ) from error


def _read_outcomes(file: BinaryIO, path: Path, plan: AuditPlan, stamps: ResumeStamps) -> list[SplitOutcome]:
    first = file.readline(_MAX_HEADER_BYTES)
    try:
        header = decode_json_line(first) if first else None
    except (ValueError, CorruptError) as error:
        raise InvalidArgumentError(f"{path} is no resume file: {error}") from error
    if header != json.loads(json.dumps(_header(plan))):
        raise InvalidArgumentError(
            f"{path} is not the resume file of a check of this store",
            help=_HELP,
        )
    found: dict[int, SplitOutcome] = {}
    numbers = {(split.start, split.end): split for split in plan.splits}
    while line := file.readline(_MAX_LINE_BYTES):
        try:
            start, end, stamp, fields = decode_json_line(line)
            split = numbers.get((start, end))
            outcome = None if split is None else _outcome(split.number, fields)
            if outcome is not None and stamp == stamps.of(outcome):
                found[outcome.split] = outcome
        except (ValueError, TypeError, LookupError, ArithmeticError, CorruptError):
            continue  # a process that was killed may leave half a line at the end
    return [found[number] for number in sorted(found)]


def _header(plan: AuditPlan) -> dict[str, object]:
    return {
        "seglogCheck": _VERSION,
        "store": str(plan.root),
        "segmentBytes": plan.geometry.segment_size_bytes,
        "queueFileBytes": plan.geometry.queue_file_size_bytes,
        "verify": plan.verify,
        "batchTopics": sorted(plan.batch_topics),
    }


def _fields(outcome: SplitOutcome) -> list[object]:
    stretches = [
        [
            stretch.start,
            stretch.end,
            int(stretch.stopped),
            stretch.damage and [stretch.damage.kind, str(stretch.damage.expected), str(stretch.damage.found)],
            stretch.records,
            stretch.size_bytes,
            stretch.head and astuple(stretch.head),
            stretch.last_store_timestamp_ms,
            stretch.max_store_timestamp_ms,
            [astuple(interval) for interval in stretch.intervals],
            [[*astuple(run)[:-1], run.units.hex()] for run in stretch.batch_runs],
            [astuple(end) for end in stretch.queue_ends],
            stretch.inner_topics,
        ]
        for stretch in outcome.stretches
    ]
    return [outcome.sums, stretches, [astuple(seen) for seen in outcome.seen]]


def _outcome(number: int, fields: _Json) -> SplitOutcome:
    sums, stretches, seen = fields
    return SplitOutcome(
        number,
        tuple(map(int, sums)),
        tuple(_stretch(number, stretch) for stretch in stretches),
        tuple(_seen(one) for one in seen),
    )


def _stretch(number: int, fields: Sequence[_Json]) -> Stretch:
    start, end, stopped, damage, records, size, head, last, latest, intervals, runs, ends, inner = fields
    return Stretch(
        number,
        start,
        end,
        Stopped(stopped),
        damage and Damage(*damage),
        records,
        size,
        head and Head(*head),
        last,
        latest,
        tuple(Interval(*[*one[:2], UnitState(one[2]), *one[3:]]) for one in intervals),
        tuple(BatchRun(*[*one[:-1], bytes.fromhex(one[-1])]) for one in runs),
        tuple(QueueEnd(*one) for one in ends),
        tuple(inner),
    )


def _seen(fields: Sequence[_Json]) -> Seen:
    records, with_crc, placeholders, minutes, (keys, changed, absent, stray, late) = fields
    diff = KeyDiff(keys, tuple(changed), Places(*absent), Places(*stray), Places(*late))
    of_minutes = tuple((one[0], one[1], one[2]) for one in minutes)
    return Seen(records, with_crc, placeholders, of_minutes, diff)

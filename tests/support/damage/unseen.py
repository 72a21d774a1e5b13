"""Why a check has nothing to say of a damage: the exact rules, each about the bytes that changed.

A damage that no rule explains should have been seen. The rules look at the undamaged store, so none of them
can be talked into anything by the damage. Only :data:`NO_CHECKSUM`, :data:`COPIES` and :data:`VALUES` may
cost what is served.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.broker_conf import LENGTHS_FILE
from seglog.storage.files.files import RealFiles
from seglog.storage.format.checkpoint import CHECKPOINT, CHECKPOINT_FILE_BYTES
from seglog.storage.format.index.index import INDEX_ENTRY, decode_index_header
from seglog.storage.format.names import (
    ABORT_FILE,
    CHECKPOINT_FILE,
    COMMIT_LOG,
    CONFIG,
    CONSUME_QUEUE,
    INDEX,
    OURS,
    SCHEDULE_TOPIC,
)
from seglog.storage.format.queue.compaction import COMPACTION, COMPACTION_QUEUE, POSITION_FILE
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.format.record.properties import CRC_NAME, CRC_PROPERTY_BYTES
from seglog.storage.format.record.record import FILLER_BYTES, Damage, RecordRow, examine
from seglog.storage.format.timer.timer import (
    DEFAULT_PRECISION_MS,
    TIMER_SLOT,
    TIMER_UNIT_BYTES,
    occupied_slots,
    read_timer_log,
    view_timer_slots,
)
from seglog.storage.format.timer.timer_checkpoint import decode_timer_checkpoint
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.survey.store_survey import Survey, survey
from tests.support.damage.campaign import Subject
from tests.support.damage.unproven import is_json

IDLE: Final = "bytes that no reader uses"
NO_CHECKSUM: Final = "record bytes without checksum"
VALUES: Final = "values of a table"
COPIES: Final = "compaction copies, their bodies apart"
EARLIER: Final = "a recovery that starts earlier"
DUE: Final = "due times of delayed messages"
FRONT: Final = "the front of the log, as retention takes it"

_LEFT_BY_ROCKETMQ: Final = (f"{ABORT_FILE}.bak", f"{CHECKPOINT_FILE}.bak", "timerwheel.bak")
_Places = npt.NDArray[np.int64]


def why_unseen(subject: Subject, damaged: Path) -> str:
    """Returns why a check cannot distinguish a damaged store from the undamaged one; empty if it should."""
    reasons = {
        _why(subject, name, _content(subject.root / name), _content(damaged / name))
        for name in sorted(_files(subject.root) | _files(damaged))
        if _content(subject.root / name) != _content(damaged / name)
    }
    return "" if "" in reasons else "; ".join(sorted(reasons))


def _files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _why(subject: Subject, name: str, was: bytes | None, now: bytes | None) -> str:
    part = name.partition("/")[0]
    if part == ABORT_FILE:
        return EARLIER if now is None else IDLE  # the file counts, not what is in it
    if was is None and part == OURS:
        return IDLE
    if was is None:
        return IDLE if name in _LEFT_BY_ROCKETMQ or _is_backup(part, name, now or b"") else ""
    if part == CONFIG or name.startswith(f"{COMPACTION}/{POSITION_FILE}"):
        return VALUES if now is None or is_json(now) else ""
    if name == LENGTHS_FILE and now is None:
        return IDLE  # a store of RocketMQ's has none
    if not now:
        logs = (each for each in _files(subject.root) if each.startswith(part))
        return FRONT if part == COMMIT_LOG and name == min(logs) else ""
    if len(was) != len(now):
        return ""
    places = np.flatnonzero(np.frombuffer(was, np.uint8) != np.frombuffer(now, np.uint8))
    rules = {
        CHECKPOINT_FILE: lambda: _of_checkpoint(was, now),
        COMMIT_LOG: lambda: _of_log(subject, name, was, places),
        CONSUME_QUEUE: lambda: _of_queue(name, was, now, places),
        COMPACTION: lambda: _of_copies(name, was, places),
        INDEX: lambda: _of_index(subject, was, places),
        "timerlog": lambda: _of_timer_log(subject, was, places),
        "timerwheel": lambda: _of_wheel(subject, was, places),
    }
    return rules[part]() if part in rules else ""


def _is_backup(part: str, name: str, now: bytes) -> bool:
    """Returns whether a new file is one that RocketMQ reads only where the table beside it is gone."""
    return part in (CONFIG, COMPACTION) and name.endswith(".bak") and (not now or is_json(now))


def _of_checkpoint(was: bytes, now: bytes) -> str:
    assert len(was) == CHECKPOINT_FILE_BYTES
    before, after = (CHECKPOINT.struct.unpack_from(content) for content in (was, now))
    if before == after:
        return IDLE
    return EARLIER if all(0 <= new <= old for old, new in zip(before, after, strict=True)) else ""


def _of_log(subject: Subject, name: str, was: bytes, places: _Places) -> str:
    found: Survey = survey(subject.root, RealFiles())
    first = int(name.rpartition("/")[2])
    rows = found.rows[(found.rows["phy_offset"] >= first) & (found.rows["phy_offset"] < first + len(was))]
    end = int(rows["phy_offset"][-1] + rows["size_bytes"][-1]) - first if len(rows) else 0
    reasons = set()
    for place in places.tolist():
        if place >= end:
            is_full = first + len(was) <= found.max_phy_offset
            reasons.add(IDLE if is_full and place >= end + FILLER_BYTES else "")
            continue
        at = int(np.searchsorted(rows["phy_offset"], first + place, side="right")) - 1
        start = int(rows["phy_offset"][at]) - first
        record = was[start : start + int(rows["size_bytes"][at])]
        row = examine(memoryview(record), 0, first + start)
        assert isinstance(row, RecordRow)
        is_covered = record[-CRC_PROPERTY_BYTES:].startswith(CRC_NAME)
        in_body = row.body_at <= place - start < row.body_at + row.body_bytes
        reasons.add("" if is_covered or in_body else NO_CHECKSUM)
    return "" if "" in reasons else "; ".join(sorted(reasons))


def _fired_until_ms(subject: Subject) -> int:
    """Returns the time up to which the timer has read its wheel; a later slot waits."""
    return decode_timer_checkpoint((subject.root / CONFIG / "timercheck").read_bytes()).last_read_timestamp_ms


def _of_timer_log(subject: Subject, was: bytes, places: _Places) -> str:
    """Units that the timer is done with."""
    log = read_timer_log(was)
    times = log.units["write_timestamp_ms"].astype(np.int64) + log.units["delay_ms"]
    units = np.unique(places // TIMER_UNIT_BYTES)
    return IDLE if (times[units[units < len(times)]] < _fired_until_ms(subject)).all() else ""


def _of_wheel(subject: Subject, was: bytes, places: _Places) -> str:
    """Slots that stand for no time, or for one that is over."""
    slots = view_timer_slots(was)
    waiting = occupied_slots(slots)
    waiting = waiting[
        slots["slot_time"][waiting].astype(np.int64) * DEFAULT_PRECISION_MS >= _fired_until_ms(subject)
    ]
    return "" if np.isin(places // TIMER_SLOT.size_bytes, waiting).any() else IDLE


def _of_copies(name: str, was: bytes, places: _Places) -> str:
    """All that is not within the body of a record: the checksum of a copy was made for another place."""
    if COMPACTION_QUEUE in name:
        return COPIES
    at, first = 0, int(name.rpartition("/")[2])
    while not isinstance(row := examine(memoryview(was), at, first + at, verify=False), Damage):
        start = at + row.body_at
        if ((places >= start) & (places < start + row.body_bytes)).any():
            return ""
        at += row.size_bytes
    return COPIES


def _of_queue(name: str, was: bytes, now: bytes, places: _Places) -> str:
    """After its units, though not at once: readers stop at the first that has no place and size.

    In a delay queue a unit has the time at which its message is due, which no record holds; RocketMQ delivers
    at once what says that it is due later than its level can ask for.
    """
    before, after = (is_message(np.frombuffer(content, CQ_UNIT.dtype)) for content in (was, now))
    units = places // CQ_UNIT.size_bytes
    end = int(np.flatnonzero(before).max(initial=-1)) + 1
    if units.min() >= end and not after[end : end + 1].any():
        return IDLE
    in_tags_code = places % CQ_UNIT.size_bytes >= CQ_UNIT.offsets["tags_code"]
    return DUE if f"/{SCHEDULE_TOPIC}/" in name and in_tags_code.all() else ""


def _of_index(subject: Subject, was: bytes, places: _Places) -> str:
    """Entry 0, which stands for none, and those that are not used yet."""
    geometry = subject.sizes.index
    assert geometry is not None
    used = decode_index_header(was).index_count
    entries = (places - geometry.entries_at) // INDEX_ENTRY.size_bytes
    is_idle = (places >= geometry.entries_at) & ((entries == 0) | (entries >= used))
    return IDLE if is_idle.all() else ""

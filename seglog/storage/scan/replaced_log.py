"""Looks for files of the log that were replaced by those of another store, and names what was there.

A survey and an audit call this with the right content of the queues. It reads the files of the queues that
disagree with the log; if their units lead into the log, to records that are not there, it reads those of all
queues, one after the other. :mod:`seglog.storage.overlay.replaced_files` has the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.directory import LogReader
from seglog.storage.directory.log_facts import MOST_RECORD_BYTES
from seglog.storage.directory.queue_files import QueueFiles, queue_directory, read_units_left
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import (
    BATCH_CONSUME_QUEUE,
    COMMIT_LOG,
    LMQ_PREFIX,
    segment_file_name,
)
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES, batch_in_use
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES, Units
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.record import FILLER_BYTES, MIN_RECORD_BYTES
from seglog.storage.format.record.tombstone import LostRecord, full_tombstone_bytes
from seglog.storage.overlay import BatchQueueState, QueueState, is_message
from seglog.storage.overlay.queue_gaps import QueueGap, gap_finding
from seglog.storage.overlay.replaced_files import CLAIM, Claims, ReplacedFile, ReplacedFiles
from seglog.storage.scan.holes_file import OTHERS, load_holes
from seglog.storage.scan.listed import ListedStore
from seglog.storage.scan.message_counts import is_back
from seglog.storage.scan.queue_overlays import Key, Overlays
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.log_records import record_at

CODE: Final = "log-file-foreign"
_MARKS: Final = 256
"""Places that are tried for one at which no record begins now."""


@dataclass(frozen=True, slots=True)
class ReplacedLog:
    """The files of a log that were replaced.

    Attributes:
        findings: One for each of these files.
        marks: For each of them a stretch of the log in which there were messages that nothing counts. At its
            start no record begins now, if there is such a place: a record there shows that the file is back.
        foreign: Queues of another store: most of their units that lead into the log, but not into such a
            file, lead to no record of the queue.
        closing: Records after the end of the log, one for each queue whose last messages were in such a
            file: their tombstones keep the queue offsets from being given again.
    """

    findings: list[Finding]
    marks: list[range]
    foreign: frozenset[Key] = frozenset()
    closing: list[LostRecord] = field(default_factory=list)


def find_replaced(
    store: ListedStore, queues: Overlays, holes: Sequence[Hole], end_phy_offset: int, files: Files
) -> ReplacedLog:
    """Finds the files of a log that were replaced, and adds what they held to the gaps of the queues.

    Args:
        store: The listing of the store.
        queues: Its queues.
        holes: The unreadable stretches of its log.
        end_phy_offset: End of its log.
        files: The file layer of the store.
    """
    segment = store.geometry.segment_size_bytes
    log = range(max(0, store.log_start(end_phy_offset)), end_phy_offset)
    states: list[QueueState | BatchQueueState] = [*queues.plain.values(), *queues.batch.values()]
    claims: list[Claims] = []
    right: dict[int, int] = {}
    for number, state in enumerate(states):
        queue = _files_of(store, state)
        if queue is not None and (not state.agrees or _has_front(queue, state)):
            of_queue, right[number] = _claims(store, files, queue, state, log, number)
            claims.append(of_queue[_outside_holes(of_queue, holes)])
    together = np.concatenate([np.empty(0, CLAIM), *claims])
    if len(together):
        together = together[~_is_back(store, files, together)]
    if not len(together):
        return ReplacedLog([], [])
    search = ReplacedFiles(together, segment)
    for number, state in enumerate(states):
        if not state.topic.startswith(LMQ_PREFIX):
            units = _right(store, files, state)
            search.look_at(number, units[_outside_holes(units, holes)])
    with closing(LogReader(files, store.root, segment)) as reader:
        odd = {first for first in search.files if _evidence(reader, first, segment)}
        found = [*search.found(_Owners(reader, states), odd)]
        for one in found:
            _add_gaps(store, states, one.counted)
        left = ~np.isin(together["phy_offset"] // segment, [one.phy_offset // segment for one in found])
        wrong = Counter(together["queue"][left].tolist())
        foreign = {number for number, count in wrong.items() if count > right[number]}
        return ReplacedLog(
            [_finding(reader, one, segment) for one in found],
            [range(_mark(reader, one), one.phy_offset + one.size_bytes) for one in found],
            frozenset((states[number].topic, states[number].queue_id) for number in foreign),
        )


def close_queues(
    queues: Overlays,
    end_phy_offset: int,
    segment_size_bytes: int,
    store_timestamp_ms: int,
    *,
    record_crc: bool,
) -> list[LostRecord]:
    """Returns the last lost message of each queue that ended in a replaced file, as records behind the log.

    A queue of further messages (LMQ) is closed by a record of another queue, if there is one.

    Args:
        queues: The queues, with their gaps.
        end_phy_offset: The first place for such a record.
        segment_size_bytes: Length of a log file.
        store_timestamp_ms: Store time of the tombstones.
        record_crc: Whether the tombstones get ``__CRC32#``.
    """
    states: list[QueueState | BatchQueueState] = [*queues.plain.values(), *queues.batch.values()]
    last = {
        (state.topic, state.queue_id): max(gap.offsets.stop for gap in state.gaps) - 1
        for state in states
        if state.gaps and max(gap.offsets.stop for gap in state.gaps) > state.max_offset
    }
    further = tuple((key[0], offset) for key, offset in last.items() if key[0].startswith(LMQ_PREFIX))
    closing: list[LostRecord] = []
    at = end_phy_offset
    for (topic, queue_id), offset in last.items():
        if topic.startswith(LMQ_PREFIX):
            continue
        one = LostRecord(topic, queue_id, offset, at, 0, further=() if closing else further)
        size = full_tombstone_bytes(one, store_timestamp_ms, record_crc=record_crc)
        if at % segment_size_bytes + size + FILLER_BYTES > segment_size_bytes:
            at += -at % segment_size_bytes
        closing.append(replace(one, phy_offset=at, size_bytes=size))
        at += size
    return closing


def _files_of(store: ListedStore, state: QueueState | BatchQueueState) -> QueueFiles | None:
    key: Key = (state.topic, state.queue_id)
    queue = (store.queue_files if isinstance(state, QueueState) else store.batch_files).get(key)
    return queue if queue is not None and queue.sizes else None


def _has_front(queue: QueueFiles, state: QueueState | BatchQueueState) -> bool:
    """Returns whether files of a queue have units before those that count, which no audit has looked at."""
    if isinstance(state, BatchQueueState) or state.held_from is not None or not len(state.units):
        return False
    return min(queue.sizes) < state.first_slot * CQ_UNIT_BYTES


def _stored(
    store: ListedStore, files: Files, queue: QueueFiles, state: QueueState | BatchQueueState
) -> tuple[int, Units]:
    """Returns the units of the files of a queue, and the number of the first."""
    geometry = store.geometry
    is_plain = isinstance(state, QueueState)
    size = geometry.queue_file_size_bytes if is_plain else geometry.batch_file_size_bytes
    return read_units_left(files, queue, size)


def _claims(
    store: ListedStore,
    files: Files,
    queue: QueueFiles,
    state: QueueState | BatchQueueState,
    log: range,
    number: int,
) -> tuple[Claims, int]:
    """Returns the units of a queue that lead into the log, but to no record of the queue.

    Returns:
        The units, and the number of those that are right.
    """
    first, stored = _stored(store, files, queue, state)
    is_claim = (stored["phy_offset"] >= log.start) & (stored["phy_offset"] < log.stop)
    is_claim &= stored["size_bytes"] >= MIN_RECORD_BYTES
    if isinstance(state, QueueState):
        is_claim &= is_message(stored)
        if state.held_from is not None:
            is_claim[: max(0, state.first_slot - first)] = False
        inside = np.flatnonzero(is_claim)
        is_right = _leads_as(state, first + inside, stored[inside])
        at, known = inside[~is_right], first + inside[is_right]
        claims = np.zeros(len(at), CLAIM)
        claims["offset"], claims["count"] = first + at, 1
        claims["is_further"] = state.topic.startswith(LMQ_PREFIX)
    else:
        is_claim &= batch_in_use(stored)
        inside = np.flatnonzero(is_claim)
        is_right = _among(stored[inside], state.units)
        at, known = inside[~is_right], stored["base_queue_offset"][inside[is_right]]
        claims = np.zeros(len(at), CLAIM)
        # A record of the same length, at the same place, that was stored at another time.
        claims["is_other"] = np.isin(stored["phy_offset"][at], state.units["phy_offset"])
        claims["offset"], claims["count"] = stored["base_queue_offset"][at], stored["batch_size"][at]
    claims["queue"], claims["index"] = number, first + at
    claims["phy_offset"], claims["size_bytes"] = stored["phy_offset"][at], stored["size_bytes"][at]
    claims["is_free"] = _is_free(claims, *_messages(state), known)
    return claims, len(inside) - len(at)


def _among(units: Units, others: Units) -> npt.NDArray[np.bool_]:
    """Returns which units of a batch queue are among others, by place and store time of the record."""
    order = np.argsort(others["phy_offset"], kind="stable")
    places = others["phy_offset"][order].astype(np.int64)
    if not len(places):
        return np.zeros(len(units), np.bool_)
    at = order[np.searchsorted(places, units["phy_offset"]).clip(max=len(places) - 1)]
    is_same = np.ones(len(units), np.bool_)
    for name in ("phy_offset", "size_bytes", "store_timestamp_ms"):
        is_same &= others[name][at] == units[name]
    return is_same


def _leads_as(state: QueueState, slots: npt.NDArray[np.int64], units: Units) -> npt.NDArray[np.bool_]:
    """Returns which units of the files of a queue are as they should be."""
    at = slots - state.first_slot
    is_inside = (at >= 0) & (at < len(state.units))
    right = np.zeros(len(slots), np.bool_)
    wanted, found = state.units[at[is_inside]], units[is_inside]
    right[is_inside] = (wanted["phy_offset"] == found["phy_offset"]) & (
        wanted["size_bytes"] == found["size_bytes"]
    )
    return right


def _messages(
    state: QueueState | BatchQueueState,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns queue offsets, numbers of messages and places of the records of a queue, by queue offset."""
    if isinstance(state, QueueState):
        at = np.flatnonzero(is_message(state.units))
        return (
            state.first_slot + at,
            np.ones(len(at), np.int64),
            state.units["phy_offset"][at].astype(np.int64),
        )
    units = np.sort(state.units, order="base_queue_offset")
    names = ("base_queue_offset", "batch_size", "phy_offset")
    offsets, counts, places = (units[name].astype(np.int64) for name in names)
    return offsets, counts, places


def _is_free(
    claims: Claims,
    offsets: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    known: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Returns which claims are of offsets without a message, at a place between those of the neighbours.

    Args:
        claims: The claims of one queue.
        offsets: ``(n,)``, queue offsets of the records of the queue, ascending.
        counts: ``(n,)``, their messages.
        places: ``(n,)``, their physical offsets.
        known: Queue offsets of those to which units of the queue lead: the others may be records of another
            store, which say nothing about the order of these.
    """
    if not len(offsets):
        return np.ones(len(claims), np.bool_)
    at = np.searchsorted(offsets, claims["offset"], "right")
    ends, starts = np.concatenate([[-1], offsets + counts]), np.append(offsets, np.iinfo(np.int64).max)
    fits = (ends[at] <= claims["offset"]) & (claims["offset"] + claims["count"] <= starts[at])
    is_known = np.isin(offsets, known)
    offsets, places = offsets[is_known], places[is_known]
    at = np.searchsorted(offsets, claims["offset"], "right")
    before, behind = np.concatenate([[-1], places]), np.append(places, np.iinfo(np.int64).max)
    is_free: npt.NDArray[np.bool_] = (
        fits & (before[at] < claims["phy_offset"]) & (claims["phy_offset"] < behind[at])
    )
    return is_free


def _outside_holes(units: Units | Claims, holes: Sequence[Hole]) -> npt.NDArray[np.bool_]:
    """Returns which units do not lead into a hole: what was there is reported with the hole."""
    ends = units["phy_offset"] + units["size_bytes"].astype(np.int64)
    is_left = np.ones(len(units), np.bool_)
    for hole in holes:
        is_left &= (units["phy_offset"] < hole.phy_offset) | (ends > hole.end)
    return is_left


def _is_back(store: ListedStore, files: Files, claims: Claims) -> npt.NDArray[np.bool_]:
    """Returns which claims are of files that were replaced once and are back: they are of the other store."""
    segment = store.geometry.segment_size_bytes
    with closing(LogReader(files, store.root, segment)) as reader:
        back = {
            hole.phy_offset // segment
            for hole in load_holes(files, store.root)
            if hole.why == OTHERS and hole.lost and is_back(reader, hole)
        }
    return np.isin(claims["phy_offset"] // segment, list(back))


def _right(store: ListedStore, files: Files, state: QueueState | BatchQueueState) -> Units:
    """Returns the units of a queue that its files have as the log says."""
    queue = _files_of(store, state)
    if state.agrees:
        units = state.units
        if queue is not None and isinstance(state, QueueState) and not len(units):
            # An audit does not hold the units of queues that are as they should be.
            first, stored = _stored(store, files, queue, state)
            units = stored[max(0, state.min_offset - first) : max(0, state.max_offset - first)]
        return units
    if queue is None:
        return state.units[:0]
    first, stored = _stored(store, files, queue, state)
    if isinstance(state, QueueState):
        known = stored[_leads_as(state, first + np.arange(len(stored)), stored)]
        return known[is_message(known)]
    return state.units[_among(state.units, stored[batch_in_use(stored)])]


class _Owners:
    """Names the queues of records.

    Args:
        reader: The log.
        states: The queues, by their numbers.
    """

    def __init__(self, reader: LogReader, states: Sequence[QueueState | BatchQueueState]) -> None:
        self._reader = reader
        self._numbers = {(state.topic, state.queue_id): number for number, state in enumerate(states)}

    def __call__(self, phy_offset: int, size_bytes: int) -> int | None:
        found = record_at(self._reader, phy_offset, verify=False, most_bytes=MOST_RECORD_BYTES)
        if found is None or found[1].size_bytes != size_bytes:
            return None
        row = found[1]
        return self._numbers.get((row.topic.decode("utf-8", "surrogateescape"), row.queue_id), -1)


def _add_gaps(store: ListedStore, states: Sequence[QueueState | BatchQueueState], counted: Claims) -> None:
    """Adds the messages of claims to the gaps of their queues, with a finding for each run of them."""
    geometry = store.geometry
    for number in np.unique(counted["queue"]).tolist():
        state, claims = states[number], counted[counted["queue"] == number]
        told = [gap.offsets for gap in state.gaps]
        is_new = np.ones(len(claims), np.bool_)
        for offsets in told:
            is_new &= (claims["offset"] < offsets.start) | (claims["offset"] >= offsets.stop)
        claims = claims[is_new]
        ends = claims["offset"] + claims["count"]
        cuts = np.flatnonzero(claims["offset"][1:] != ends[:-1]) + 1
        for run in np.split(claims, cuts) if len(claims) else ():
            start, end = int(run["phy_offset"][0]), int(run["phy_offset"][-1] + run["size_bytes"][-1])
            offsets = range(int(run["offset"][0]), int(run["offset"][-1] + run["count"][-1]))
            gap = QueueGap(offsets, start, end - start)
            state.gaps.append(gap)
            index, name = int(run["index"][0]), f"{state.topic}/{state.queue_id}"
            if isinstance(state, QueueState):
                _begin_at(state, offsets.start)
                folder = queue_directory(state.topic, state.queue_id)
                size, unit_bytes = geometry.queue_file_size_bytes, CQ_UNIT_BYTES
            else:
                folder = queue_directory(state.topic, state.queue_id, BATCH_CONSUME_QUEUE)
                size, unit_bytes = geometry.batch_file_size_bytes, BATCH_UNIT_BYTES
            finding = gap_finding(folder, name, gap, index, size, unit_bytes)
            state.findings.append(replace(finding, size_bytes=len(run) * unit_bytes))


def _begin_at(state: QueueState, slot: int) -> None:
    """Lets a queue begin with a lost message, which has no unit, so that no file keeps the unit it had."""
    if len(state.units) and slot < state.first_slot:
        left_out = np.zeros(state.first_slot - slot, state.units.dtype)
        state.units, state.first_slot = np.concatenate([left_out, state.units]), slot
        state.agrees = False


def _finding(reader: LogReader, found: ReplacedFile, segment: int) -> Finding:
    position = found.phy_offset % segment
    first = found.phy_offset - position
    evidence = _evidence(reader, first, segment)
    told = "records that no queue leads to" + (f", the first {evidence}" if evidence else "")
    expected = f"those of {found.messages} messages that queue units lead to"
    file = f"{COMMIT_LOG}/{segment_file_name(first)}"
    return Finding(CODE, file, position, found.size_bytes, expected, told, found.messages)


def _evidence(reader: LogReader, first: int, segment: int) -> str:
    """Returns what shows that a file is of another store: host and store time of its first record.

    Args:
        reader: The log.
        first: Physical offset of the file.
        segment: Length of a file.
    """
    own, before, behind = (_stored_by(reader, place) for place in (first, first - segment, first + segment))
    if own is None:
        return ""
    host, stored_ms = own
    told: list[str] = []
    hosts = {one[0] for one in (before, behind) if one is not None}
    if len(hosts) == 1 and host not in hosts:
        told.append(f"by {host}, and not by {hosts.pop()}")
    if before is not None and stored_ms < before[1]:
        told.append("before that of the file in front of it")
    if behind is not None and stored_ms > behind[1]:
        told.append("after that of the next file")
    return f"stored {', '.join(told)}" if told else ""


def _stored_by(reader: LogReader, phy_offset: int) -> tuple[str, int] | None:
    found = record_at(reader, phy_offset, most_bytes=MOST_RECORD_BYTES) if phy_offset >= 0 else None
    if found is None:
        return None
    message = decode_message(found[0])
    return str(message.store_host), message.store_timestamp_ms


def _mark(reader: LogReader, found: ReplacedFile) -> int:
    for place in found.places[:_MARKS].tolist():
        if record_at(reader, place, most_bytes=MOST_RECORD_BYTES) is None:
            return int(place)
    return found.phy_offset + 1  # within a record: the doubt stays

"""Mends records whose topic, queue, queue offset or flags are damaged.

No checksum covers topic, queue and queue offset of a record without ``__CRC32#``, so damage to them passes
every check. But a unit of its right queue still leads to the record, by place, size and queue offset. The
mend is certain if the right queue's own records on both sides agree with their units, the queue that the
record names has no unit for it, and the log shows the same without any queue file
(:mod:`seglog.storage.certain_mends.log_neighbours`): wrong queue files never change an undamaged record. The
number of bits that differ proves nothing then, and is not asked for. Flags that give a record no place in
the queue that it names are mended by the same proof. An impossible offset is mended if its
neighbours leave only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from seglog.storage.certain_mends.log_neighbours import neighbours
from seglog.storage.certain_mends.mend import BIT, HEAD, MAX_DOUBTED, Mend
from seglog.storage.certain_mends.seen_log import SeenLog
from seglog.storage.directory import LogReader, QueueFiles, read_units
from seglog.storage.files.files import Files
from seglog.storage.format.layout import I32, I64
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, Units
from seglog.storage.format.record.flipped_bit import bits_between
from seglog.storage.format.record.record import HEAD_V4, SYS_FLAG_AT, Damage, examine
from seglog.storage.format.record.sys_flag import with_place
from seglog.storage.kernels.walk import ROW, Rows, places
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.overlay.queue_overlay import QueueState
from seglog.storage.scan.queue_overlays import Key
from seglog.storage.walk.log_records import has_record_crc

_OTHERWISE: Final = frozenset({"queue-unit-wrong", "queue-unit-stray", "queue-beyond-log"})
_PROOF: Final = ", whose queue leads here"
_Mask = npt.NDArray[np.bool_]


class _Identity(NamedTuple):
    """Topic, queue and queue offset of a record."""

    topic: str
    queue_id: int
    queue_offset: int


class _Doubted(NamedTuple):
    """A record that names one queue while a unit of another queue leads to it.

    Attributes:
        place: Its physical offset.
        stated: The number of the queue that it names.
        right_queue: The number of the other queue.
        right: Its identity in the other queue.
    """

    place: int
    stated: int
    right_queue: int
    right: _Identity


class _Stored:
    """The units in the files of queues, read once."""

    def __init__(self, found: SeenLog, files: Files) -> None:
        self._found = found
        self._files = files
        self._units: dict[Key, tuple[int, Units]] = {}

    def units(self, topic: str, queue_id: int) -> tuple[int, Units]:
        """Returns the queue offset of the first unit, and all units; none for a queue without files."""
        key = (topic, queue_id)
        queue = self._found.queue_files.get(key)
        if key not in self._units:
            size_bytes = self._found.geometry.queue_file_size_bytes
            none = (0, np.empty(0, CQ_UNIT.dtype))
            self._units[key] = none if queue is None else read_units(self._files, queue, size_bytes)
        return self._units[key]

    def last_below(self, topic: str, queue_id: int) -> int | None:
        """Returns the queue offset of the last record of a queue before the rows of a survey.

        Units that lead there were checked by the checksums of a recovery point.

        Returns:
            -1 if the queue has none there, None if it is not known.
        """
        first, units = self.units(topic, queue_id)
        below = np.flatnonzero(is_message(units) & (units["phy_offset"] < self._found.walked_from))
        if len(below):
            return first + int(below[-1])
        return -1 if self._found.min_phy_offset == 0 else None

    def leads(self, stated: _Identity, unit: np.void) -> bool:
        """Returns whether the queue that a record names has a unit for it too."""
        first, units = self.units(stated.topic, stated.queue_id)
        at = stated.queue_offset - first
        return 0 <= at < len(units) and bool(units[at]["phy_offset"] == unit["phy_offset"])


def mends_of_identities(found: SeenLog, files: Files) -> Iterator[Mend]:
    """Yields the mends of topics, queues and offsets, in log order."""
    segment = found.geometry.segment_size_bytes
    # A record in a wrong queue has an offset of its right queue, which may be impossible in the wrong one.
    wanted = {**_by_neighbours(found), **_by_units(found, files)}
    if not wanted:
        return
    with closing(LogReader(files, found.root, segment)) as reader:
        for place, identity in sorted(wanted.items()):
            row = row_at(found.rows, place)
            if row is None or has_record_crc(reader, row):
                continue
            record = bytes(reader.read(place, int(row["size_bytes"])))
            right = _rewritten(record, place, identity)
            if right is None or right == record:
                continue
            kind = BIT if bits_between(record, right) == 1 else HEAD
            stated = _Identity(*found.numbers.names[int(row["queue"])], int(row["queue_offset"]))
            yield Mend(kind, place, record, right, *identity, _PROOF, _differing(stated, identity))


def _differing(stated: _Identity, right: _Identity) -> str:
    """Returns the names of the fields that differ."""
    fields = zip(("topic", "queue id", "queue offset"), stated, right, strict=True)
    return " and ".join(name for name, one, other in fields if one != other) or "flags"


def _by_neighbours(found: SeenLog) -> dict[int, _Identity]:
    """Returns the records with an impossible offset, with the possible one, by physical offset."""
    return {
        place: _Identity(topic, queue_id, slot)
        for (topic, queue_id), state in found.queues.items()
        if not topic.startswith(LMQ_PREFIX)
        for place, slot in state.mended.items()
    }


def _by_units(found: SeenLog, files: Files) -> dict[int, _Identity]:
    """Returns the records that units of one queue lead to and that name another queue, by physical offset."""
    doubtful = [
        key for key, queue in found.queue_files.items() if may_know_others(found.queues.get(key), queue)
    ]
    if not doubtful or not len(found.rows):
        return {}
    stored = _Stored(found, files)
    names = found.numbers.names
    doubted: list[_Doubted] = []
    for topic, queue_id in doubtful:
        first, units = stored.units(topic, queue_id)
        rows, leads = rows_led_to(found, units)
        number = found.numbers.find(topic.encode("utf-8", "surrogateescape"), queue_id)
        if number is None:
            continue  # the log has no record of this queue to compare with
        has_slot: _Mask = leads & (rows["queue_offset"] == first + np.arange(len(units)))
        is_own = has_slot & (rows["queue"] == number) & places(rows)
        # Units that lead below a recovery point were checked by its checksums.
        is_own |= is_message(units) & (units["phy_offset"] < found.walked_from)
        is_other = has_slot & ~is_own & are_between(is_own, units, found.max_phy_offset)
        for at in np.flatnonzero(is_other)[: MAX_DOUBTED + 1].tolist():
            stated = _Identity(*names[int(rows["queue"][at])], int(rows["queue_offset"][at]))
            right = _Identity(topic, queue_id, first + at)
            if stated == right or not stored.leads(stated, units[at]):
                doubted.append(_Doubted(int(rows["phy_offset"][at]), int(rows["queue"][at]), number, right))
    return _proven_by_log(found, stored, doubted) if 0 < len(doubted) <= MAX_DOUBTED else {}


def are_between(is_own: _Mask, units: Units, end_phy_offset: int) -> _Mask:
    """Returns which units have right units on both sides, if the queue has any there."""
    is_none = ~is_message(units) | (units["phy_offset"] >= end_phy_offset)
    before = np.append(False, is_own[:-1])
    after = np.append(is_own[1:], False)
    is_first, is_last = np.zeros_like(is_own), np.append(is_none[1:], True)
    is_first[:1] = True
    mask: _Mask = (before | is_first) & (after | is_last) & (before | after)
    return mask


def _proven_by_log(found: SeenLog, stored: _Stored, doubted: Sequence[_Doubted]) -> dict[int, _Identity]:
    """Returns the records for which the log itself shows that their queue or offset is wrong."""
    wanted = {(number, one.place) for one in doubted for number in (one.stated, one.right_queue)}
    around = neighbours(found.rows, wanted)
    for (number, _place), near in around.items():
        if near.before is None:
            near.before = stored.last_below(*found.numbers.names[number])
    proven: dict[int, _Identity] = {}
    for one in doubted:
        left, named = around[one.right_queue, one.place], around[one.stated, one.place]
        slot = one.right.queue_offset
        # It is in its right queue, but its flags give it no place there. RocketMQ writes offset 0 for those.
        is_flagged = one.stated == one.right_queue
        is_proven = slot > 0 if is_flagged else named.have_no_room_for(slot)
        if left.leave_out(slot) and (left.are_both_there or is_proven):
            proven[one.place] = one.right
    return proven


def may_know_others(state: QueueState | None, queue: QueueFiles) -> bool:
    """Returns whether the files of a queue have units that differ from the log.

    Only such units can lead to a record that names another queue; a queue that only lacks units has none.

    Args:
        state: The right content of the queue; None if it does not count as a queue.
        queue: Its files.
    """
    if queue.topic.startswith(LMQ_PREFIX) or not queue.sizes:
        return False
    if state is None or any(finding.code in _OTHERWISE for finding in state.findings):
        return True
    # The state of a queue that agrees with the log may be without its units.
    is_intact = state.agrees and not len(state.units)
    return not is_intact and min(queue.sizes) // CQ_UNIT_BYTES < state.file_slot


def row_at(rows: Rows, place: int) -> np.void | None:
    """Returns the row of the record at a physical offset, None if there is none."""
    at = int(np.searchsorted(rows["phy_offset"], place))
    return rows[at] if at < len(rows) and int(rows["phy_offset"][at]) == place else None


def rows_led_to(found: SeenLog, units: Units) -> tuple[npt.NDArray[np.void], _Mask]:
    """Returns for each unit a row of the log, and whether it is that of the record that the unit leads to."""
    starts = found.rows["phy_offset"]
    if not len(units) or not len(found.rows):
        return np.zeros(len(units), ROW), np.zeros(len(units), np.bool_)
    at = np.searchsorted(starts, units["phy_offset"]).clip(max=len(starts) - 1)
    rows = found.rows[at]
    leads: _Mask = is_message(units) & (rows["phy_offset"] == units["phy_offset"])
    return rows, leads & (rows["size_bytes"] == units["size_bytes"])


def _rewritten(record: bytes, place: int, wanted: _Identity) -> bytes | None:
    """Returns a record with another identity; None if the topic does not fit."""
    row = examine(memoryview(record), 0, place)
    topic = wanted.topic.encode("utf-8", "surrogateescape")
    if isinstance(row, Damage) or len(topic) != len(row.topic):
        return None
    made = bytearray(record)
    I32.pack_into(made, HEAD_V4.offsets["queue_id"], wanted.queue_id)
    I64.pack_into(made, HEAD_V4.offsets["queue_offset"], wanted.queue_offset)
    I32.pack_into(made, SYS_FLAG_AT, with_place(row.sys_flag))
    topic_at = row.properties_at - 2 - len(topic)
    made[topic_at : topic_at + len(topic)] = topic
    return bytes(made)

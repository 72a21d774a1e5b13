"""``seglog/holes``: the damage of a log that recoveries have seen, kept as evidence.

For each unreadable stretch of the log, and each stretch at its end that tombstones replace, the file has its
place, its cause, the time when it was first seen, and the messages that were there, as far as queue units and
offsets prove them. The queues can lose those units later; this file keeps the facts.

Truth: none. The log decides what is readable: a hole that can be read again is dropped, as is a hole that
retention removed. A damaged file is moved aside, and recovery writes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from seglog.errors import ConfigError, CorruptError
from seglog.storage.files.files import Files
from seglog.storage.format.config.config_value import ConfigValue
from seglog.storage.format.names import OURS
from seglog.storage.format.ranges import ranges_of
from seglog.storage.format.record.tombstone import LostRecord
from seglog.storage.overlay.lost_messages import UNIT, LostMessages
from seglog.storage.small_files.config_file import ConfigFile
from seglog.storage.walk.behind_damage import Hole

HOLES_FILE: Final = "holes"
_EVIDENCE: Final = "evidence"
TOMBSTONES: Final = "tombstones"
"""Cause of a stretch that lost its records and now holds tombstones."""
OTHERS: Final = "other-records"
"""Cause of a stretch in which a queue had records, and the log has other records now."""
LOST_END: Final = "log-end"
"""Cause of a place, of no length, at which the log had lost its end, and queues had no units to count it."""
_OF_QUEUES: Final = frozenset({OTHERS, LOST_END})
"""Causes of entries at places where the log has no hole."""

Missing = Callable[[str, int, range], tuple[range, ...]]
"""Returns the queue offsets of a range that were assigned but lead to no message: topic, queue id, range."""


@dataclass(frozen=True, slots=True)
class KnownHole:
    """A stretch of the log that lost its records.

    Attributes:
        phy_offset: Physical offset of its first byte.
        size_bytes: Its length.
        why: The damage at its start, as in :class:`~seglog.storage.walk.log_scan.Hole`, or
            :data:`TOMBSTONES`, :data:`OTHERS` or :data:`LOST_END`.
        expected: The expected value at its start.
        found: The value that was found.
        first_seen_ms: Time at which a recovery saw it first.
        lost: The messages that were there, as far as known.
        is_open: Whether further messages may have been there that nothing names.
        queues: For :data:`LOST_END`, the queues that may have had such messages; empty for all.
    """

    phy_offset: int
    size_bytes: int
    why: str
    expected: str = ""
    found: str = ""
    first_seen_ms: int = 0
    lost: tuple[LostMessages, ...] = field(default=())
    is_open: bool = False
    queues: tuple[tuple[str, int], ...] = ()

    @property
    def end(self) -> int:
        """Physical offset at which records continue."""
        return self.phy_offset + self.size_bytes


def known_holes(
    holes: Sequence[Hole],
    lost: Sequence[Sequence[LostMessages]],
    tail: Sequence[LostRecord],
    end_phy_offset: int,
    now_ms: int,
) -> list[KnownHole]:
    """Returns the damage of a log that a survey found, in log order.

    Args:
        holes: Holes of the log.
        lost: The messages that were in each of them.
        tail: Lost records behind the end of the log.
        end_phy_offset: End of the log.
        now_ms: Time of the survey.
    """
    found = [
        KnownHole(
            hole.phy_offset, hole.size_bytes, hole.why, hole.expected, hole.found, now_ms, tuple(messages)
        )
        for hole, messages in zip(holes, lost, strict=True)
    ]
    if tail:
        size_bytes = tail[-1].end - end_phy_offset
        found.append(
            KnownHole(end_phy_offset, size_bytes, TOMBSTONES, first_seen_ms=now_ms, lost=lost_of_tail(tail))
        )
    return found


def lost_of_tail(tail: Iterable[LostRecord]) -> tuple[LostMessages, ...]:
    """Returns the messages of records that are lost behind the end of a log."""
    by_queue: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for record in tail:
        by_queue.setdefault((record.topic, record.queue_id), []).append(
            (record.queue_offset, record.batch_size)
        )
        for name, offset in record.further:
            by_queue.setdefault((name, 0), []).append((offset, 1))
    return tuple(
        LostMessages(topic, queue_id, offsets, UNIT)
        for (topic, queue_id), known in sorted(by_queue.items())
        for offsets in ranges_of(known)
    )


def merge_holes(
    now: Sequence[KnownHole], before: Sequence[KnownHole], log: tuple[int, int], missing: Missing
) -> list[KnownHole]:
    """Returns the holes to keep: those seen now, with the known facts about the same places.

    Args:
        now: The holes seen now, in log order.
        before: The holes in the file.
        log: Start and end of the log.
        missing: Returns the messages of holes that are still lost.
    """
    start, end = log
    left = [old for old in before if start <= old.phy_offset and old.end <= end]
    # Each of these is of one queue, and the log has no hole there, so those of several queues may overlap.
    others = {(one.phy_offset, one.lost): one for one in (*now, *left) if one.why == OTHERS}
    kept = list(others.values())
    kept += _merge_ends([one for one in (*now, *before) if one.why == LOST_END and start <= one.phy_offset])
    now = [hole for hole in now if hole.why not in _OF_QUEUES]
    left = [old for old in left if old.why not in _OF_QUEUES]
    for hole in now:
        same = [old for old in left if _overlap(old, hole)]
        seen_ms = min([hole.first_seen_ms, *(old.first_seen_ms for old in same)])
        known = list(hole.lost)
        for old in same:
            known += _still_lost(old, missing)
        first, last = hole.phy_offset, hole.end
        if hole.why == TOMBSTONES:
            # A crash between the tombstones leaves some of them; the next recovery sees only the rest.
            stones = [old for old in same if old.why == TOMBSTONES]
            first = min([first, *(old.phy_offset for old in stones)])
            last = max([last, *(old.end for old in stones)])
        kept.append(
            replace(
                hole,
                phy_offset=first,
                size_bytes=last - first,
                first_seen_ms=seen_ms,
                lost=_without_double(known),
                # Queues that were lost since cannot name what they named when it was seen first.
                is_open=hole.is_open and all(old.is_open for old in same),
            )
        )
    # Kept from the file, because tombstones are whole records, which the walk does not report again.
    kept += [old for old in left if old.why == TOMBSTONES and not any(_overlap(old, hole) for hole in now)]
    return sorted(kept, key=lambda hole: hole.phy_offset)


def load_holes(files: Files, root: Path) -> list[KnownHole]:
    """Returns the holes in the file of a store; empty if the file is missing or damaged."""
    try:
        return ConfigFile(files, root / OURS / HOLES_FILE).load(parse_holes) or []
    except ConfigError:
        return []


def save_holes(files: Files, root: Path, holes: Sequence[KnownHole]) -> None:
    """Writes the file of a store, durably; writes nothing if the content is the same.

    Raises:
        FullError: No space; the file is unchanged.
    """
    if load_holes(files, root) == list(holes):
        return
    folder = root / OURS
    ConfigFile(files, folder / HOLES_FILE, folder / _EVIDENCE).save({"holes": [_value(h) for h in holes]})


def forget_lost(files: Files, root: Path, found: Collection[tuple[str, int, int]]) -> None:
    """Removes messages that are not lost any more from the file of a store, and holes without messages.

    Args:
        files: The file layer of the store.
        root: The store directory.
        found: Topic, queue and queue offset of each.
    """
    kept: list[KnownHole] = []
    for hole in load_holes(files, root):
        lost = tuple(
            replace(one, offsets=offsets)
            for one in hole.lost
            for offsets in ranges_of(
                (offset, 1) for offset in one.offsets if (one.topic, one.queue_id, offset) not in found
            )
        )
        if lost or not hole.lost:
            kept.append(replace(hole, lost=lost))
    save_holes(files, root, kept)


def note_hole(files: Files, root: Path, hole: KnownHole) -> None:
    """Adds a lost end of the log to the file of a store, durably.

    Raises:
        FullError: No space; the file is unchanged.
    """
    before = load_holes(files, root)
    ends = _merge_ends([one for one in (hole, *before) if one.why == LOST_END])
    others = [one for one in before if one.why != LOST_END]
    save_holes(files, root, sorted(others + ends, key=lambda one: one.phy_offset))


def _merge_ends(ends: Iterable[KnownHole]) -> list[KnownHole]:
    """Returns one entry for each place at which the log had lost its end."""
    merged: dict[int, KnownHole] = {}
    for one in ends:
        known = merged.get(one.phy_offset, one)
        queues = tuple(sorted({*one.queues, *known.queues})) if one.queues and known.queues else ()
        seen_ms = min(one.first_seen_ms, known.first_seen_ms)
        merged[one.phy_offset] = replace(one, first_seen_ms=seen_ms, queues=queues)
    return [*merged.values()]


def _overlap(one: KnownHole, other: KnownHole) -> bool:
    return one.phy_offset < other.end and other.phy_offset < one.end


def _still_lost(old: KnownHole, missing: Missing) -> list[LostMessages]:
    if old.why == TOMBSTONES:
        return list(old.lost)
    return [
        replace(one, offsets=offsets)
        for one in old.lost
        for offsets in missing(one.topic, one.queue_id, one.offsets)
    ]


def _without_double(lost: Sequence[LostMessages]) -> tuple[LostMessages, ...]:
    """Returns each lost message once, with its best evidence."""
    told: set[tuple[str, int, int]] = set()
    kept: list[LostMessages] = []
    for one in sorted(lost, key=lambda one: (one.evidence != UNIT, not one.is_sure)):
        left = [offset for offset in one.offsets if (one.topic, one.queue_id, offset) not in told]
        told.update((one.topic, one.queue_id, offset) for offset in left)
        kept += [replace(one, offsets=offsets) for offsets in ranges_of((offset, 1) for offset in left)]
    return tuple(sorted(kept, key=lambda one: (one.topic, one.queue_id, one.offsets.start)))


def _value(hole: KnownHole) -> Mapping[str | int, ConfigValue]:
    value: dict[str | int, ConfigValue] = {
        "phyOffset": hole.phy_offset,
        "size": hole.size_bytes,
        "why": hole.why,
        "expected": hole.expected,
        "found": hole.found,
        "firstSeen": hole.first_seen_ms,
        "lost": [
            {
                "topic": one.topic,
                "queueId": one.queue_id,
                "firstOffset": one.offsets.start,
                "count": len(one.offsets),
                "evidence": one.evidence,
                "sure": one.is_sure,
            }
            for one in hole.lost
        ],
    }
    if not hole.is_open:
        return value
    queues: list[ConfigValue] = [{"topic": topic, "queueId": queue_id} for topic, queue_id in hole.queues]
    return {**value, "mayBeMore": True, "queues": queues}


def parse_holes(value: ConfigValue) -> list[KnownHole]:
    """Returns the holes in a decoded file.

    Raises:
        CorruptError: Its shape is wrong.
    """
    return [
        KnownHole(
            _number(hole, "phyOffset"),
            _number(hole, "size"),
            _text(hole, "why"),
            _text(hole, "expected"),
            _text(hole, "found"),
            _number(hole, "firstSeen"),
            tuple(_lost(one, _number(hole, "size")) for one in _list(hole, "lost")),
            _of(hole, "mayBeMore") is True,
            tuple((_text(one, "topic"), _number(one, "queueId")) for one in _queues(hole)),
        )
        for hole in _list(value, "holes")
    ]


def _queues(hole: ConfigValue) -> Sequence[ConfigValue]:
    return [] if _of(hole, "queues") is None else _list(hole, "queues")


def _lost(value: ConfigValue, limit: int) -> LostMessages:
    first, count = _number(value, "firstOffset"), _number(value, "count")
    if count > limit:
        raise _corrupt(f"at most {limit} messages", count)
    return LostMessages(
        _text(value, "topic"),
        _number(value, "queueId"),
        range(first, first + count),
        _text(value, "evidence"),
        is_sure=_of(value, "sure") is True,
    )


def _of(value: ConfigValue, name: str) -> ConfigValue:
    if not isinstance(value, Mapping):
        raise _corrupt(f"an object with {name}", value)
    return value.get(name)


def _number(value: ConfigValue, name: str) -> int:
    number = _of(value, name)
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise _corrupt(f"a number {name}", number)
    return number


def _text(value: ConfigValue, name: str) -> str:
    text = _of(value, name)
    if not isinstance(text, str):
        raise _corrupt(f"a text {name}", text)
    return text


def _list(value: ConfigValue, name: str) -> Sequence[ConfigValue]:
    found = _of(value, name)
    if not isinstance(found, list):
        raise _corrupt(f"a list {name}", found)
    return found


def _corrupt(expected: str, found: object) -> CorruptError:
    return CorruptError("holes", file=f"{OURS}/{HOLES_FILE}", expected=expected, found=repr(found)[:80])

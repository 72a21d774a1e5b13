"""``seglog/holes``: what recoveries saw of a log's damage, kept as evidence.

For each unreadable stretch of the log, and each stretch at its end that tombstones stand in for: where it
is, why, when it was first seen, and which messages lay there as far as queue units and offsets show. The
queues can lose those units later; this file then still knows them.

Truth: none. The log decides what is readable: a hole that can be read again is dropped, as is one that
retention took. A damaged file is put aside, and recovery makes a new one.
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
"""Why of a stretch that lost its records and now holds tombstones."""
OTHERS: Final = "other-records"
"""Why of a stretch in which a queue had records, and the log holds others."""

Missing = Callable[[str, int, range], tuple[range, ...]]
"""Returns which queue offsets of a range were given, but lead to no message: topic, queue id, range."""


@dataclass(frozen=True, slots=True)
class KnownHole:
    """A stretch of the log that lost its records.

    Attributes:
        phy_offset: Where it starts.
        size_bytes: How long it is.
        why: The damage at its start, as :class:`~seglog.storage.walk.log_scan.Hole` has it, or
            :data:`TOMBSTONES`.
        expected: What should be at its start.
        found: What is.
        first_seen_ms: When a recovery saw it first.
        lost: The messages that lay there, as far as is known.
    """

    phy_offset: int
    size_bytes: int
    why: str
    expected: str = ""
    found: str = ""
    first_seen_ms: int = 0
    lost: tuple[LostMessages, ...] = field(default=())

    @property
    def end(self) -> int:
        """Where records continue."""
        return self.phy_offset + self.size_bytes


def known_holes(
    holes: Sequence[Hole],
    lost: Sequence[Sequence[LostMessages]],
    tail: Sequence[LostRecord],
    end_phy_offset: int,
    now_ms: int,
) -> list[KnownHole]:
    """Returns what a survey knows of a log's damage, in log order.

    Args:
        holes: Holes of the log.
        lost: What each of them took.
        tail: Records lost behind the log's end.
        end_phy_offset: Where that is.
        now_ms: When it was seen.
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
    """Returns what to keep: what is seen now, with what was known of the same places before.

    Args:
        now: What was seen now, in log order.
        before: What the file held.
        log: Where the log starts and ends.
        missing: Returns which messages of holes are lost after all.
    """
    start, end = log
    left = [old for old in before if start <= old.phy_offset and old.end <= end]
    # Each is of one queue, and the log has no hole there: those of several queues lie over each other.
    others = {(one.phy_offset, one.lost): one for one in (*now, *left) if one.why == OTHERS}
    kept = list(others.values())
    now = [hole for hole in now if hole.why != OTHERS]
    left = [old for old in left if old.why != OTHERS]
    for hole in now:
        same = [old for old in left if _overlap(old, hole)]
        seen_ms = min([hole.first_seen_ms, *(old.first_seen_ms for old in same)])
        known = list(hole.lost)
        for old in same:
            known += _still_lost(old, missing)
        first, last = hole.phy_offset, hole.end
        if hole.why == TOMBSTONES:
            # A crash while they were written leaves some; the next recovery sees only what is left to do.
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
            )
        )
    # Tombstones are whole records: the walk does not report them again.
    kept += [old for old in left if old.why == TOMBSTONES and not any(_overlap(old, hole) for hole in now)]
    return sorted(kept, key=lambda hole: hole.phy_offset)


def load_holes(files: Files, root: Path) -> list[KnownHole]:
    """Returns what the file of a store holds; nothing where it is missing or damaged."""
    try:
        return ConfigFile(files, root / OURS / HOLES_FILE).load(parse_holes) or []
    except ConfigError:
        return []


def save_holes(files: Files, root: Path, holes: Sequence[KnownHole]) -> None:
    """Makes the file of a store say this, durably; writes nothing where it does already.

    Raises:
        FullError: No space; the file is as it was.
    """
    if load_holes(files, root) == list(holes):
        return
    folder = root / OURS
    ConfigFile(files, folder / HOLES_FILE, folder / _EVIDENCE).save({"holes": [_value(h) for h in holes]})


def forget_lost(files: Files, root: Path, found: Collection[tuple[str, int, int]]) -> None:
    """Takes messages out of the file of a store that are not lost any more; a hole without any goes.

    Args:
        files: Where the store is.
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
    """Returns each lost message once, by the best evidence there is."""
    told: set[tuple[str, int, int]] = set()
    kept: list[LostMessages] = []
    for one in sorted(lost, key=lambda one: (one.evidence != UNIT, not one.is_sure)):
        left = [offset for offset in one.offsets if (one.topic, one.queue_id, offset) not in told]
        told.update((one.topic, one.queue_id, offset) for offset in left)
        kept += [replace(one, offsets=offsets) for offsets in ranges_of((offset, 1) for offset in left)]
    return tuple(sorted(kept, key=lambda one: (one.topic, one.queue_id, one.offsets.start)))


def _value(hole: KnownHole) -> Mapping[str | int, ConfigValue]:
    return {
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


def parse_holes(value: ConfigValue) -> list[KnownHole]:
    """Returns what the decoded file says.

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
        )
        for hole in _list(value, "holes")
    ]


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

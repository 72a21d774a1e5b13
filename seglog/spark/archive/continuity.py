"""Checks that a store is the one that an archive has under a name: it must continue the archived messages.

The record at the last archived offset of each queue must still be that record, by its CRC
(:mod:`seglog.spark.archive.record_crc`), or the rest that a compaction or an erasure left of it: a record at
the same offset with its times and hosts. So a store that was compacted, restored, repaired or copied
continues.

A store is refused if one of its queues ends before the archived messages, has another record at that offset,
or has a record of a lower offset after it in the log (the queue was deleted and begun again).

If the record itself no longer exists, the store continues the archive if nothing contradicts it and there is
this evidence:

- *expired* (the queue's first offset is higher): the remaining records were stored at or after the last
  archived one, and the log files have the same length as before;
- *not readable* (a damaged place, a tombstone), or *no queue of that name* (its topic was deleted): some
  other queue still has its last archived record, or the log begins with the same record as before.

The queue files are read first, with one record for each queue. If they do not lead to the record, the log is
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from seglog.doctor.message.copy_names import ERASED
from seglog.errors import StoreMismatchError
from seglog.spark.archive.folder import Key
from seglog.spark.archive.manifest import LastRecord, Run
from seglog.spark.archive.store_facts import FoundRecord, StoreFacts
from seglog.storage.format.record import PLACEHOLDER_FLAG


class LoggedQueue(NamedTuple):
    """The facts of the log about a queue and one offset in it.

    Attributes:
        first: Lowest queue offset of a record.
        last: Highest queue offset of a record.
        found: The last record at the given offset; None without one.
        last_below: Place of the last record at that offset or below; -1 without one.
        next_time_ms: Store time of the first record after that offset; None without one.
    """

    first: int
    last: int
    found: FoundRecord | None
    last_below: int
    next_time_ms: int | None


LookUp = Callable[[Sequence[LastRecord]], Mapping[Key, LoggedQueue]]
_SAME: Final = "same"
_EXPIRED: Final = "expired"
_UNREADABLE: Final = "unreadable"
_GONE: Final = "gone"
_LEFT: Final = {
    _EXPIRED: "a queue that begins behind it, in log files of another length",
    _UNREADABLE: "a place that cannot be read, and no other queue to compare",
    _GONE: "no such queue, and no other one to compare",
}


class _State(NamedTuple):
    """The state of a queue: one of the words above, or expected and found values of a refusal."""

    word: str = ""
    phy_offset: int = -1
    expected: str = ""
    found: str = ""


def last_records(runs: Iterable[Run]) -> dict[Key, LastRecord]:
    """Returns the last archived record of each queue."""
    found: dict[Key, LastRecord] = {}
    for one in (one for run in runs for one in run.last):
        known = found.get(one[:2])
        if known is None or known.queue_offset < one.queue_offset:
            found[one.topic, one.queue_id] = one
    return found


def check_continues(
    runs: Sequence[Run], facts: StoreFacts, look_up: LookUp, topics: Sequence[str] = ()
) -> dict[Key, int]:
    """Checks that a store continues the archived messages of runs.

    Args:
        runs: All runs of one name.
        facts: The facts about the store.
        look_up: Reads the facts of the log about queues; queues without records are left out.
        topics: Topics to archive, all if empty; the contents of other topics do not matter.

    Returns:
        Place in the log of the last archived record of each topic's queues, without records that no longer
        exist.

    Raises:
        StoreMismatchError: The store does not continue them.
    """
    asked = last_records(runs)
    states = {key: _by_files(one, facts) for key, one in asked.items()}
    unknown = [asked[key] for key, state in states.items() if state is None]
    logged = look_up(unknown) if unknown else {}
    for one in unknown:
        states[one.topic, one.queue_id] = _by_log(one, facts, logged.get((one.topic, one.queue_id)))
    known = {key: state for key, state in states.items() if state is not None}
    begins_alike = _begins_alike(runs, facts)
    is_proven = begins_alike or any(state.word == _SAME for state in known.values())
    lengths = {run.store.segment_bytes for run in runs if run.store is not None}
    wanted = {key: state for key, state in known.items() if not topics or key[0] in topics}
    # New topics have no archived record to compare; then the other topics have to prove the store.
    for key, state in (wanted or known).items():
        is_refused = not state.word and (bool(wanted) or not is_proven)
        if is_refused or not (is_proven or (state.word == _EXPIRED and lengths == {facts.segment_bytes})):
            raise _refusal(runs, asked[key], state, begins_alike=begins_alike)
    return {key: state.phy_offset for key, state in wanted.items() if state.word == _SAME}


def is_still(one: LastRecord, found: FoundRecord) -> bool:
    """Returns whether a record at the same offset of the same queue is the archived one."""
    message = found.message
    if found.crc == one.crc:
        return True
    said = (
        message.born_timestamp_ms,
        message.store_timestamp_ms,
        str(message.born_host),
        str(message.store_host),
    )
    is_placeholder = message.flag == PLACEHOLDER_FLAG and not message.body
    is_erased = ERASED in message.properties or (bool(message.body) and not any(message.body))
    return said == one[5:9] and (is_placeholder or is_erased or one.is_placeholder)


def _by_files(one: LastRecord, facts: StoreFacts) -> _State | None:
    """Returns the state of a queue by its files; None if they lead to no valid record."""
    key = one.topic, one.queue_id
    ends = facts.ends(*key)
    if ends is None or one.queue_offset >= ends.end:
        return None
    if one.queue_offset < ends.first:
        if ends.first == ends.end:
            return _State(_EXPIRED)
        first = facts.record_of(*key, ends.first)
        return None if first is None else _expired(one, ends.first, first.message.store_timestamp_ms)
    found = facts.record_of(*key, one.queue_offset)
    return None if found is None else _compared(one, found)


def _by_log(one: LastRecord, facts: StoreFacts, logged: LoggedQueue | None) -> _State:
    ends = facts.ends(one.topic, one.queue_id)
    is_in_files = ends is not None and ends.end > one.queue_offset
    if logged is None:
        if is_in_files:
            return _State(_UNREADABLE)
        if ends is None or ends.end == 0:
            return _State(_GONE)
        return _ends_early(one, ends.end)
    if logged.found is not None:
        if logged.last_below > logged.found.phy_offset:
            return _State(expected=_said(one), found="a queue that was deleted and begun again")
        return _compared(one, logged.found)
    if logged.first > one.queue_offset:
        return _expired(one, logged.first, logged.next_time_ms)
    if logged.last < one.queue_offset and not is_in_files:
        return _ends_early(one, logged.last + 1)
    return _State(_UNREADABLE)


def _compared(one: LastRecord, found: FoundRecord) -> _State:
    if is_still(one, found):
        return _State(_SAME, found.phy_offset)
    time_ms = found.message.store_timestamp_ms
    return _State(expected=_said(one), found=f"one of CRC {found.crc:08x}, stored at {time_ms}")


def _expired(one: LastRecord, first: int, time_ms: int | None) -> _State:
    if time_ms is not None and time_ms < one.store_timestamp_ms:
        return _State(expected=_said(one), found=f"a queue from {first} on, stored at {time_ms}, before that")
    return _State(_EXPIRED)


def _ends_early(one: LastRecord, end: int) -> _State:
    return _State(expected=_said(one), found=f"a queue that ends at {end}")


def _said(one: LastRecord) -> str:
    return f"the archived record of CRC {one.crc:08x}, stored at {one.store_timestamp_ms}"


def _begins_alike(runs: Sequence[Run], facts: StoreFacts) -> bool:
    first = facts.record_at(facts.first_phy_offset)
    if first is None:
        return False
    stores = [run.store for run in runs if run.store is not None]
    return any((one.first_phy_offset, one.first_crc) == (first.phy_offset, first.crc) for one in stores)


def _refusal(
    runs: Sequence[Run], one: LastRecord, state: _State, *, begins_alike: bool
) -> StoreMismatchError:
    name = runs[-1].name
    what = (
        f"the store was rolled back since it was archived as {name!r}, or a queue of it begun again: its log"
        " begins as it did"
        if begins_alike
        else f"the archive holds another store as {name!r}: the log of this one begins with another record"
        " (if it is the same after all, it was rolled back)"
    )
    expected = state.expected or _said(one)
    found = state.found or _LEFT[state.word]
    return StoreMismatchError(
        f"{what}; {one.topic}/{one.queue_id} at queue offset {one.queue_offset}: expected {expected}; found"
        f" {found}",
        help=f"nothing was archived; `--as NAME` archives it as a store of its own beside {name!r}",
    )

"""Erases messages in place: bodies become zeros, and everything else in the store stays valid.

First all copies are found and shown (:func:`plan_erase`, which changes nothing), then they are written
(:func:`apply_erase`, under the store's lock). Size, place, queue units and index entries of the records do
not change, so RocketMQ can read the store as before. A segment that matched its seal is sealed again; the
recovery point is removed. Files that share their bytes with backups or branches are separated first:
branches of the store are erased as well, other hard links keep the old bytes and are counted.

An erase cannot be undone: the old bytes are kept nowhere.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.clock import Clock
from seglog.doctor.copies.branch_places import stores_of
from seglog.doctor.erase.attic_erase import erase_in_attic
from seglog.doctor.erase.erase_journal import (
    JOURNAL,
    MAX_REWRITES_BYTES,
    Rewrite,
    apply_rewrites,
    remove_journal,
    write_journal,
)
from seglog.doctor.erase.erase_proof import sound_journal
from seglog.doctor.erase.erased_bytes import ErasedRecords
from seglog.doctor.erase.erased_record import erase_record
from seglog.doctor.erase.keyless import Keyless, find_keyless
from seglog.doctor.erase.pack_erase import ErasedPacks, erase_in_packs
from seglog.doctor.erase.residue_search import Leftovers, find_leftovers
from seglog.doctor.message import LogView, Scan, Search, find_families
from seglog.doctor.message.roles import role_of
from seglog.errors import CorruptError, NotFoundError, StoreError
from seglog.storage.directory import demand_own_queues
from seglog.storage.files import Files, RestoringFiles, lock_held, read_part
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.ours import Seal
from seglog.storage.format.record import Message
from seglog.storage.seals import check_blocks, list_seals, make_seal, read_seal, remove_seal, write_seal
from seglog.storage.small_files import ErasedPlace, note_erased, remove_recovery_point
from seglog.storage.walk import Progress
from seglog.text import shell_text

_MAX_TOLD: Final = 5


@dataclass(frozen=True, slots=True)
class ErasedCopy:
    """One record and its replacement.

    Attributes:
        store: The store that holds it: empty for the store itself, the relative path for a branch.
        message: The message as it is now.
        role: Its relation to the message that is erased.
        file: The commit-log file, relative to its store.
        position_bytes: Position in the file.
        before: SHA-256 of the record as it is.
        after: SHA-256 of the replacement.
        is_marked: Whether SEGLOG_ERASED fits into the record.
        other_names: Number of other hard links of its file, outside of this store or in branches.
        data: The replacement.
    """

    store: str
    message: Message
    role: str
    file: str
    position_bytes: int
    before: str
    after: str
    is_marked: bool
    other_names: int
    data: bytes

    @property
    def is_erased(self) -> bool:
        """Whether the record is erased already: the replacement is the same bytes."""
        return self.before == self.after


@dataclass(frozen=True, slots=True)
class ErasePlan:
    """The plan of an erase.

    Attributes:
        copies: Every record, first in the store, then in its branches.
        searches: How they were searched for, by store.
    """

    root: Path
    wanted: str
    copies: tuple[ErasedCopy, ...]
    searches: dict[str, Search]

    @property
    def left(self) -> tuple[ErasedCopy, ...]:
        """The copies that are not erased yet."""
        return tuple(copy for copy in self.copies if not copy.is_erased)


@dataclass(frozen=True, slots=True)
class Erased:
    """The result of an erase.

    Attributes:
        sealed: Segments that were sealed again, by store.
        unsealed: Segments whose seals did not match before; those seals are unchanged.
        packs: Undo packs that held bytes of the records, or that cannot be read, by store.
        leftovers: Places that still hold bytes of the bodies.
    """

    plan: ErasePlan
    done_ms: int
    sealed: tuple[tuple[str, int], ...]
    unsealed: tuple[tuple[str, int], ...]
    packs: dict[str, ErasedPacks]
    leftovers: Leftovers


def plan_erase(
    files: Files,
    root: Path,
    wanted: str,
    *,
    topic: str | None = None,
    scan: Scan = Scan.ALWAYS,
    progress: Progress | None = None,
) -> ErasePlan:
    """Finds every copy of the messages of an id or key, in a store and its branches; changes nothing.

    Args:
        files: Access to the store.
        root: The store directory.
        wanted: A message id, a unique key or a key; for a key, all its messages.
        topic: Topic in which to search for a key; None for every topic.
        scan: How much of the log to walk.
        progress: Called during every walk.

    Raises:
        NotFoundError: There is no such message.
        UnsupportedStoreError: The store, or a branch, has queues in RocksDB.
    """
    copies: list[ErasedCopy] = []
    searches: dict[str, Search] = {}
    missing: NotFoundError | None = None
    for store in stores_of(files, root):
        demand_own_queues(files, root / store)
        with LogView(files, root / store) as view:
            try:
                found = find_families(view, wanted, topic=topic, scan=scan, progress=progress)
            except NotFoundError as error:
                missing = missing or error
                keyless = find_keyless(view, [wanted], is_text_needed=False)
                if keyless and missing is error:
                    error.help = _keyless_help(root / store, keyless)
                continue
            searches[store] = found.search
            members = [message for family in found.families for message in family]
            copies += [_copy(view, store, message) for message in members]
            names = {wanted, *(one.unique_key for one in members if one.unique_key)}
            places = {one.phy_offset for one in members}
            found.search.not_looked += [
                f"a lost record without keys, {_keyless_text(one)}, of which bytes are kept that hold the key"
                for one in find_keyless(view, names, is_text_needed=True)
                if one.message.phy_offset not in places
            ]
    if not copies and missing is not None:
        raise missing
    return ErasePlan(root, wanted, tuple(copies), searches)


def apply_erase(files: RestoringFiles, plan: ErasePlan, clock: Clock) -> Erased:
    """Writes the plan, and checks whether the bodies are still anywhere in the store.

    Args:
        files: Access to the store.
        plan: The plan.
        clock: The time.

    Raises:
        StoreLockedError: A broker or another process has the store, or a branch, open.
        StoreError: A record changed after the plan; nothing was written.
        FullError: No space; the next erase completes this one.
    """
    sealed: list[tuple[str, int]] = []
    unsealed: list[tuple[str, int]] = []
    packs: dict[str, ErasedPacks] = {}
    bodies = {copy.message.body for copy in plan.copies}
    with ExitStack() as locks:
        names = list(dict.fromkeys(copy.store for copy in plan.copies))
        for name in names:
            locks.enter_context(lock_held(files, plan.root / name))
        # All records are compared before the first one is written, so that an outdated plan changes nothing.
        for copy in plan.copies:
            _check_same(files, plan.root / copy.store, copy)
        for name in names:
            own = [copy for copy in plan.copies if copy.store == name]
            packs[name] = ErasedPacks()
            renewed, left, old_bodies = _erase_in(files, plan, name, own, packs[name], clock)
            bodies |= old_bodies
            sealed += [(name, first) for first in renewed]
            unsealed += [(name, first) for first in left]
    leftovers = find_leftovers(files, plan.root, sorted(bodies))
    return Erased(plan, clock.now_ms(), tuple(sealed), tuple(unsealed), packs, leftovers)


def finish_erase(files: Files, root: Path) -> int:
    """Completes erases that were interrupted; returns the number of their records.

    Raises:
        StoreLockedError: A process has the store open.
        CorruptError: The journal cannot be read, or does not follow from the log; nothing was written.
    """
    count = 0
    for store in stores_of(files, root):
        if files.exists(root / store / JOURNAL):
            with lock_held(files, root / store):
                count += finish_in(files, root / store)
    return count


def finish_in(files: Files, root: Path) -> int:
    """Completes the erase of one store whose lock is held; arguments and errors of :func:`finish_erase`."""
    try:
        journal = sound_journal(files, root)
    except CorruptError as error:
        error.help = f"nothing was written; `seglog repair {shell_text(root)}` moves {JOURNAL} aside"
        raise
    if journal is None:
        return 0
    segment, rewrites = journal
    remove_recovery_point(files, root)
    apply_rewrites(files, root, segment, rewrites)
    _erase_kept(files, root, ErasedRecords.of(rewrites), ErasedPacks())
    for first in {one.phy_offset - one.phy_offset % segment for one in rewrites}:
        if first in list_seals(files, root):
            remove_seal(files, root, first)  # whether it matched before is unknown
    # Last: after a crash before this line all of the above is repeated, with the same bytes.
    remove_journal(files, root)
    return len(rewrites)


def _keyless_help(root: Path, keyless: Sequence[Keyless]) -> str:
    """Returns advice on erasing lost records without keys; records that hold the wanted text come first."""
    listed = sorted(keyless, key=lambda one: not one.holds_text)[:_MAX_TOLD]
    more = f" and {len(keyless) - len(listed)} more" if len(keyless) > len(listed) else ""
    told = "; ".join(_keyless_text(one) + (", holds the text" if one.holds_text else "") for one in listed)
    return (
        f"lost records without keys have bytes in the attic or an undo pack: {told}{more};"
        f" `seglog erase {shell_text(root)} ID` erases one"
    )


def _keyless_text(one: Keyless) -> str:
    message = one.message
    return f"{message.topic}/{message.queue_id} @{message.queue_offset} (id {message.message_id})"


def _copy(view: LogView, store: str, message: Message) -> ErasedCopy:
    record = view.record_at(message.phy_offset)
    if record is None:
        raise StoreError(f"the record at {message.phy_offset} went away while it was looked at")
    made = erase_record(record, message.phy_offset)
    position = message.phy_offset % view.segment_size_bytes
    file = f"{COMMIT_LOG}/{segment_file_name(message.phy_offset - position)}"
    return ErasedCopy(
        store,
        message,
        role_of(message).value,
        file,
        position,
        hashlib.sha256(record).hexdigest(),
        hashlib.sha256(made.data).hexdigest(),
        made.is_marked,
        _other_names(view.files, view.root / file),
        made.data,
    )


def _other_names(files: Files, path: Path) -> int:
    """Returns the number of other hard links of a file."""
    with closing(files.open(path, writable=False)) as handle:
        return os.fstat(handle.descriptor).st_nlink - 1 if handle.descriptor >= 0 else 0


def _check_same(files: Files, root: Path, copy: ErasedCopy) -> None:
    with closing(files.open(root / copy.file, writable=False)) as handle:
        record = read_part(handle, copy.position_bytes, copy.message.size_bytes)
    if hashlib.sha256(record).hexdigest() != copy.before:
        raise StoreError(
            f"{copy.file} +{copy.position_bytes} changed since it was looked at; nothing was written",
            help="run the command again",
        )


def _erase_in(
    files: RestoringFiles,
    plan: ErasePlan,
    store: str,
    copies: Sequence[ErasedCopy],
    packs: ErasedPacks,
    clock: Clock,
) -> tuple[list[int], list[int], set[bytes]]:
    """Erases records of one store.

    Returns:
        The segments that were sealed again, those that were not, and bodies of which older bytes were kept.
    """
    root = plan.root / store
    first = copies[0]
    with LogView(files, root) as view:
        segment = view.segment_size_bytes
    segments = sorted({copy.message.phy_offset - copy.message.phy_offset % segment for copy in copies})
    matching, others = _seals(files, root, segments)
    rewrites = [Rewrite(copy.message.phy_offset, copy.data) for copy in copies]
    assert first.message.phy_offset % segment == first.position_bytes
    note_erased(files, root, {_place(copy.message) for copy in copies})
    remove_recovery_point(files, root)
    bodies: set[bytes] = set()
    paths = [root / COMMIT_LOG / segment_file_name(start) for start in segments]
    stamps = [(path, files.stamp(path)) for path in paths]
    for group in _groups(rewrites):
        write_journal(files, root, segment, group)
        for start in set(matching) & set(list_seals(files, root)):
            remove_seal(files, root, start)  # a stop in here must leave no seal that does not match
        apply_rewrites(files, root, segment, group)
        records = ErasedRecords.of(group, plan.wanted)
        _erase_kept(files, root, records, packs)
        bodies |= records.bodies
        remove_journal(files, root)
    for path, stamp in stamps:
        files.set_stamp(path, stamp)
    for start in matching:
        made = make_seal(files, root, start, segment, clock.now_ms(), lambda: True)
        if isinstance(made, Seal):
            write_seal(files, root, made)
    return matching, others, bodies


def _erase_kept(files: Files, root: Path, records: ErasedRecords, packs: ErasedPacks) -> None:
    """Erases the bytes of records that a store keeps outside of its log."""
    erase_in_attic(files, root, records)
    erase_in_packs(files, root, records, packs)


def _place(message: Message) -> ErasedPlace:
    return ErasedPlace(
        message.phy_offset, message.size_bytes, message.topic, message.queue_id, message.queue_offset
    )


def _groups(rewrites: Sequence[Rewrite]) -> Iterator[list[Rewrite]]:
    """Yields rewrites in groups that one journal can hold."""
    group: list[Rewrite] = []
    size_bytes = 0
    for one in rewrites:
        if group and size_bytes + len(one.data) > MAX_REWRITES_BYTES:
            yield group
            group, size_bytes = [], 0
        group.append(one)
        size_bytes += len(one.data)
    yield group


def _seals(files: Files, root: Path, segments: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns the segments that match their seals, and those that do not."""
    known: list[Seal] = []
    others: list[int] = []
    for start in sorted(set(segments) & set(list_seals(files, root))):
        try:
            known.append(read_seal(files, root, start))
        except CorruptError:
            others.append(start)
    checks = check_blocks(files, root, known, lambda _count: None)
    matching = [check.seal.first_phy_offset for check in checks if not check.wrong.any()]
    others += [check.seal.first_phy_offset for check in checks if check.wrong.any()]
    return matching, others

"""What must be settled before anything else is done to a store: repairs, undos and erases that were stopped.

A check names them, and they are the first steps of a repair's plan. A pack that is sound is taken back, an
erase that proves itself is finished; a journal that is damaged, or says what none of ours does, is moved
aside, and nothing that it says is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.doctor.erase.erase import finish_in
from seglog.doctor.erase.erase_journal import JOURNAL as ERASING
from seglog.doctor.erase.erase_proof import sound_journal
from seglog.doctor.plans.actions import Action, move_away
from seglog.doctor.undo.undo import check_undo, restore, undo_repair
from seglog.doctor.undo.undo_pack import UndoPack, list_packs, pack_folder
from seglog.doctor.undo.undo_reading import read_whole
from seglog.doctor.undo.undo_writing import DISCARDED, discard_pack, remove_leftovers
from seglog.errors import CorruptError, FileKindError, UnsafePathError
from seglog.storage.files import Files, RestoringFiles, StampingFiles, explain_os_error
from seglog.storage.findings import Finding
from seglog.storage.format.names import STRAY
from seglog.storage.small_files import JOURNAL
from seglog.text import count_text

_UNSOUND: Final = (CorruptError, UnsafePathError, FileKindError)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """One thing to settle.

    Attributes:
        name: Of its journal, relative to the store.
        number: Of its undo pack; 0 for an erase.
        pack: What the pack says; None if that cannot be believed, and for an erase.
        records: How many records an erase was to write.
        problem: Why the journal cannot be believed; empty if it can.
    """

    name: str
    number: int = 0
    pack: UndoPack | None = None
    records: int = 0
    problem: str = ""


def unfinished(files: Files, root: Path) -> list[Unfinished]:
    """Returns what must be settled first, in this order; changes nothing."""
    found = [_of_pack(files, root, number) for number in reversed(list_packs(files, root))]
    return [one for one in [*found, _of_erase(files, root)] if one is not None]


def _of_pack(files: Files, root: Path, number: int) -> Unfinished | None:
    name = (pack_folder(root, number) / JOURNAL).relative_to(root).as_posix()
    try:
        pack = read_whole(files, root, number)
    except _UNSOUND as error:
        return Unfinished(name, number, problem=str(error))
    except OSError as error:
        return Unfinished(name, number, problem=str(explain_os_error(error)))
    return Unfinished(name, number, pack) if pack.after is None or pack.is_undoing else None


def _of_erase(files: Files, root: Path) -> Unfinished | None:
    try:
        journal = sound_journal(files, root)
    except _UNSOUND as error:
        return Unfinished(ERASING, problem=str(error))
    except OSError as error:
        return Unfinished(ERASING, problem=str(explain_os_error(error)))
    return None if journal is None else Unfinished(ERASING, records=len(journal[1]))


def unfinished_findings(files: Files, root: Path) -> list[Finding]:
    """Returns what a check says of what must be settled first."""
    return [_finding(one) for one in unfinished(files, root)]


def first_actions(found: Iterable[Unfinished]) -> list[Action]:
    """Returns the first steps of a plan."""
    return [_action(one) for one in found]


def settle_draft(files: StampingFiles, root: Path, found: Iterable[Unfinished]) -> None:
    """Makes a draft of a store what it is when everything is settled.

    Raises:
        UndoError: The store was changed since a repair was stopped, which cannot be taken back any more.
    """
    for one in found:
        if one.pack is not None:
            check_undo(files, root, one.pack)
            restore(files, root, one.pack)
        elif one.records:
            finish_in(files, root)


def settle(files: RestoringFiles, root: Path, found: Iterable[Unfinished]) -> None:
    """Settles everything; packs that were never finished themselves go as well.

    Args:
        files: Where the store is, of which this process holds the lock.
        root: The store directory.
        found: What :func:`unfinished` returned.

    Raises:
        UndoError: As :func:`settle_draft`.
    """
    for one in found:
        if one.pack is not None:
            undo_repair(files, root, one.number)
        elif not one.problem:
            finish_in(files, root)
        elif one.number:
            discard_pack(files, root, one.number)
        else:
            move_away(files, root, one.name)
    remove_leftovers(files, root, ())


def _finding(one: Unfinished) -> Finding:
    if one.number:
        if one.pack is None:
            return Finding("undo-unsound", one.name, expected="what a repair writes", found=one.problem)
        what = "half taken back" if one.pack.is_undoing else "half done"
        return Finding("undo-unfinished", one.name, expected="a repair that came to its end", found=what)
    if one.problem:
        return Finding("erase-unsound", one.name, expected="what an erase writes", found=one.problem)
    return Finding("erase-unfinished", one.name, found=count_text(one.records, "record") + " to write")


def _action(one: Unfinished) -> Action:
    if one.problem:
        name = one.name.removesuffix(f"/{JOURNAL}")
        folder = DISCARDED if one.number else STRAY
        return Action("discard", name, detail=f"to {folder}; nothing that it says is done: {one.problem}")
    if one.pack is None:
        detail = f"the bodies of {count_text(one.records, 'record')} become zeros; there is no way back"
        return Action("erase", one.name, detail=detail)
    restored = count_text(len({*one.pack.old, *one.pack.kept, *one.pack.moved, *one.pack.renamed}), "file")
    removed = count_text(len(one.pack.created), "new file")
    return Action("undo", one.name, detail=f"{restored} as before, {removed} removed")

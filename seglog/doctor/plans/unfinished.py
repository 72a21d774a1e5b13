"""Repairs, undos and erases that were stopped: they are settled before anything else is done to a store.

A check reports them, and they are the first steps of a repair's plan. A valid pack is undone, and an erase
whose journal is proved valid is completed. A journal that is damaged, or has contents that seglog never
writes, is moved aside, and none of its steps is carried out.
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
    """One operation to settle.

    Attributes:
        name: Path of its journal, relative to the store.
        number: Number of its undo pack; 0 for an erase.
        pack: The contents of the pack; None if they are not valid, and for an erase.
        records: Number of records that an erase had to write.
        problem: Why the journal is not valid; empty if it is.
    """

    name: str
    number: int = 0
    pack: UndoPack | None = None
    records: int = 0
    problem: str = ""


def unfinished(files: Files, root: Path) -> list[Unfinished]:
    """Returns the operations to settle, in the order in which they must be settled; changes nothing."""
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
    """Returns a check's findings on the operations to settle."""
    return [_finding(one) for one in unfinished(files, root)]


def first_actions(found: Iterable[Unfinished]) -> list[Action]:
    """Returns the first steps of a plan."""
    return [_action(one) for one in found]


def settle_draft(files: StampingFiles, root: Path, found: Iterable[Unfinished]) -> None:
    """Changes a draft to the state that the store has after everything is settled.

    Raises:
        UndoError: The store was changed since a repair was stopped, so the repair can no longer be undone.
    """
    for one in found:
        if one.pack is not None:
            check_undo(files, root, one.pack)
            restore(files, root, one.pack)
        elif one.records:
            finish_in(files, root)


def settle(files: RestoringFiles, root: Path, found: Iterable[Unfinished]) -> None:
    """Settles everything; also removes packs that have no journal.

    Args:
        files: Access to the store; this process holds its lock.
        root: The store directory.
        found: The result of :func:`unfinished`.

    Raises:
        UndoError: As for :func:`settle_draft`.
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

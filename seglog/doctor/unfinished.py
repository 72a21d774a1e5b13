"""What must be settled before anything else is done to a store: repairs and undos that were stopped half-way.

A check names them, and they are the first steps of a repair's plan. A pack that is sound is taken back; one
that is damaged, or says what no repair writes, is moved aside, and nothing that it says is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from seglog.doctor.actions import Action
from seglog.doctor.undo import check_undo, restore, undo_repair
from seglog.doctor.undo_pack import JOURNAL, UndoPack, journal_file, list_packs, pack_folder
from seglog.doctor.undo_reading import read_whole
from seglog.doctor.undo_writing import DISCARDED, discard_pack, remove_leftovers
from seglog.errors import CorruptError, FileKindError, UnsafePathError
from seglog.storage.files import Files, RestoringFiles, StampingFiles
from seglog.storage.findings import Finding
from seglog.storage.os_errors import explain_os_error
from seglog.words import count_text


@dataclass(frozen=True, slots=True)
class Unfinished:
    """One thing to settle.

    Attributes:
        number: Of its undo pack.
        pack: What the pack says; None if that cannot be believed.
        problem: Why it cannot; empty if it can.
    """

    number: int
    pack: UndoPack | None
    problem: str = ""


def unfinished(files: Files, root: Path) -> list[Unfinished]:
    """Returns what must be settled first, in this order; changes nothing."""
    found: list[Unfinished] = []
    for number in reversed(list_packs(files, root)):
        try:
            pack = read_whole(files, root, number)
        except (CorruptError, UnsafePathError, FileKindError) as error:
            found.append(Unfinished(number, None, str(error)))
        except OSError as error:
            found.append(Unfinished(number, None, str(explain_os_error(error))))
        else:
            if pack.after is None or pack.is_undoing:
                found.append(Unfinished(number, pack))
    return found


def unfinished_findings(files: Files, root: Path) -> list[Finding]:
    """Returns what a check says of what must be settled first."""
    return [_finding(root, one) for one in unfinished(files, root)]


def first_actions(root: Path, found: Iterable[Unfinished]) -> list[Action]:
    """Returns the first steps of a plan."""
    return [_action(root, one) for one in found]


def settle_draft(files: StampingFiles, root: Path, found: Iterable[Unfinished]) -> None:
    """Makes a draft of a store what it is when everything is settled.

    Raises:
        UndoError: The store was changed since a repair was stopped, which cannot be taken back any more.
    """
    for one in found:
        if one.pack is not None:
            check_undo(files, root, one.pack)
            restore(files, root, one.pack)


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
        if one.pack is None:
            discard_pack(files, root, one.number)
        else:
            undo_repair(files, root, one.number)
    remove_leftovers(files, root, ())


def _finding(root: Path, one: Unfinished) -> Finding:
    name = _name(root, one.number)
    if one.pack is None:
        return Finding("undo-unsound", name, expected="a pack that a repair wrote", found=one.problem)
    what = "half taken back" if one.pack.is_undoing else "half done"
    return Finding("undo-unfinished", name, expected="a repair that came to its end", found=what)


def _action(root: Path, one: Unfinished) -> Action:
    if one.pack is None:
        folder = pack_folder(root, one.number).relative_to(root).as_posix()
        return Action(
            "discard", folder, detail=f"to {DISCARDED}; nothing that it says is done: {one.problem}"
        )
    pack = one.pack
    restored = count_text(len({*pack.old, *pack.kept, *pack.moved}), "file")
    removed = count_text(len(pack.created), "new file")
    name = journal_file(pack).relative_to(root).as_posix()
    return Action("undo", name, detail=f"{restored} as before, {removed} removed")


def _name(root: Path, number: int) -> str:
    return (pack_folder(root, number) / JOURNAL).relative_to(root).as_posix()

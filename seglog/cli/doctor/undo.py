"""``seglog undo``: undoes a repair, so that every file is what it was before, bit for bit."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli.read.reading import check_store
from seglog.cli.ui import options, render
from seglog.doctor.repair import locked
from seglog.doctor.undo import UndoPack, discard_pack, list_packs, other_names, read_whole, undo_repair
from seglog.errors import CorruptError, FileKindError, UnsafePathError
from seglog.storage.files import StoreRoot
from seglog.text import shell_line


@click.command
@options.store
@click.argument("number", type=int, required=False)
@click.option("--list", "is_list", is_flag=True, help="Show the repairs that can be taken back.")
@click.option(
    "--discard",
    "is_discard",
    is_flag=True,
    help="Move the pack NUMBER aside, to seglog/stray, and change nothing else.",
)
@options.as_json
def command(*, path: Path, number: int | None, is_list: bool, is_discard: bool, as_json: bool) -> None:
    """Undo repair NUMBER of STORE, or the newest one.

    Every file becomes what it was before the repair. If the store was changed since, nothing is done. A
    repair that was stopped half-way is taken back as well; so is one that is half undone. A pack that is
    damaged, or that does not fit the store any more, can only be moved aside.
    """
    files = options.reading(path) if is_list else options.undoing(path)
    check_store(path)
    if is_list:
        packs = list_packs(files, path)
        for found in packs:
            _list_one(files, path, found, as_json=as_json)
        if not packs and not as_json:
            render.say("there is no repair that can be taken back")
        for name in other_names(files, path):
            if as_json:
                render.emit({"kind": "other", "name": name})
            else:
                render.say(f"{name} is no undo pack: no command uses or removes it; remove it yourself")
        return
    if is_discard:
        if number is None:
            raise click.UsageError("--discard wants the NUMBER of a pack; --list shows them")
        with locked(files, path):
            place = discard_pack(files, path, number).relative_to(path).as_posix()
        if as_json:
            render.emit({"kind": "discarded", "number": number, "place": place})
        else:
            render.say(f"undo pack {number} is in {place} now; nothing else was changed")
        return
    with locked(files, path):
        pack = undo_repair(files, path, number)
        left = list_packs(files, path)
    if as_json:
        render.emit(_fields(pack) | {"left": left})
        return
    restored = len(_changed(pack))
    render.say(
        f"repair {pack.number} is taken back: {render.count_text(restored, 'file')} as before,"
        f" {render.count_text(len(pack.created), 'new file')} removed"
    )
    if left:
        undo = shell_line(["seglog", "undo", path])
        older = render.count_text(len(left), "older undo pack")
        render.say(f"{older} left: `{undo}` takes back repair {left[-1]} next")


def _list_one(files: StoreRoot, path: Path, number: int, *, as_json: bool) -> None:
    try:
        _tell(read_whole(files, path, number), as_json=as_json)
    except (CorruptError, UnsafePathError, FileKindError) as error:
        if as_json:
            render.emit({"kind": "repair-unreadable", "number": number, "problem": str(error)})
        else:
            render.say(f"{number:3}  cannot be taken back: {render.printable(str(error))}")


def _tell(pack: UndoPack, *, as_json: bool) -> None:
    if as_json:
        render.emit(_fields(pack))
        return
    state = "half undone" if pack.is_undoing else "stopped half-way" if pack.after is None else "finished"
    changed = len(_changed(pack))
    render.say(
        f"{pack.number:3}  {render.time_text(pack.begun_ms)}  {state},"
        f" {render.count_text(changed, 'file')} changed, {len(pack.created)} new"
    )


def _changed(pack: UndoPack) -> set[str]:
    return {*pack.old, *pack.kept, *pack.moved, *pack.renamed}


def _fields(pack: UndoPack) -> dict[str, object]:
    return {
        "kind": "repair",
        "number": pack.number,
        "begun": pack.begun_ms,
        "finished": pack.after is not None,
        "undoing": pack.is_undoing,
        "changed": sorted(_changed(pack)),
        "created": sorted(pack.created),
    }

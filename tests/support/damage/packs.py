"""Undo packs as a stranger would make them: every checksum and count is right, the entries need not be."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from seglog.doctor.undo.store_fingerprint import state_of, walk_store
from seglog.doctor.undo.undo_pack import pack_folder
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.ours.seal import checksum
from seglog.storage.format.ours.undo_journal import UNDO_VERSION, UndoEntry, UndoKind, encode_undo_entry
from tests.support.damage.broker_damage import small_store
from tests.support.material.stores import fill

KEYS = "home/authorized_keys"
PLAN = "home/plan"
BEGIN = UndoEntry(UndoKind.BEGIN, position_bytes=UNDO_VERSION, size_bytes=1_700_000_000_000)


def entries_of(root: Path, *, mode: int = 0o644) -> list[UndoEntry]:
    """Returns the entries that say what a store is like now."""
    files = StoreRoot(root)  # which waits for no pipe
    entries = []
    for name, entry in walk_store(files, root):
        if entry.is_dir:
            entries.append(UndoEntry(UndoKind.FOLDER, name))
        else:
            state = state_of(files, root / name)
            entries.append(file_entry(name, state.size_bytes, state.content_crc32c, mode=mode))
    return entries


def file_entry(name: str, size_bytes: int = 0, crc: int = 0, *, mode: int = 0o644) -> UndoEntry:
    """Returns the entry of a file."""
    return UndoEntry(UndoKind.FILE, name, size_bytes=size_bytes, mode=mode, content_crc32c=crc)


def journal_bytes(entries: Iterable[UndoEntry], *, count: int | None = None) -> bytes:
    """Returns a whole journal, END included."""
    listed = list(entries)
    end = UndoEntry(UndoKind.END, position_bytes=len(listed) if count is None else count)
    return b"".join(map(encode_undo_entry, (*listed, end)))


def plant_pack(
    root: Path, entries: Iterable[UndoEntry], *, number: int = 1, after: Iterable[UndoEntry] | None = None
) -> Path:
    """Puts a pack into a store, and returns its folder."""
    folder = pack_folder(root, number)
    (folder / "kept").mkdir(parents=True, exist_ok=True)
    (folder / "journal").write_bytes(journal_bytes((BEGIN, *entries)))
    if after is not None:
        (folder / "after").write_bytes(journal_bytes(after))
    return folder


def store_among_others(folder: Path) -> Path:
    """Makes a store in a folder with things that are none of its business, and returns it."""
    with small_store(folder / "store") as opened:
        fill(opened, 20)
    for name in (KEYS, PLAN):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine, all of it")
        path.chmod(0o600)
    return folder / "store"


def surroundings(store: Path) -> dict[str, tuple[bytes, int]]:
    """Returns content and rights of every file beside a store."""
    outside = [path for path in store.parent.rglob("*") if not path.is_relative_to(store) and path.is_file()]
    return {path.name: (path.read_bytes(), path.stat().st_mode) for path in outside}


def outside_entries(store: Path, up: str = "../") -> list[UndoEntry]:
    """Returns a pack that fits, and writes over one file outside and deletes another one."""
    content = (store.parent / KEYS).read_bytes()
    undone = b"theirs" + content[6:]
    return [
        *entries_of(store),
        file_entry(f"{up}{KEYS}", len(undone), checksum(undone), mode=0o777),
        UndoEntry(UndoKind.BYTES, f"{up}{KEYS}", b"theirs", position_bytes=0, size_bytes=6),
        UndoEntry(UndoKind.CREATED, f"{up}{PLAN}"),
    ]

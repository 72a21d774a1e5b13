"""A disk in memory, which knows what of it a power cut leaves.

Bytes of a file reach the disk when it is synced, and names when their folder is. Before that anything may:
each changed page on its own, or some sectors of it, a new length without the bytes or the bytes of pages
without the others, and of the changed names a prefix (as a journal leaves) or any subset (as POSIX allows).
A rename reaches the disk whole or not at all, also one between two folders, if either of them is synced.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

PAGE_BYTES: Final = 4096
SECTOR_BYTES: Final = 512
ROOT: Final = Path("/")
_TORN: Final = 0.5
"""Share of the pages that did not reach the disk whole of which some sectors did."""
_ZEROS: Final = bytes(PAGE_BYTES)


class Content:
    """The bytes of one file.

    Attributes:
        data: As processes see them.
        durable: As they certainly are on the disk.
        lengths: That the file had since it was synced last; each may be the one on the disk.
    """

    __slots__ = ("data", "durable", "lengths")

    def __init__(self, durable: bytes = b"") -> None:
        self.data = bytearray(durable)
        self.durable = durable
        self.lengths: list[int] = []

    def resize(self, size_bytes: int) -> None:
        """Cuts or extends what processes see."""
        self.lengths.append(size_bytes)
        kept = self.data[:size_bytes]
        # A new array: the old one may still be mapped by a process that is dead.
        self.data = kept + bytes(size_bytes - len(kept))

    def sync(self) -> None:
        """Everything is on the disk."""
        if self.durable != self.data:
            self.durable = bytes(self.data)
        self.lengths.clear()

    def sync_page(self, page: int) -> None:
        """One page is on the disk, and the length that the file has now."""
        kept = bytearray(_fitted(self.durable, len(self.data)))
        at = page * PAGE_BYTES
        kept[at : at + PAGE_BYTES] = self.data[at : at + PAGE_BYTES]
        self.durable = bytes(kept)
        self.lengths.clear()

    def image(self, chance: random.Random, share: float) -> bytes:
        """Returns the bytes as a power cut may leave them.

        Args:
            chance: Decides.
            share: Of what was not synced, how much reached the disk.
        """
        if not self.lengths and self.durable == self.data:
            return self.durable
        length = len(self.data)
        if chance.random() >= share:
            length = chance.choice([len(self.durable), *self.lengths])
        found = bytearray(_fitted(self.durable, length))
        for at in range(0, min(length, len(self.data)), PAGE_BYTES):
            end = min(at + PAGE_BYTES, length)
            new = self.data[at:end]
            if found[at:end] != new:
                if chance.random() < share:
                    found[at : at + len(new)] = new
                elif share and chance.random() < _TORN:
                    _tear(found, at, new, chance)
        return bytes(found)


@dataclass(eq=False, slots=True)
class Folder:
    """The names in one folder, as processes see them and as they certainly are on the disk."""

    names: dict[str, Node]
    durable: dict[str, Node]


Node: TypeAlias = Content | Folder
_Names: TypeAlias = Mapping[Folder, dict[str, Node]]


@dataclass(frozen=True, slots=True)
class Change:
    """A name that went, one that came, or both at once."""

    node: Node
    gone: tuple[Folder, str] | None = None
    new: tuple[Folder, str] | None = None

    def touches(self, folder: Folder) -> bool:
        """Returns whether syncing a folder brings this to the disk."""
        return any(end is not None and end[0] is folder for end in (self.gone, self.new))

    def apply(self, names: _Names) -> None:
        """Does it to names on the disk; where the old name never came to be, there is nothing to go."""
        if self.gone is not None:
            folder, name = self.gone
            if names[folder].get(name) is self.node:
                del names[folder][name]
        if self.new is not None:
            folder, name = self.new
            names[folder][name] = self.node


class Disk:
    """Folders and files, and the changes of names that may not be on the disk yet, in order."""

    def __init__(self) -> None:
        self.folders = {ROOT: Folder({}, {})}
        self.gone: list[Folder] = []
        self.pending: list[Change] = []

    def change(self, change: Change) -> None:
        """Changes names as processes see them."""
        change.apply({folder: folder.names for folder in self._all_folders()})
        self.pending.append(change)

    def make_folder(self, path: Path) -> None:
        """Adds an empty folder."""
        made = Folder({}, {})
        self.folders[path] = made
        self.change(Change(made, new=(self.folders[path.parent], path.name)))

    def remove_folder(self, path: Path) -> None:
        """Takes an empty folder away; a power cut may bring it back as long as its parent is not synced."""
        gone = self.folders.pop(path)
        self.gone.append(gone)
        self.change(Change(gone, gone=(self.folders[path.parent], path.name)))

    def sync_names(self, folder: Folder) -> None:
        """The names in a folder are on the disk, and the way to it: real systems lose no synced folder."""
        way = {folder}
        for change in reversed(self.pending):
            if isinstance(change.node, Folder) and change.node in way and change.new is not None:
                way.add(change.new[0])
        self._commit([change for change in self.pending if change.touches(folder) or change.node in way])

    def write_back(self, chance: random.Random) -> None:
        """Brings something to the disk unasked, as the kernel does any time."""
        if self.pending and chance.random() < 0.2:
            self._commit(self.pending[: chance.randint(1, len(self.pending))])
            return
        node = chance.choice(list(chance.choice(list(self.folders.values())).names.values()) or [None])
        if isinstance(node, Content) and node.data:
            node.sync_page(chance.randrange(-(-len(node.data) // PAGE_BYTES)))

    def unsynced(self) -> set[Path]:
        """Returns the names of which a power cut may leave something else than processes see.

        Empty folders do not count.
        """
        found: set[Path] = set()
        for path, folder in self.folders.items():
            changed = folder.names.items() ^ folder.durable.items()
            found |= {path / name for name, node in changed if isinstance(node, Content) or node.names}
            found |= {path / name for name, node in folder.names.items() if _is_unsynced(node)}
        return found

    def image(self, chance: random.Random) -> Disk:
        """Returns a disk as it may be found after a power cut; everything on it is durable."""
        share = chance.choice((0.0, 0.2, 0.5, 0.8, 0.95, 1.0))
        names = {folder: dict(folder.durable) for folder in self._all_folders()}
        if chance.random() < 0.5:
            kept = self.pending[: chance.randint(0, len(self.pending))]
        else:
            kept = [change for change in self.pending if chance.random() < share]
        for change in kept:
            change.apply(names)
        found = Disk()
        found._fill(ROOT, self.folders[ROOT], names, (chance, share))
        return found

    def _all_folders(self) -> list[Folder]:
        return [*self.folders.values(), *self.gone]

    def _commit(self, done: list[Change]) -> None:
        names = {folder: folder.durable for folder in self._all_folders()}
        for change in done:
            change.apply(names)
        overtaken = {(change.node, change.gone) for change in done}  # the name that they made is gone already
        self.pending = [
            change
            for change in self.pending
            if change not in done and (change.new is None or (change.node, change.new) not in overtaken)
        ]

    def _fill(self, path: Path, source: Folder, names: _Names, fate: tuple[random.Random, float]) -> None:
        target = self.folders[path]
        for name, node in names[source].items():
            if isinstance(node, Folder):
                target.names[name] = self.folders[path / name] = Folder({}, {})
                self._fill(path / name, node, names, fate)
            else:
                target.names[name] = Content(node.image(*fate))
        target.durable.update(target.names)


def _is_unsynced(node: Node) -> bool:
    return isinstance(node, Content) and (bool(node.lengths) or node.durable != node.data)


def _fitted(data: bytes, length: int) -> bytes:
    return data[:length].ljust(length, b"\0")


def _tear(found: bytearray, start: int, new: bytearray, chance: random.Random) -> None:
    for at in range(0, len(new), SECTOR_BYTES):
        if chance.random() < 0.5:
            piece = new[at : at + SECTOR_BYTES]
            found[start + at : start + at + len(piece)] = piece


def is_hole(data: bytearray, at: int) -> bool:
    """Returns whether a page holds nothing but zeros, from ``at`` on."""
    piece = data[at : at - at % PAGE_BYTES + PAGE_BYTES]
    return piece == _ZEROS[: len(piece)]

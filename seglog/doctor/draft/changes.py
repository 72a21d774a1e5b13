"""The differences between a draft and its store: the changes to make, by file and stretch of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.doctor.draft.draft_file import DraftNode
from seglog.doctor.draft.draft_files import DraftFiles
from seglog.doctor.draft.draft_pages import PAGE_BYTES
from seglog.storage.files import OpenFile, read_part

CREATED: Final = "created"
REMOVED: Final = "removed"
MOVED: Final = "moved"
CHANGED: Final = "changed"
RENAMED: Final = "renamed"
"""Like a move, but to a name that another file gives up at the same time."""
MADE: Final = "folder made"
_COMPARED_BYTES: Final = 1 << 20

Stretch = tuple[int, int]
"""Start in the file, and length in bytes."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one file.

    Attributes:
        kind: One of :data:`CREATED`, :data:`REMOVED`, :data:`MOVED`, :data:`RENAMED`, :data:`CHANGED` and
            :data:`MADE`.
        path: The file, or folder.
        old_bytes: Its length before, 0 for a new file.
        new_bytes: Its length afterwards, 0 for a removed file.
        stretches: The stretches that differ, in order; for a new file those that are not zero.
        target: The new name of a file that is moved.
    """

    kind: str
    path: Path
    old_bytes: int = 0
    new_bytes: int = 0
    stretches: tuple[Stretch, ...] = ()
    target: Path | None = None

    @property
    def changed_bytes(self) -> int:
        """Number of bytes that differ."""
        return sum(size for _position, size in self.stretches)


def changes_of(draft: DraftFiles) -> list[Change]:
    """Returns the changes that make the real files equal to those of a draft; folders and moves first."""
    made = [Change(MADE, path) for path in sorted(draft.folders)]
    moves = {
        node.base: path
        for path, node in draft.nodes.items()
        if node is not None and node.base is not None and _is_move(draft, path, node)
    }
    moved = [Change(MOVED, source, target=target) for source, target in sorted(moves.items())]
    others: list[Change] = []
    for path in sorted(draft.nodes):
        if path in moves or path in moves.values():
            continue
        change = _change(draft, path, draft.nodes[path])
        if change is not None:
            others.append(change)
    return made + moved + others


def _is_move(draft: DraftFiles, path: Path, node: DraftNode) -> bool:
    """Returns whether a real file only got another name that was free, and its own name is unused."""
    is_free = node.base != path and not draft.files.exists(path)
    return is_free and node.base is not None and draft.nodes.get(node.base) is None and not node.is_touched


def _change(draft: DraftFiles, path: Path, node: DraftNode | None) -> Change | None:
    if not draft.files.exists(path):
        if node is None:
            return None
        with closing(draft.open(path, writable=False)) as new:
            return Change(CREATED, path, 0, node.size_bytes, tuple(_data(new)))
    with closing(draft.files.open(path, writable=False)) as old:
        if node is None:
            return Change(REMOVED, path, old.size_bytes)
        if node.base == path and not node.is_touched and old.size_bytes == node.size_bytes:
            return None
        with closing(draft.open(path, writable=False)) as new:
            stretches = tuple(_joined(_differing(node, path, old, new)))
        if not stretches and old.size_bytes == node.size_bytes:
            return None
        return Change(CHANGED, path, old.size_bytes, node.size_bytes, stretches)


def _data(new: OpenFile) -> Iterator[Stretch]:
    def pages() -> Iterator[Stretch]:
        at = new.next_data(0)
        while at is not None and at < new.size_bytes:
            page = bytes(read_part(new, at, PAGE_BYTES))
            if page.strip(b"\0"):
                yield at, len(page.rstrip(b"\0"))
            at = new.next_data(at + len(page))

    yield from _joined(pages())


def _differing(node: DraftNode, path: Path, old: OpenFile, new: OpenFile) -> Iterator[Stretch]:
    """Yields the stretches of a file that differ from the real file, within its new length."""
    size = new.size_bytes
    # Pages that were not written show the real file, up to the shortest length that the file was cut to.
    whole = node.base != path or node.base_bytes < min(size, old.size_bytes)
    for start, end in [(0, size)] if whole else node.changed_stretches():
        for at, stop in _with_data(start, end, old, new):
            yield from _differing_pages(at, stop, old, new)


def _with_data(start: int, end: int, old: OpenFile, new: OpenFile) -> Iterator[Stretch]:
    """Yields start and end of pieces of a stretch; parts that are holes in both files are left out."""
    while start < end:
        begins = [at for at in (old.next_data(start), new.next_data(start)) if at is not None]
        if not begins or min(begins) >= end:
            return
        first = min(begins) // PAGE_BYTES * PAGE_BYTES
        start = min(first + _COMPARED_BYTES, end)
        yield first, start


def _differing_pages(start: int, end: int, old: OpenFile, new: OpenFile) -> Iterator[Stretch]:
    """Yields the differing pages of a piece."""
    is_now = bytes(read_part(new, start, end - start))
    was = bytes(read_part(old, start, end - start)).ljust(len(is_now), b"\0")[: len(is_now)]
    if is_now == was:
        return
    for at in range(0, len(is_now), PAGE_BYTES):
        one, other = is_now[at : at + PAGE_BYTES], was[at : at + PAGE_BYTES]
        if one == other:
            continue
        low = next(place for place, (left, right) in enumerate(zip(one, other, strict=True)) if left != right)
        high = next(place for place in range(len(one) - 1, -1, -1) if one[place] != other[place])
        yield start + at + low, high + 1 - low


def _joined(stretches: Iterator[Stretch]) -> Iterator[Stretch]:
    """Joins stretches whose distance is shorter than the description of a stretch."""
    near = 64
    held: Stretch | None = None
    for position, size in stretches:
        if held is not None and position - sum(held) <= near:
            held = held[0], position + size - held[0]
            continue
        if held is not None:
            yield held
        held = position, size
    if held is not None:
        yield held

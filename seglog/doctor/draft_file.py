"""One file of a draft: the bytes of a real file, with changes on top that are only in memory.

Changes are kept by page of 4 KiB, pages of zeros at no cost, so that filling a lost segment of 1 GiB takes
little. A file that is mapped is taken into memory whole: what goes through a map cannot be seen otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from seglog.storage.files import Files, OpenFile
from seglog.storage.log_files import has_data

PAGE_BYTES: Final = 4096
ZEROS: Final = bytes(PAGE_BYTES)


class DraftNode:
    """The content of a file, whatever it is called by now.

    Attributes:
        base: The real file that it began as, None for one that the draft made.
        size_bytes: Its length.
        base_bytes: How much of the real file still shows where no page lies over it.
        pages: Changed pages by number; :data:`ZEROS` itself for those that hold nothing else.
        mapped: The whole content once it was mapped.
    """

    __slots__ = ("base", "base_bytes", "mapped", "pages", "size_bytes")

    def __init__(self, base: Path | None, size_bytes: int) -> None:
        self.base = base
        self.size_bytes = size_bytes
        self.base_bytes = 0 if base is None else size_bytes
        self.pages: dict[int, bytes] = {}
        self.mapped: bytearray | None = None

    @property
    def is_touched(self) -> bool:
        """Whether anything was written, or may have been."""
        return bool(self.pages) or self.mapped is not None or self.base_bytes != self.size_bytes

    def resize(self, size_bytes: int) -> None:
        """Cuts the file, or extends it by zeros."""
        if self.mapped is not None:
            # A new array: the old one may still be mapped.
            self.mapped = bytearray(self.mapped[:size_bytes].ljust(size_bytes, b"\0"))
        if size_bytes < self.size_bytes:
            self.base_bytes = min(self.base_bytes, size_bytes)
            last = size_bytes // PAGE_BYTES
            self.pages = {number: page for number, page in self.pages.items() if number <= last}
            if last in self.pages:
                self.pages[last] = self.pages[last][: size_bytes % PAGE_BYTES].ljust(PAGE_BYTES, b"\0")
        self.size_bytes = size_bytes

    def empty(self) -> None:
        """Forgets all content."""
        self.mapped = None
        self.pages.clear()
        self.size_bytes = self.base_bytes = 0

    def changed_pages(self) -> Iterator[int]:
        """Yields the numbers of pages that may differ from the real file, in order."""
        if self.mapped is None:
            yield from sorted(self.pages)
        else:
            yield from range(-(-self.size_bytes // PAGE_BYTES))


class DraftFile:
    """An open file of a draft.

    Args:
        node: Its content.
        files: Where the real file is.
    """

    def __init__(self, node: DraftNode, files: Files) -> None:
        self._node = node
        self._base: OpenFile | None = None if node.base is None else files.open(node.base, writable=False)

    @property
    def size_bytes(self) -> int:
        """Length of the file now."""
        return self._node.size_bytes

    @property
    def descriptor(self) -> int:
        """None: nobody writes beside the draft."""
        return -1

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Reads the real file, and what lies over it."""
        node = self._node
        count = max(0, min(len(buffer), node.size_bytes - position))
        if node.mapped is not None:
            buffer[:count] = node.mapped[position : position + count]
            return count
        from_base = max(0, min(count, node.base_bytes - position))
        if from_base and self._base is not None:
            from_base = self._base.read_into(buffer[:from_base], position)
        else:
            from_base = 0
        buffer[from_base:count] = bytes(count - from_base)
        if node.pages:
            self._lay_pages(buffer[:count], position)
        return count

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes into pages of the draft."""
        node = self._node
        end = position + len(data)
        if node.mapped is not None:
            if end > node.size_bytes:
                node.resize(end)
            node.mapped[position:end] = data
            return
        view = memoryview(data)
        for number in range(position // PAGE_BYTES, -(-end // PAGE_BYTES)):
            start = number * PAGE_BYTES
            low, high = max(start, position), min(start + PAGE_BYTES, end)
            piece = view[low - position : high - position]
            if len(piece) < PAGE_BYTES:
                page = bytearray(PAGE_BYTES)
                self.read_into(memoryview(page), start)
                page[low - start : high - start] = piece
                piece = memoryview(page)
            node.pages[number] = bytes(piece) if has_data(piece) else ZEROS
        node.size_bytes = max(node.size_bytes, end)

    def next_data(self, position: int) -> int | None:
        """Returns where the real file or a page has something next."""
        node = self._node
        if node.mapped is not None:
            return position if position < node.size_bytes else None
        found = (
            self._base.next_data(position) if self._base is not None and position < node.base_bytes else None
        )
        if found is not None and found >= node.base_bytes:
            found = None
        for number, page in node.pages.items():
            if page is not ZEROS and (number + 1) * PAGE_BYTES > position:
                start = max(position, number * PAGE_BYTES)
                found = start if found is None else min(found, start)
        return found if found is None or found < node.size_bytes else None

    def set_size(self, size_bytes: int) -> None:
        """Cuts the file or extends it."""
        self._node.resize(size_bytes)

    def reserve(self, position: int, size_bytes: int) -> None:
        """Extends the file where it is shorter, as reserving space on a disk does."""
        if position + size_bytes > self._node.size_bytes:
            self._node.resize(position + size_bytes)

    def map(self) -> memoryview:
        """Takes the whole file into memory."""
        node = self._node
        if node.mapped is None:
            whole = bytearray(node.size_bytes)
            at = self.next_data(0)
            while at is not None:
                end = min(at + (1 << 20), node.size_bytes)
                self.read_into(memoryview(whole)[at:end], at)
                at = self.next_data(end) if end < node.size_bytes else None
            node.mapped = whole
        return memoryview(node.mapped)

    def sync(self) -> None:
        """Nothing of a draft is on a disk."""

    def close(self) -> None:
        """Closes the real file."""
        if self._base is not None:
            self._base.close()
            self._base = None

    def _lay_pages(self, buffer: memoryview, position: int) -> None:
        first, last = position // PAGE_BYTES, (position + len(buffer) - 1) // PAGE_BYTES
        for number in range(first, last + 1):
            page = self._node.pages.get(number)
            if page is not None:
                start = number * PAGE_BYTES
                low, high = max(start, position), min(start + PAGE_BYTES, position + len(buffer))
                buffer[low - position : high - position] = page[low - start : high - start]

"""The commit-log files of a store: which are part of the log, and reads that cannot fault.

Reads go through ``pread``: the files may belong to a running broker, or be cut while we look, and a map
would then end the process. Maps are for the native kernels, whose guard reports it to them.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from seglog.storage.files.files import Entry, Files, OpenFile
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import COMMIT_LOG, parse_segment_file_name, segment_file_name

SCRATCH_BYTES = 8 << 20
_DATA_STEP_BYTES: Final = 512 << 10


_PACKED: Final = re.compile(r"(\d{20})(?:\.tar|\.\d+)?\.(?:7z|bz2|gz|lz4|lzo|xz|z|Z|zip|zst)")
"""Names of compressed files, as rotation of logs and people make them."""
MAX_MISSING: Final = 1 << 16
"""How many files in a row may be missing from a log: 64 TiB of RocketMQ's default length."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the log: offset of its first byte and its length on disk."""

    first_offset: int
    size_bytes: int


def list_log_files(files: Files, root: Path) -> tuple[list[LogFile], list[Finding]]:
    """Returns the commit-log files in order, and a finding for every other file beside them.

    A compressed file with the name of one that the log lacks may have its messages.
    """
    found: list[LogFile] = []
    others: list[Entry] = []
    for entry in files.list_dir(root / COMMIT_LOG):
        if entry.is_dir:
            continue
        first = parse_segment_file_name(entry.name)
        if first is None:
            others.append(entry)
        else:
            found.append(LogFile(first, entry.size_bytes))
    there = {file.first_offset for file in found}
    findings: list[Finding] = []
    for entry in others:
        packed = _PACKED.fullmatch(entry.name)
        first = parse_segment_file_name(packed[1]) if packed else None
        code = "log-file-stray" if first is None or first in there else "log-file-packed"
        findings.append(Finding(code, f"{COMMIT_LOG}/{entry.name}", size_bytes=entry.size_bytes))
    return found, findings


def place_log_files(log_files: list[LogFile], segment_size_bytes: int) -> tuple[list[LogFile], list[Finding]]:
    """Returns the files that can be of one log; a finding for each other.

    A log file's name is a multiple of the segments' length, and not further from the others than
    :data:`MAX_MISSING` files: a name, or one flipped bit of a place, may claim any distance, and each file
    that is missing between two is accounted for.
    """
    groups: list[list[LogFile]] = []
    misplaced: list[tuple[LogFile, str]] = []
    most = (MAX_MISSING + 1) * segment_size_bytes
    for file in sorted(log_files, key=lambda one: one.first_offset):
        if file.first_offset % segment_size_bytes:
            misplaced.append((file, f"a multiple of {segment_size_bytes}"))
        elif groups and file.first_offset - groups[-1][-1].first_offset <= most:
            groups[-1].append(file)
        else:
            groups.append([file])
    placed = max(groups, key=len, default=[])
    far = [file for group in groups if group is not placed for file in group]
    misplaced += [(file, f"a place within {MAX_MISSING} files of the others") for file in far]
    return placed, [
        Finding(
            "log-file-stray",
            f"{COMMIT_LOG}/{segment_file_name(file.first_offset)}",
            size_bytes=file.size_bytes,
            expected=expected,
            found=str(file.first_offset),
        )
        for file, expected in misplaced
    ]


def log_start(log_files: list[LogFile], end_phy_offset: int) -> int:
    """Returns where a log with that end starts; -1 without any segment, as RocketMQ says it."""
    kept = [file.first_offset for file in log_files if file.first_offset < end_phy_offset]
    if not kept and end_phy_offset > 0:
        return end_phy_offset
    return min(kept, default=-1)


class LogReader:
    """Reads stretches of the log by physical offset.

    Keeps one file open at a time: scans go forward.

    Args:
        files: Where the store is.
        root: The store directory.
        segment_size_bytes: Length of every commit-log file.
    """

    def __init__(self, files: Files, root: Path, segment_size_bytes: int) -> None:
        self._files = files
        self._directory = root / COMMIT_LOG
        self._segment_size_bytes = segment_size_bytes
        self._first_offset: int | None = None
        self._handle: OpenFile | None = None
        self._map: memoryview | None = None

    def read(self, phy_offset: int, size_bytes: int) -> memoryview:
        """Returns up to ``size_bytes`` from one segment; shorter where the file ends, empty if it is gone."""
        size_bytes = min(size_bytes, self.available(phy_offset))
        # Not a bytearray: arrays are not zeroed first, and large ones are of huge pages where there are any.
        return self._fill(np.empty(size_bytes, np.uint8).data, phy_offset)

    def read_into(self, phy_offset: int, buffer: memoryview) -> memoryview:
        """Reads from one segment into memory of the caller's; returns the part of it that was filled."""
        return self._fill(buffer[: self.available(phy_offset)], phy_offset)

    def _fill(self, buffer: memoryview, phy_offset: int) -> memoryview:
        position = phy_offset % self._segment_size_bytes
        handle = self._open(phy_offset - position)
        if handle is None or not len(buffer):
            return memoryview(b"")
        return buffer[: handle.read_into(buffer, position)]

    def map(self, phy_offset: int) -> memoryview | None:
        """Returns the file that ``phy_offset`` is in as memory; None if it is gone or cannot be mapped.

        Only for native kernels, which survive it if the file is cut; valid while it is referenced.
        """
        handle = self._open(phy_offset - phy_offset % self._segment_size_bytes)
        if handle is None:
            return None
        size = min(handle.size_bytes, self._segment_size_bytes)
        if self._map is None or len(self._map) != size:
            try:
                self._map = handle.map()[:size] if size else None
            except (OSError, ValueError):
                self._map = None
        return self._map

    def let_go(self, start: int, end: int) -> None:
        """Gives back the pages of a stretch of the map: they count as memory of ours once they were read.

        They stay in the system's cache, and may be read again.
        """
        if self._map is None or self._first_offset is None:
            return
        pages = self._map.obj
        if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            first = (start - self._first_offset) // mmap.PAGESIZE * mmap.PAGESIZE
            last = min(end - self._first_offset, len(pages))
            if 0 <= first < last:  # else it is of another file than that read last
                pages.madvise(mmap.MADV_DONTNEED, first, last - first)

    def available(self, phy_offset: int) -> int:
        """Returns how many bytes the file of ``phy_offset`` has from there on."""
        position = phy_offset % self._segment_size_bytes
        handle = self._open(phy_offset - position)
        if handle is None:
            return 0
        return max(0, min(handle.size_bytes, self._segment_size_bytes) - position)

    def next_data(self, phy_offset: int) -> int | None:
        """Returns where the next bytes are that were ever written, None if none follow in the segment."""
        position = phy_offset % self._segment_size_bytes
        handle = self._open(phy_offset - position)
        found = None if handle is None else handle.next_data(position)
        if found is None or found >= self._segment_size_bytes:
            return None
        return phy_offset - position + found

    def data_stretches(self, start: int, end: int) -> list[tuple[int, int]]:
        """Returns where data begins and ends in a stretch of one segment, rounded up to half a MiB.

        All of it before the first read: space that was reserved and never written counts as data once it was
        read, by the kernel ahead of us too, so that a scan from data to data would make its own way to the
        end of the file.
        """
        found: list[tuple[int, int]] = []
        at = self.next_data(start)
        while at is not None and at < end:
            stop = min(end, at + _DATA_STEP_BYTES)
            if found and found[-1][1] == at:
                found[-1] = (found[-1][0], stop)
            else:
                found.append((at, stop))
            at = self.next_data(stop)
        return found

    def chunks(
        self, start: int, end: int, size_bytes: int = SCRATCH_BYTES
    ) -> Iterator[tuple[int, memoryview]]:
        """Yields ``(phy_offset, bytes)`` for the data of a stretch of one segment; holes are left out."""
        for first, stop in self.data_stretches(start, end):
            for at in range(first, stop, size_bytes):
                chunk = self.read(at, min(size_bytes, stop - at))
                if not chunk:
                    return
                yield at, chunk

    def close(self) -> None:
        """Closes the open file."""
        if self._handle is not None:
            self._handle.close()
        self._handle = self._first_offset = self._map = None

    def _open(self, first_offset: int) -> OpenFile | None:
        if first_offset != self._first_offset:
            self.close()
            try:
                self._handle = self._files.open(
                    self._directory / segment_file_name(first_offset), writable=False
                )
            except FileNotFoundError:
                return None
            self._first_offset = first_offset
        return self._handle


def last_data_end(reader: LogReader, start: int, end: int) -> int:
    """Returns the end of the last byte other than 0 in a stretch of one segment, ``start`` without any."""
    last = start
    for at, chunk in reader.chunks(start, end):
        if has_data(chunk):
            last = at + len(bytes(chunk).rstrip(b"\0"))
    return last


def has_data(chunk: memoryview) -> bool:
    """Returns whether any byte is other than 0, many times as fast as stripping or searching would tell."""
    whole = len(chunk) - len(chunk) % 8
    words = np.frombuffer(chunk[:whole], np.uint64)
    return bool(len(words) and words.max()) or any(chunk[whole:])  # `any` would cast them to bool first

"""A killed store of 100 messages in one queue, and ways to damage it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from seglog.storage.store import MessageStore
from tests.support.material.records import Record
from tests.support.material.stores import QUEUE_FILE_BYTES, SEGMENT_BYTES, new_clock, read_all


class Image:
    """A store of messages in one queue, as a kill of its writer left it, and their places."""

    def __init__(self, root: Path, starts: list[int], sizes: list[int]) -> None:
        self.root = root
        self.starts = starts
        self.sizes = sizes
        self.end = starts[-1] + sizes[-1]

    def segment(self, phy_offset: int) -> Path:
        return self.root / "commitlog" / f"{phy_offset - phy_offset % SEGMENT_BYTES:020d}"

    def queue_file(self, number: int) -> Path:
        return self.root / "consumequeue" / "T" / "0" / f"{number * QUEUE_FILE_BYTES:020d}"

    def write(self, phy_offset: int, data: bytes) -> None:
        with self.segment(phy_offset).open("r+b") as file:
            file.seek(phy_offset % SEGMENT_BYTES)
            file.write(data)

    def flip(self, phy_offset: int, mask: int = 1) -> None:
        data = self.segment(phy_offset).read_bytes()
        self.write(phy_offset, bytes([data[phy_offset % SEGMENT_BYTES] ^ mask]))

    def rot(self, phy_offset: int) -> None:
        """Damages four bytes so that no single bit explains it; twice is as never."""
        at = phy_offset % SEGMENT_BYTES
        data = self.segment(phy_offset).read_bytes()[at : at + 4]
        self.write(phy_offset, bytes(byte ^ 0x5A for byte in data))

    def record(self, slot: int) -> bytes:
        at = self.starts[slot] % SEGMENT_BYTES
        return self.segment(self.starts[slot]).read_bytes()[at : at + self.sizes[slot]]

    def stale(self, phy_offset: int, older_ms: int, queue_offset: int) -> bytes:
        """Returns a valid record of this queue for that place, older than everything in the log."""
        return replace(
            Record(topic=b"T", body=b"stale", record_crc=True),
            phy_offset=phy_offset,
            queue_offset=queue_offset,
            store_timestamp_ms=new_clock().now_ms() - older_ms,
        ).pack()


def in_segment(image: Image, number: int) -> list[int]:
    """Returns the slots of the messages in a segment."""
    return [slot for slot, start in enumerate(image.starts) if start // SEGMENT_BYTES == number]


def torn(image: Image, slot: int, kept_bytes: int) -> None:
    """Zeroes the end of a record, and with 0 bytes kept all of it."""
    image.write(image.starts[slot] + kept_bytes, bytes(image.sizes[slot] - kept_bytes))


def remove(path: Path) -> None:
    """Removes a file or a folder with all that is in it."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def shorten(path: Path, size_bytes: int) -> None:
    """Cuts a file."""
    with path.open("r+b") as file:
        file.truncate(size_bytes)


def swap(one: Path, other: Path) -> None:
    """Exchanges the contents of two files."""
    one_bytes, other_bytes = one.read_bytes(), other.read_bytes()
    one.write_bytes(other_bytes)
    other.write_bytes(one_bytes)


def made(directory: Path) -> Path:
    """Makes a folder where it is missing and returns it."""
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def last_end(image: Image, segment: int) -> int:
    """Returns where the last record of a segment ends."""
    last = in_segment(image, segment)[-1]
    return image.starts[last] + image.sizes[last]


def slots(store: MessageStore) -> list[int]:
    """Returns the queue offsets that a reader of the queue comes by, and checks their bodies."""
    messages = read_all(store, "T", 0)
    assert all(message.body.startswith(b"%d " % message.queue_offset) for message in messages)
    return [message.queue_offset for message in messages]

"""Small sealed stores, and what may happen to one of their segments."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from seglog.clock import VirtualClock
from seglog.doctor.check.verify import verify_store
from seglog.storage.format.names import segment_file_name
from seglog.storage.store import MessageStore

SEGMENT_BYTES = 256 << 10
BLOCK_BYTES = 64 << 10
BODY_BYTES = 900
COUNT = 1150


def fill(path: Path, count: int, clock: VirtualClock, *, record_crc: bool = True, seed: int = 0) -> None:
    """Puts ``count`` messages of about 1 KiB into three queues; without keys and tags no index is made."""
    chance = random.Random(seed)
    with MessageStore.open(
        path,
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=20_000,
        record_crc=record_crc,
        clock=clock,
    ) as store:
        for number in range(count):
            clock.advance(1)
            body = chance.randbytes(BODY_BYTES + number % 50)
            store.put("orders", body, queue_id=number % 3)


def sealed_store(path: Path, count: int = COUNT, *, record_crc: bool = True) -> VirtualClock:
    """Makes a store of four full segments and a bit more, seals it, and returns its clock."""
    clock = VirtualClock()
    fill(path, count, clock, record_crc=record_crc)
    clock.advance(1000)
    report = verify_store(path, seal=True, clock=clock)
    assert report.is_clean
    assert report.sealed == tuple(range(0, 4 * SEGMENT_BYTES, SEGMENT_BYTES))
    return clock


def segment(path: Path, number: int) -> Path:
    """Returns the file of the ``number``-th segment."""
    return path / "commitlog" / segment_file_name(number * SEGMENT_BYTES)


def seal_of(path: Path, number: int) -> Path:
    """Returns the seal of the ``number``-th segment."""
    return path / "seglog" / "seals" / f"{segment_file_name(number * SEGMENT_BYTES)}.seal"


def flip(file: Path, position: int, mask: int = 1) -> None:
    """Flips bits of one byte."""
    with file.open("r+b") as stream:
        stream.seek(position)
        byte = stream.read(1)[0]
        stream.seek(position)
        stream.write(bytes([byte ^ mask]))


def sealed_stores(base: Path) -> dict[bool, tuple[Path, VirtualClock]]:
    """Makes a sealed store with ``__CRC32#`` and one without; returns each with its clock."""
    return {
        crc: (base / f"crc-{crc}", sealed_store(base / f"crc-{crc}", record_crc=crc)) for crc in (True, False)
    }


def record_near(path: Path, number: int, position: int) -> tuple[int, int]:
    """Returns start and size of the record that covers a position of a segment."""
    raw = segment(path, number).read_bytes()
    at = 0
    while True:
        size = struct.unpack_from(">i", raw, at)[0]
        if at + size > position:
            return at, size
        at += size

"""Damage to the units in front of a queue's first living message, where RocketMQ looks for its least offset.

Retention took the front of the log, so the first units of a queue's first file lead to messages that have
gone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from seglog import MessageStore
from seglog.storage.format.names import CONSUME_QUEUE
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES
from tests.support.damage.queue_damage import exchange
from tests.support.material.stores import SMALL_INDEX, new_clock

SEGMENT: Final = 64 << 10
FILE_BYTES: Final = 4_000
_UNITS: Final = FILE_BYTES // CQ_UNIT_BYTES
_PROBED: Final = 49
"""Slot of C, of an expired message, that RocketMQ asks: a quarter of its first file."""

Damage = Callable[[Path], None]


def aged_store(root: Path) -> Path:
    """Makes a store of which retention took the front: plain queues, and their log."""
    with MessageStore.open(
        root, clock=new_clock(), segment_size_bytes=SEGMENT, queue_file_size_bytes=FILE_BYTES, **SMALL_INDEX
    ) as store:
        for number in range(900):
            store.put("A", b"a%d" % number * 30, keys=f"a{number}")
            store.put("B", b"b%d" % number * 30)
            if number % 4 == 0:
                store.put("C", b"c%d" % number)
            if number < 150:
                store.put("Gone", b"g%d" % number)
            if number == 700:
                store.put("Late", b"late")
        store.retention.delete_before(3 * SEGMENT)
    return root


def rebuilt_store(root: Path) -> Path:
    """Makes such a store whose queue files were lost and rebuilt: empty units stand for what is gone."""
    shutil.rmtree(aged_store(root) / CONSUME_QUEUE)
    MessageStore.open(root, clock=new_clock(), create=False, queue_file_size_bytes=FILE_BYTES).close()
    return root


def first_file(root: Path, topic: str, folder: str = CONSUME_QUEUE) -> Path:
    """Returns the first file of queue 0 of a topic."""
    return min((root / folder / topic / "0").iterdir())


def expired_units(root: Path, topic: str) -> int:
    """Returns how many units at the front of a queue's first file lead to messages that retention took."""
    units = memoryview(first_file(root, topic).read_bytes())
    places = [CQ_UNIT.struct.unpack_from(units, at)[0] for at in range(0, len(units), CQ_UNIT_BYTES)]
    return sum(place < 3 * SEGMENT for place in places)


def _unit(root: Path, topic: str, number: int) -> bytes:
    data = first_file(root, topic).read_bytes()
    return data[number * CQ_UNIT_BYTES :][:CQ_UNIT_BYTES]


def _write(path: Path, number: int, units: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[number * CQ_UNIT_BYTES : number * CQ_UNIT_BYTES + len(units)] = units
    path.write_bytes(data)


def _over(number: int) -> Damage:
    """One living unit of another queue over a unit of C that leads to nothing any more."""
    return lambda root: _write(first_file(root, "C"), number, _unit(root, "B", _UNITS - 1))


def _zeros(number: int) -> Damage:
    return lambda root: _write(first_file(root, "C"), number, bytes(CQ_UNIT_BYTES))


def _older_file(root: Path) -> None:
    """In front of A's first file stands one whose units lead to living messages of B."""
    first = first_file(root, "A")
    older = first.with_name(f"{int(first.name) - FILE_BYTES:020d}")
    older.write_bytes(sorted((root / CONSUME_QUEUE / "B" / "0").iterdir())[1].read_bytes())


def _foreign_front(root: Path) -> None:
    """All units of C in front of its first message lead to living messages of B."""
    living = sorted((root / CONSUME_QUEUE / "B" / "0").iterdir())[1].read_bytes()
    _write(first_file(root, "C"), 0, living[: expired_units(root, "C") * CQ_UNIT_BYTES])


def _exchanged_folders(root: Path) -> None:
    exchange(*(root / CONSUME_QUEUE / topic / "0" for topic in ("A", "C")))


def _expired_behind(root: Path) -> None:
    """Behind the only message of Late come units that lead before the log, or nowhere."""
    _write(first_file(root, "Late"), 1, _unit(root, "A", 0) * (_UNITS - 1))


HEADS: Final[dict[str, Damage]] = {
    "a unit of another queue over the first slot": _over(0),
    "a unit of another queue between expired ones": _over(_PROBED),
    "zeros over the first slot": _zeros(0),
    "zeros between expired ones": _zeros(_PROBED),
    "units of another queue over all expired ones": _foreign_front,
    "an older file with units of another queue": _older_file,
    "two queues under each other's names": _exchanged_folders,
    "expired units behind a living message": _expired_behind,
}

"""How many messages an inner batch has: its body and its queue know it where its property is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seglog.doctor.check.check import check_store
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT
from seglog.storage.store import MessageStore
from tests.support.damage.treatment import run
from tests.support.material import golden
from tests.support.material.stores import new_clock

NUMBER = b"INNER_NUM\x01"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return golden.extract("innerbatch", tmp_path)


def a_batch(root: Path) -> tuple[Path, int, int]:
    """Returns the log, and where a batch of several messages says how many, and their number."""
    log = root / "commitlog" / f"{0:020}"
    units = np.frombuffer(next((root / "batchconsumequeue").rglob("0" * 20)).read_bytes(), BATCH_UNIT.dtype)
    unit = units[units["batch_size"] > 1][3]
    place, size = int(unit["phy_offset"]), int(unit["size_bytes"])
    return log, log.read_bytes().index(NUMBER, place, place + size), int(unit["batch_size"])


def damage(path: Path, at: int, content: bytes) -> None:
    """Overwrites bytes of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


DAMAGES = {
    "another number": (len(NUMBER), b"1"),
    "no number": (len(NUMBER), b"x"),
    "its end and the number": (len(NUMBER) - 2, b"\xd5g\x01\x05"),
    "another name": (2, b"OUTER"[:3]),
}


@pytest.mark.parametrize(("at", "content"), DAMAGES.values(), ids=DAMAGES)
def test_a_repair_and_an_opening_write_the_number_again(root: Path, at: int, content: bytes):
    log, place, count = a_batch(root)
    whole = log.read_bytes()
    damage(log, place + at, content)
    report = check_store(root, clock=new_clock())
    assert report.lost_messages == 0
    (found,) = (one for one in report.findings if one.code == "record-repairable")
    assert "number of messages" in found.found
    assert run("repair", "--apply", "--yes", root)[0] == 0
    assert log.read_bytes() == whole
    damage(log, place + at, content)
    MessageStore.open(root, clock=new_clock()).close()
    assert log.read_bytes() == whole
    assert count > 1


def test_a_number_is_not_changed_where_the_body_does_not_hold_as_many(root: Path):
    log, place, count = a_batch(root)
    damage(log, place + len(NUMBER), str(count - 1).encode())
    for path in (root / "batchconsumequeue").rglob("0" * 20):  # its queue has yet another
        units = np.frombuffer(path.read_bytes(), BATCH_UNIT.dtype).copy()
        units["batch_size"][units["batch_size"] == count] += 1
        path.write_bytes(units.tobytes())
    assert not [
        one for one in check_store(root, clock=new_clock()).findings if one.code == "record-repairable"
    ]

"""A writer is killed again and again, at any moment: nothing acknowledged is lost, nothing is made up."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from seglog.storage.store import MessageStore
from tests.support.kill_writer import QUEUES, body_of
from tests.support.stores import SMALL, read_all

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 20


def run_and_kill(store: Path, durability: str, first: int, batch: int, after_s: float) -> int:
    """Lets a writer work for a while from its first acknowledgement on; returns the last number of them."""
    command = [
        sys.executable,
        "-m",
        "tests.support.kill_writer",
        str(store),
        durability,
        str(first),
        str(batch),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline()]
        timer = threading.Timer(after_s, process.kill)
        timer.start()
        acknowledged += process.stdout.readlines()
        timer.join()
    assert process.returncode == -9
    whole = [line for line in acknowledged if line.endswith(b"\n")]
    return int(whole[-1])


def numbers_in(path: Path, batch: int) -> list[int]:
    """Returns the numbers of all messages, sorted; every body is checked, and the order in each queue."""
    found: list[int] = []
    with MessageStore.open(path, **SMALL) as store:
        for queue_id in range(QUEUES):
            messages = read_all(store, "T", queue_id)
            assert [message.queue_offset for message in messages] == list(range(len(messages)))
            numbers = [int(message.body.split(b":")[0]) for message in messages]
            assert [message.body for message in messages] == [body_of(number) for number in numbers]
            assert numbers == sorted(set(numbers))
            assert all(number // batch % QUEUES == queue_id for number in numbers)
            found += numbers
    return sorted(found)


@pytest.mark.parametrize(("durability", "batch"), [("sync", 1), ("async", 1), ("async", 4)])
def test_nothing_acknowledged_is_lost_in_twenty_kills(tmp_path, durability, batch):
    seconds = random.Random(7)
    there: list[int] = []
    for _round in range(ROUNDS):
        first = there[-1] + 1 if there else 0
        first += -first % batch
        last = run_and_kill(tmp_path / "store", durability, first, batch, seconds.uniform(0.0, 0.15))
        before, there = there, numbers_in(tmp_path / "store", batch)
        assert there[: len(before)] == before
        new = there[len(before) :]
        assert new[: last - first + 1] == list(range(first, last + 1))
        # What was under way when the process died may be there too, as far as it came.
        assert new == list(range(first, first + len(new)))
        assert len(new) <= last - first + 1 + batch

"""What a check says of the timer where other parts of the store are missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from seglog.doctor.check.check import check_store
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.format.system_names import TIMER_TOPIC
from seglog.storage.format.timer import decode_timer_checkpoint, read_timer_log
from tests.support.damage.treatment import run
from tests.support.material import golden
from tests.support.material.sealed import flip
from tests.support.material.stores import new_clock


@pytest.fixture
def root(tmp_path):
    return golden.extract("real-conf-5.4.0", tmp_path)


def found(root):
    return {one.code: one.messages for one in check_store(root, clock=new_clock()).findings}


def test_without_its_checkpoint_each_message_of_the_timer_waits_once(root):
    assert found(root)["timer-waiting"] == 60
    (root / "config" / "timercheck").unlink()
    codes = found(root)
    assert codes["timer-waiting"] == codes["timer-check-missing"] == 90


def test_without_its_queue_the_units_of_the_timer_lead_to_the_records_of_the_log(root):
    shutil.rmtree(root / "consumequeue" / TIMER_TOPIC)
    codes = found(root)
    assert "queue-missing" in codes
    assert "timer-unit-stray" not in codes


def test_messages_of_the_timer_that_are_lost_do_not_wait(root):
    queue = root / "consumequeue" / TIMER_TOPIC / "0"
    units = np.concatenate(
        [np.frombuffer(path.read_bytes(), CQ_UNIT.dtype) for path in sorted(queue.iterdir())]
    )
    places = units["phy_offset"][units["size_bytes"] > 0]
    log = {int(path.name): path for path in (root / "commitlog").iterdir()}
    in_wheel = timers_in_wheel(root)
    lost = [place for place in places[-20:].tolist() if place in in_wheel]
    assert len(lost) > 5
    for place in lost:
        first = max(first for first in log if first <= place)
        flip(log[first], place - first + 120, 0xFF)
    assert run("repair", "--apply", "--yes", root)[0] == 0
    findings = check_store(root, clock=new_clock()).findings
    assert sum(one.messages for one in findings if one.code == "tombstones") == len(lost)
    assert found(root)["timer-waiting"] == 60 - len(lost)
    (root / "config" / "timercheck").unlink()
    assert found(root)["timer-waiting"] == 90 - len(lost)


def timers_in_wheel(root: Path) -> set[int]:
    """Returns the places in the log of the messages in slots that the timer has not read yet."""
    check = decode_timer_checkpoint((root / "config" / "timercheck").read_bytes())
    found: set[int] = set()
    for path in (root / "timerlog").iterdir():
        units = read_timer_log(path.read_bytes()).units
        due_ms = units["write_timestamp_ms"] + units["delay_ms"].astype(np.int64)
        found |= set(units["phy_offset"][due_ms >= check.last_read_timestamp_ms].tolist())
    return found

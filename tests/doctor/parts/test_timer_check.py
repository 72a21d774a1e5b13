"""What a check says of the timer where other parts of the store are missing."""

from __future__ import annotations

import shutil

import pytest

from seglog.doctor.check.check import check_store
from seglog.storage.format.system_names import TIMER_TOPIC
from tests.support.material import golden
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

"""The timer's files are rebuilt from the timer topic: what waits is kept, what was delivered is not."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.parts.timer_messages import TimerMessage, wanted_units
from seglog.doctor.repair.repair import repair_store
from seglog.storage.directory.broker_conf import read_broker_conf
from seglog.storage.files.files import RealFiles
from seglog.storage.format.timer.timer import TIMER_UNIT, occupied_slots, read_timer_log, view_timer_slots
from seglog.storage.format.timer.timer_build import ROLL_WINDOW_MS, due_unit, pack_units
from seglog.storage.format.timer.timer_checkpoint import decode_timer_checkpoint
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.stores import new_clock

NOTHING = np.empty(0, TIMER_UNIT.dtype)
READ_MS = 1_000_000_000_000


def message(number, due_ms, *, key="", rolls=0):
    return TimerMessage(1000 * number, 200, READ_MS - 5000, due_ms, 7, False, key, rolls)


def places(wanted):
    return [unit.phy_offset // 1000 for unit in wanted.units]


def test_messages_that_wait_get_units_and_delivered_ones_none():
    messages = [message(0, READ_MS - 1000), message(1, READ_MS), message(2, READ_MS + 9000)]
    wanted = wanted_units(messages, NOTHING, READ_MS)
    assert (places(wanted), wanted.made) == ([1, 2], 2)
    assert [unit.fire_timestamp_ms for unit in wanted.units] == [READ_MS, READ_MS + 9000]


def test_the_last_message_has_a_unit_in_any_case_but_one_that_is_never_read():
    wanted = wanted_units([message(0, READ_MS + 1000), message(1, READ_MS - 1000)], NOTHING, READ_MS)
    assert places(wanted) == [0, 1]
    assert wanted.units[1].fire_timestamp_ms < READ_MS


def test_units_that_are_there_stay_as_they_are_where_their_time_can_be():
    due = READ_MS + 50_000
    right = due_unit(due, READ_MS - 9000, 0, 200, 7)
    wrong = due_unit(due + 5000, READ_MS - 9000, 1000, 200, 7)
    far = due_unit(due + ROLL_WINDOW_MS, READ_MS - 9000, 2000, 200, 7)
    messages = [message(0, due), message(1, due), message(2, due + ROLL_WINDOW_MS)]
    wanted = wanted_units(messages, pack_units([right, wrong, far]), READ_MS)
    assert (wanted.units[0], wanted.units[2], wanted.made) == (right, far, 1)
    assert wanted.units[1].fire_timestamp_ms == due


def test_a_message_that_was_put_again_waits_once():
    due = READ_MS + ROLL_WINDOW_MS
    messages = [message(0, due, key="a"), message(1, due, key="b"), message(2, due, key="a", rolls=1)]
    assert places(wanted_units(messages, NOTHING, READ_MS)) == [1, 2]


@pytest.mark.parametrize("name", golden.config_names())
def test_without_log_and_wheel_all_that_waits_is_there_again(name, tmp_path):
    root = golden.extract(name, tmp_path)
    slots = view_timer_slots((root / "timerwheel").read_bytes())
    check = decode_timer_checkpoint((root / "config" / "timercheck").read_bytes())
    waiting = {
        int(slot["slot_time"]): int(slot["message_count"])
        for slot in slots[occupied_slots(slots)]
        if slot["slot_time"] * 1000 >= check.last_read_timestamp_ms
    }
    assert sum(waiting.values()) == 60
    shutil.rmtree(root / "timerlog")
    (root / "timerwheel").unlink()
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    made = view_timer_slots((root / "timerwheel").read_bytes())
    assert {int(s["slot_time"]): int(s["message_count"]) for s in made[occupied_slots(made)]} == waiting
    (path,) = (root / "timerlog").iterdir()
    assert len(read_timer_log(path.read_bytes()).units) == 60
    assert path.stat().st_size == 100 << 20
    after = decode_timer_checkpoint((root / "config" / "timercheck").read_bytes())
    assert after.last_read_timestamp_ms == check.last_read_timestamp_ms
    assert (after.last_queue_offset, after.last_flushed_position) == (90, 60 * 52)


def test_a_timer_log_that_is_gone_gets_files_of_the_length_in_the_configuration(tmp_path):
    root = golden.extract("real-conf-5.4.0", tmp_path)
    lengths = {path.stat().st_size for path in (root / "timerlog").iterdir()}
    shutil.rmtree(root / "timerlog")
    conf = tmp_path / "broker.conf"
    conf.write_text(f"mappedFileSizeCommitLog={1 << 20}\nmappedFileSizeTimerLog={lengths.copy().pop()}\n")
    given = replace(read_broker_conf(conf), queue_file_bytes=None, index=None)
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True, given)
    assert {path.stat().st_size for path in (root / "timerlog").iterdir()} == lengths
    assert check_store(root, clock=new_clock()).is_clean


@pytest.mark.parametrize("read_ms", [1 << 43, (1 << 63) - 1])
def test_a_time_that_no_clock_shows_is_set_back(read_ms, tmp_path):
    root = golden.extract(golden.config_names()[0], tmp_path)
    path = root / "config" / "timercheck"
    path.write_bytes(read_ms.to_bytes(8, "big") + path.read_bytes()[8:])
    (found,) = (one for one in check_store(root).findings if one.file == "config/timercheck")
    assert (found.code, found.position_bytes, found.found) == ("timer-check-ahead", 0, str(read_ms))
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    newest_ms = survey(root, RealFiles()).scan.last_store_ms
    set_back_ms = decode_timer_checkpoint(path.read_bytes()).last_read_timestamp_ms
    assert newest_ms - 120_000 <= set_back_ms <= newest_ms
    assert "timer-check-ahead" not in {one.code for one in check_store(root).findings}

"""Timer log and wheel that are rebuilt are those of a real broker, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest

from seglog.storage.format.timer.timer import (
    TIMER_DELETE,
    TIMER_NORMAL,
    TIMER_ROLL,
    TIMER_SLOT,
    TIMER_UNIT,
    TIMER_WHEEL_FILE_BYTES,
    read_timer_log,
)
from seglog.storage.format.timer.timer_build import (
    ROLL_WINDOW_MS,
    due_unit,
    iter_timer_log,
    pack_units,
    unit_positions,
    wheel_slots,
)
from tests.support.material import golden
from tests.support.rows import every_row

FILE_BYTES = 4096
HOUR_MS = 3_600_000


@pytest.mark.parametrize("name", golden.config_names())
def test_a_brokers_timer_files_follow_from_their_units(name):
    root = golden.shared(name)
    files = sorted((root / "timerlog").iterdir())
    units = np.concatenate([read_timer_log(path.read_bytes()).units for path in files]).astype(
        TIMER_UNIT.dtype
    )
    units["previous_position"] = 0
    positions = unit_positions(len(units), 0, FILE_BYTES)
    made = {f"{first:020d}": data.ljust(FILE_BYTES, b"\0") for first, data in
            iter_timer_log(units, positions, 0, FILE_BYTES)}  # fmt: skip
    assert made == {path.name: path.read_bytes() for path in files}
    wheel = bytearray(TIMER_WHEEL_FILE_BYTES)
    numbers, slots = wheel_slots(units, positions)
    np.frombuffer(wheel, TIMER_SLOT.dtype)[numbers] = slots
    assert wheel == (root / "timerwheel").read_bytes()


WAITS = (
    (0, 0, TIMER_NORMAL),
    (ROLL_WINDOW_MS - 1000, ROLL_WINDOW_MS - 1000, TIMER_NORMAL),
    (ROLL_WINDOW_MS, ROLL_WINDOW_MS // 2, TIMER_NORMAL | TIMER_ROLL),
    (ROLL_WINDOW_MS * 4 // 3 - 1000, ROLL_WINDOW_MS // 2, TIMER_NORMAL | TIMER_ROLL),
    (ROLL_WINDOW_MS * 4 // 3, ROLL_WINDOW_MS, TIMER_NORMAL | TIMER_ROLL),
    (ROLL_WINDOW_MS * 30, ROLL_WINDOW_MS, TIMER_NORMAL | TIMER_ROLL),
)


def test_what_is_due_later_than_two_days_is_put_again_before():
    with every_row() as row:
        for wait_ms, slot_ms, magic in WAITS:
            with row(wait_ms, slot_ms, magic):
                unit = due_unit(HOUR_MS + wait_ms, HOUR_MS, 100, 200, 7)
                assert (unit.fire_timestamp_ms - HOUR_MS, unit.magic) == (slot_ms, magic)
                taken_out = due_unit(HOUR_MS + wait_ms, HOUR_MS, 100, 200, 7, is_delete=True)
                assert taken_out.magic == magic | TIMER_DELETE


def test_a_slot_counts_its_messages_less_those_taken_out_and_leads_to_both_ends():
    units = pack_units([
        due_unit(5000, 1000, 100, 1, 0),
        due_unit(6000, 1000, 200, 1, 0),
        due_unit(5000, 2000, 300, 1, 0, is_delete=True),
        due_unit(5000, 2000, 400, 1, 0),
    ])  # fmt: skip
    positions = unit_positions(4, 0, 160)
    assert positions.tolist() == [0, 52, 160, 212]
    numbers, slots = wheel_slots(units, positions)
    assert numbers.tolist() == [5, 6]
    assert slots.tolist() == [(5, 0, 212, 1, 0), (6, 52, 52, 1, 0)]
    data = b"".join(part.ljust(160, b"\0") for _first, part in iter_timer_log(units, positions, 0, 160))
    assert [read_timer_log(data[at:]).units["previous_position"][0] for at in positions.tolist()] == [
        -1, -1, 0, 160,
    ]  # fmt: skip


def test_an_empty_timer_log_is_one_empty_file_and_an_empty_wheel():
    nothing = pack_units([])
    positions = unit_positions(0, 520, 520)
    assert list(iter_timer_log(nothing, positions, 520, 520)) == [(520, b"")]
    assert [len(part) for part in wheel_slots(nothing, positions)] == [0, 0]

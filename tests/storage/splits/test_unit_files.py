"""Units are read by queue offset from the files that are there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.directory.queue_files import list_queues, read_units
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.kernels.walk import ROW
from seglog.storage.splits.stretches import UnitState
from seglog.storage.splits.unit_files import UnitFiles

FILE_BYTES = 100


def write_queue(root, contents, topic="T"):
    directory = root / "consumequeue" / topic / "0"
    directory.mkdir(parents=True)
    for number, content in contents.items():
        (directory / segment_file_name(number * FILE_BYTES)).write_bytes(content)


@given(
    st.dictionaries(st.integers(0, 6), st.binary(max_size=FILE_BYTES + 30), max_size=4),
    st.integers(0, 40),
    st.integers(0, 20),
)
def test_any_run_of_slots_reads_as_in_the_whole_queue(module_folders, contents, first_slot, count):
    root = module_folders.mktemp("store")
    write_queue(root, contents)
    units = UnitFiles(RealFiles(), root, FILE_BYTES).read("T", 0, first_slot, count)
    (queue,) = list_queues(RealFiles(), root)
    base, stored = read_units(RealFiles(), queue, FILE_BYTES)
    known = dict(enumerate(stored.tolist(), base))
    assert units.tolist() == [known.get(slot, (0, 0, 0)) for slot in range(first_slot, first_slot + count)]


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../T", "nul\0"])
def test_topic_that_is_no_folder_name_has_no_units(topic, tmp_path):
    write_queue(tmp_path, {0: b"\1" * FILE_BYTES})
    (tmp_path / "consumequeue" / "0").mkdir()
    assert not UnitFiles(RealFiles(), tmp_path, FILE_BYTES).read(topic, 0, 0, 5).tobytes().strip(b"\0")


STATES = {
    "equal": ((500, 100, 7), "T", UnitState.AGREES),
    "other tags code": ((500, 100, 8), "T", UnitState.SAME_PLACE),
    "other size": ((500, 99, 7), "T", UnitState.SAME_PLACE),
    "other record": ((600, 100, 7), "T", UnitState.DIFFERS),
    "pre-blank": ((0, 0x7FFFFFFF, 0), "T", UnitState.DIFFERS),
    "nothing": ((0, 0, 0), "T", UnitState.ABSENT),
    "address in ConsumeQueueExt": ((500, 100, -(2**40)), "T", UnitState.AGREES),
    "delivery time of another level": ((500, 100, 8), "SCHEDULE_TOPIC_XXXX", UnitState.AGREES),
}


@pytest.mark.parametrize(("unit", "topic", "state"), STATES.values(), ids=STATES)
def test_state_of_a_record(unit, topic, state, tmp_path):
    write_queue(tmp_path, {0: np.array([unit], CQ_UNIT.dtype).tobytes()}, topic)
    row = np.zeros(1, ROW)
    row["phy_offset"], row["size_bytes"], row["tags_code"] = 500, 100, 7
    assert UnitFiles(RealFiles(), tmp_path, FILE_BYTES).states(topic, 0, row).tolist() == [state]


def test_file_that_goes_while_it_is_read_has_no_units(tmp_path):
    write_queue(tmp_path, {0: b"\1" * FILE_BYTES, 1: b"\1" * FILE_BYTES})
    units = UnitFiles(RealFiles(), tmp_path, FILE_BYTES)
    assert all(units.read("T", 0, 0, 5)["size_bytes"])
    (tmp_path / "consumequeue" / "T" / "0" / segment_file_name(0)).unlink()
    assert units.read("T", 0, 0, 10)["size_bytes"].astype(bool).tolist() == [False] * 5 + [True] * 5

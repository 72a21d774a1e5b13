"""Offsets behind the end of their queue are set to it; everything else in the files stays."""

from __future__ import annotations

import json

import pytest

from seglog.doctor.repair.offsets import mend_offsets
from seglog.storage.files.files import RealFiles

ENDS = {("T", 0): 10, ("T", 1): 0, ("SCHEDULE_TOPIC_XXXX", 0): 4, ("SCHEDULE_TOPIC_XXXX", 2): 7}
GROUPS, LEVELS = "consumerOffset.json", "delayOffset.json"


def write(root, name, value):
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / name).write_text(value if isinstance(value, str) else json.dumps(value))


def mended(root, name):
    told = list(mend_offsets(RealFiles(), root, ENDS))
    assert {action.file for action in told} <= {f"config/{name}"}
    text = (root / "config" / name).read_text()
    return [action.detail for action in told], text


@pytest.mark.parametrize(
    ("offset", "right"),
    [(0, 0), (3, 3), (10, 10), (11, 10), (1 << 40, 10), (-1, 0), (-(1 << 40), 0), (True, True), ("9", "9")],
)
def test_offset_of_a_group_is_set_to_the_end_of_its_queue(offset, right, tmp_path):
    write(tmp_path, GROUPS, {"dataVersion": {"counter": 7}, "offsetTable": {"T@g": {"0": offset, "1": 0}}})
    told, text = mended(tmp_path, GROUPS)
    assert json.loads(text) == {"dataVersion": {"counter": 7}, "offsetTable": {"T@g": {"0": right, "1": 0}}}
    assert told == ([] if offset == right else [f"g at T/0 from {offset} to {right}"])


def test_offset_in_a_queue_that_is_not_there_stays(tmp_path):
    tables = {"offsetTable": {"Gone@g": {"0": 99}, "T@g": {"7": 99}}}
    write(tmp_path, GROUPS, tables)
    assert mended(tmp_path, GROUPS) == ([], json.dumps(tables))


def test_pull_offsets_are_mended_too(tmp_path):
    write(tmp_path, GROUPS, {"offsetTable": {}, "pullOffsetTable": {"T@g": {"0": 12}}})
    told, text = mended(tmp_path, GROUPS)
    assert told == ["g at T/0 from 12 to 10"]
    assert json.loads(text)["pullOffsetTable"] == {"T@g": {"0": 10}}


def test_a_delay_level_reads_the_queue_before_its_number(tmp_path):
    write(tmp_path, LEVELS, {"offsetTable": {"1": 9, "2": 9, "3": 9}, "dataVersion": {}})
    told, text = mended(tmp_path, LEVELS)
    assert told == [
        "delay level at SCHEDULE_TOPIC_XXXX/0 from 9 to 4",
        "delay level at SCHEDULE_TOPIC_XXXX/2 from 9 to 7",
    ]
    assert json.loads(text)["offsetTable"] == {"1": 4, "2": 9, "3": 7}


def test_queue_numbers_without_quotes_stay_so(tmp_path):
    write(tmp_path, GROUPS, '{"offsetTable":{"T@g":{0:12,1:0}}}')
    told, text = mended(tmp_path, GROUPS)
    assert told == ["g at T/0 from 12 to 10"]
    assert "0:10" in text.replace(" ", "")


@pytest.mark.parametrize("text", ["[1]", "{", '{"offsetTable":[1]}', '{"offsetTable":{"T@g":5}}', "{}"])
def test_a_file_of_another_shape_is_left_to_be_told_of(text, tmp_path):
    for name in (GROUPS, LEVELS):
        write(tmp_path, name, text)
    assert list(mend_offsets(RealFiles(), tmp_path, ENDS)) == []
    assert (tmp_path / "config" / GROUPS).read_text() == text

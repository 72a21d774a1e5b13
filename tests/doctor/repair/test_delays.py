"""A delay level without an offset goes on about where the log ends."""

from __future__ import annotations

import json

import pytest

from seglog.doctor.repair.delays import MARGIN_MS, mend_delays
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.stores import SMALL, new_clock

LEVEL_3_MS = 10_000


def store_of(root, waits_ms):
    """A store whose level 3 has a message at each of these times before the log's end."""
    clock = new_clock()
    with MessageStore.open(root, clock=clock, **SMALL) as store:
        begun_ms = max(waits_ms)
        for wait_ms in waits_ms:
            clock.advance(begun_ms - wait_ms)
            begun_ms = wait_ms
            store.put("SCHEDULE_TOPIC_XXXX", b"x", queue_id=2, properties={"DELAY": "3", "REAL_TOPIC": "T"})
        clock.advance(begun_ms)
        store.put("T", b"the last record")
    (root / "config").mkdir()
    return root


def write(root, **table):
    (root / "config" / "delayOffset.json").write_text(json.dumps({"offsetTable": table, "dataVersion": {}}))


def offsets(root):
    return json.loads((root / "config" / "delayOffset.json").read_text())["offsetTable"]


@pytest.mark.parametrize(
    ("waits_ms", "offset"),
    [
        ([200_000, 150_000, 100_000], 3),
        ([200_000, MARGIN_MS + LEVEL_3_MS + 1, MARGIN_MS + LEVEL_3_MS, 5], 2),
        ([50_000, 20_000, 1000], 0),
    ],
)
def test_it_goes_on_a_minute_before_the_end_of_the_log(tmp_path, waits_ms, offset):
    root = store_of(tmp_path / "store", waits_ms)
    write(root, **{"1": 0})
    told = list(mend_delays(survey(root, RealFiles()), RealFiles()))
    assert offsets(root) == {"1": 0, "3": offset}
    assert [action.detail for action in told] == [
        f"delay level 3 continues at {offset} of 0..{len(waits_ms)}"
    ]
    assert list(mend_delays(survey(root, RealFiles()), RealFiles())) == []


def test_levels_that_have_an_offset_and_stores_without_the_file_are_left_alone(tmp_path):
    root = store_of(tmp_path / "store", [1000])
    assert list(mend_delays(survey(root, RealFiles()), RealFiles())) == []
    assert not (root / "config" / "delayOffset.json").exists()
    write(root, **{"3": 77})
    assert list(mend_delays(survey(root, RealFiles()), RealFiles())) == []
    (root / "config" / "delayOffset.json").write_text("[1]")
    assert list(mend_delays(survey(root, RealFiles()), RealFiles())) == []


@pytest.mark.parametrize("name", golden.config_names())
def test_a_broker_with_filter_data_knows_times_only_by_its_records(tmp_path, name):
    root = golden.extract(name, tmp_path)
    before = offsets_of_broker(root)
    write(root)
    found = survey(root, RealFiles())
    assert list(mend_delays(found, RealFiles()))
    after = {int(level): offset for level, offset in offsets(root).items()}
    # All was delivered within the minute before the broker stopped.
    assert after == dict.fromkeys((1, 2), 0)
    assert {level: before[level] for level in after} == dict.fromkeys((1, 2), 1)


def offsets_of_broker(root):
    text = (root / "config" / "delayOffset.json").read_text()
    table = text[text.index("offsetTable") :]
    return {level: int(table.split(f"{level}:")[1].split(",")[0].split("}")[0]) for level in (1, 2)}

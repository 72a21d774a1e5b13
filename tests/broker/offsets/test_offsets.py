"""The offset table survives restarts in RocketMQ's file, and never goes below zero."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from seglog.broker.offsets.offset_history import OffsetHistory
from seglog.broker.offsets.offsets import ClampedOffset, ConsumerOffsets
from seglog.clock import VirtualClock
from seglog.errors import ConfigError, FullError, InvalidArgumentError, InvalidNameError
from seglog.storage.format.config.config_json import decode_config
from seglog.storage.small_files.config_file import ConfigFile
from tests.support.crash.crash_files import CrashFiles

GOLDEN = Path(__file__).parents[2] / "golden" / "config"
PATH = Path("/store/config/consumerOffset.json")


def open_table(files, clock=None):
    return ConsumerOffsets(ConfigFile(files, PATH, Path("/store/seglog/evidence")), clock or VirtualClock())


def stored(files):
    return decode_config(files.read_file(PATH))


def test_what_was_committed_is_found():
    table = open_table(CrashFiles())
    table.commit("g", "T", 1, 42)
    assert table.query("g", "T", 1) == 42
    assert table.query("g", "T", 0) is None
    assert table.query("h", "T", 1) is None
    assert table.query("g", "U", 1) is None


def test_a_commit_may_go_back():
    table = open_table(CrashFiles())
    table.commit("g", "T", 0, 42)
    table.commit("g", "T", 0, 7)
    assert table.query("g", "T", 0) == 7


def test_a_negative_offset_is_refused_and_changes_nothing():
    table = open_table(CrashFiles())
    table.commit("g", "T", 0, 42)
    with pytest.raises(InvalidArgumentError, match="negative"):
        table.commit("g", "T", 0, -1)
    assert table.query("g", "T", 0) == 42


@pytest.mark.parametrize(
    ("queue_id", "offset"), [(0, 1 << 63), (0, 1 << 200), (1 << 31, 0), (-(1 << 31) - 1, 0)]
)
def test_numbers_that_no_file_can_hold_are_refused_and_others_are_still_saved(queue_id, offset):
    files = CrashFiles()
    clock = VirtualClock()
    table = ConsumerOffsets(ConfigFile(files, PATH), clock, OffsetHistory(files, Path("/store"), clock))
    table.commit("g", "T", 0, 7)
    with pytest.raises(InvalidArgumentError, match="out of range"):
        table.commit("g", "T", queue_id, offset)
    with pytest.raises(InvalidArgumentError, match="out of range"):
        table.reset("g", "T", queue_id, offset)
    table.persist()
    assert stored(files)["offsetTable"] == {"T@g": {0: 7}}


def test_the_largest_numbers_are_taken():
    files = CrashFiles()
    clock = VirtualClock()
    table = ConsumerOffsets(ConfigFile(files, PATH), clock, OffsetHistory(files, Path("/store"), clock))
    table.commit("g", "T", (1 << 31) - 1, (1 << 63) - 1)
    table.commit("g", "T", -(1 << 31), 0)
    table.persist()
    again = ConsumerOffsets(ConfigFile(files, PATH), clock, OffsetHistory(files, Path("/store"), clock))
    assert again.of_group("g") == {("T", (1 << 31) - 1): (1 << 63) - 1, ("T", -(1 << 31)): 0}


@pytest.mark.parametrize("queues", [{"0": 1 << 63}, {str(1 << 31): 0}])
def test_a_file_with_numbers_that_no_broker_writes_is_damaged(queues):
    files = CrashFiles()
    files.make_dirs(PATH.parent)
    files.write_file(PATH, json.dumps({"offsetTable": {"T@g": queues}}).encode(), sync=True)
    with pytest.raises(ConfigError):
        open_table(files)


@pytest.mark.parametrize("group", ["", "a@b", "a/b", "a\n"])
def test_a_group_that_cannot_be_named_so_is_refused(group):
    with pytest.raises(InvalidNameError):
        open_table(CrashFiles()).commit(group, "T", 0, 1)


def test_persisted_offsets_come_back_in_rocketmqs_shape():
    files, clock = CrashFiles(), VirtualClock(5_000)
    table = open_table(files, clock)
    table.commit("g", "T", 0, 12)
    table.commit("g", "T", 1, 5)
    table.commit("g", "U", 0, 1)
    table.persist()
    assert stored(files) == {
        "dataVersion": {"counter": 1, "stateVersion": 0, "timestamp": 5_000},
        "groupTopicMap": {"g": ["T", "U"]},
        "offsetTable": {"T@g": {0: 12, 1: 5}, "U@g": {0: 1}},
    }
    assert open_table(files).query("g", "T", 1) == 5


def test_nothing_is_written_while_nothing_changes():
    files = CrashFiles()
    table = open_table(files)
    table.persist()
    assert files.contents() == {}
    table.commit("g", "T", 0, 1)
    table.persist()
    before = files.contents()
    table.commit("g", "T", 0, 1)
    table.persist()
    assert files.contents() == before


@pytest.mark.parametrize("version", ["broker-5.4.0", "conf-5.3.3", "conf-5.4.0"])
def test_a_real_file_is_read_and_written_again_with_nothing_lost(version):
    files = CrashFiles.holding({PATH: (GOLDEN / version / "consumerOffset.json").read_bytes()})
    before = stored(files)
    table = open_table(files)
    table.commit("new-group", "T", 0, 1)
    table.persist()
    after = stored(files)
    assert after["offsetTable"].pop("T@new-group") == {0: 1}
    assert after["offsetTable"] == before["offsetTable"]
    assert after["groupTopicMap"].pop("new-group") == ["T"]
    assert _as_sets(after["groupTopicMap"]) == _as_sets(before["groupTopicMap"])
    assert after["dataVersion"]["counter"] == before["dataVersion"]["counter"] + 1


def _as_sets(topics_of_groups):
    return {group: set(topics) for group, topics in topics_of_groups.items()}


def test_offsets_of_a_real_group_are_found():
    files = CrashFiles.holding({PATH: (GOLDEN / "broker-5.4.0" / "consumerOffset.json").read_bytes()})
    assert open_table(files).of_group("cgo") == {
        ("OrderTopic", 0): 11,
        ("OrderTopic", 1): 10,
        ("OrderTopic", 2): 0,
        ("OrderTopic", 3): 0,
    }


def test_unknown_fields_and_quoted_keys_are_kept_and_understood():
    text = '{"offsetTable":{"T@g":{"0":12}},"pullOffsetTable":{"T@g":{"0":15}},"later":[1]}'
    files = CrashFiles.holding({PATH: text.encode()})
    table = open_table(files)
    assert table.query("g", "T", 0) == 12
    table.commit("g", "T", 0, 13)
    table.persist()
    after = stored(files)
    assert after["offsetTable"] == {"T@g": {0: 13}}
    assert after["pullOffsetTable"] == {"T@g": {"0": 15}}
    assert after["later"] == [1]


@pytest.mark.parametrize(
    "table",
    [
        '{"offsetTable":[]}',
        '{"offsetTable":{"T@g":7}}',
        '{"offsetTable":{"T@g":{0:"7"}}}',
        '{"offsetTable":{"T@g":{0:-7}}}',
        '{"offsetTable":{"T@g":{"x":7}}}',
        "[]",
        '{"dataVersion":{"counter":{}}}',
    ],
)
def test_json_of_another_shape_is_damage(table):
    with pytest.raises(ConfigError):
        open_table(CrashFiles.holding({PATH: table.encode()}))


def test_an_offset_beyond_the_end_is_set_to_the_end_and_told():
    table = open_table(CrashFiles())
    table.commit("g", "T", 0, 100)
    table.commit("g", "T", 1, 5)
    table.commit("g", "Gone", 0, 7)
    assert table.clamp([("T", 0, 90), ("T", 1, 5)]) == (ClampedOffset("T", "g", 0, 100, 90),)
    assert table.of_group("g") == {("T", 0): 90, ("T", 1): 5, ("Gone", 0): 7}


def test_a_full_disk_loses_no_commit():
    class FullFiles(CrashFiles):
        is_full = True

        @override
        def write_file(self, path, data, *, sync=True):
            if self.is_full:
                raise FullError("no space left")
            super().write_file(path, data, sync=sync)

    files = FullFiles()
    table = open_table(files)
    table.commit("g", "T", 0, 3)
    with pytest.raises(FullError):
        table.persist()
    files.is_full = False
    table.persist()
    assert open_table(files).query("g", "T", 0) == 3


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["g", "h"]), st.sampled_from(["T", "U"]), st.integers(0, 3), st.integers(0, 2**62)
        )
    )
)
def test_the_last_commit_of_each_queue_is_what_comes_back(commits):
    files = CrashFiles()
    table = open_table(files)
    model = {}
    for group, topic, queue_id, offset in commits:
        table.commit(group, topic, queue_id, offset)
        model[group, topic, queue_id] = offset
    table.persist()
    again = open_table(files)
    assert {key: again.query(*key) for key in model} == model


def test_a_standard_json_parser_reads_the_file_once_its_keys_are_quoted():
    files = CrashFiles()
    table = open_table(files)
    table.commit("g", "T", 10, 12)
    table.persist()
    text = re.sub(r"(?m)^(\s*)(\d+):", r'\1"\2":', files.read_file(PATH).decode())
    assert json.loads(text)["offsetTable"] == {"T@g": {"10": 12}}


def test_s4_44_what_was_pulled_is_kept_apart_from_what_was_committed():
    table = open_table(CrashFiles())
    assert table.pulled("g", "T", 0) is None
    table.commit("g", "T", 0, 3)
    table.note_pull("g", "T", 0, 9)
    assert (table.query("g", "T", 0), table.pulled("g", "T", 0)) == (3, 9)


def test_a_reset_counts_at_once_and_stale_commits_are_ignored_until_the_client_was_told():
    table = open_table(CrashFiles())
    table.commit("g", "T", 0, 30)
    table.reset("g", "T", 0, 10)
    table.commit("g", "T", 0, 31)
    table.commit("g", "T", 1, 5)
    assert table.of_group("g") == {("T", 0): 10, ("T", 1): 5}
    assert (table.take_reset("g", "T", 0), table.take_reset("g", "T", 0)) == (10, None)
    table.commit("g", "T", 0, 11)
    assert table.query("g", "T", 0) == 11


def test_a_group_takes_the_offsets_of_another_and_keeps_its_own_elsewhere():
    table = open_table(CrashFiles())
    table.commit("g", "T", 0, 3)
    table.commit("g", "U", 0, 4)
    table.commit("h", "T", 1, 5)
    table.commit("h", "V", 0, 6)
    assert table.clone("g", "h", "T") == 1
    assert table.of_group("h") == {("T", 0): 3, ("V", 0): 6}
    assert table.clone("g", "h") == 2
    assert table.of_group("h") == {("T", 0): 3, ("U", 0): 4, ("V", 0): 6}
    assert table.clone("nobody", "h") == 0


def test_deleted_offsets_are_gone_those_of_broadcasting_clients_too():
    text = '{"offsetTable":{"T@g":{0:1},"T@g@broadcast":{0:2},"U@g":{0:3},"T@gg":{0:4}}}'
    files = CrashFiles.holding({PATH: text.encode()})
    table = open_table(files)
    assert table.delete("g", "U") == 1
    assert table.delete("g") == 2
    table.persist()
    assert stored(files)["offsetTable"] == {"T@gg": {0: 4}}
    assert table.delete("g") == 0


def test_a_deleted_group_is_told_of_no_reset():
    table = open_table(CrashFiles())
    table.reset("g", "T", 0, 10)
    table.reset("g", "U", 0, 10)
    table.delete("g", "T")
    assert (table.take_reset("g", "T", 0), table.take_reset("g", "U", 0)) == (None, 10)

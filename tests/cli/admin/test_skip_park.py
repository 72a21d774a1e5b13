"""``seglog skip`` and ``seglog park``: one group gets past one message, and there is a way back."""

from __future__ import annotations

import json
import shlex

import pytest

from seglog.broker.broker import Broker
from seglog.errors import InvalidArgumentError, NotFoundError, OffsetRangeError, StoreLockedError
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.config_files import read_config
from tests.support.material.lives import BODY, GROUP, TOPIC, UNIQUE, live


@pytest.fixture
def life(tmp_path):
    return live(tmp_path / "s")


def offset(path, group, topic=TOPIC, queue_id=0):
    table = read_config(path / "config" / "consumerOffset.json")["offsetTable"]
    return table.get(f"{topic}@{group}", {}).get(queue_id)


def test_a_group_moves_past_one_message_and_nothing_else_changes(seglog: Seglog, life):
    before = golden.file_digest(life.path)
    old = (life.path / "config" / "consumerOffset.json").read_bytes()
    ran = seglog("skip", life.path, "audit", TOPIC, 0, "--apply", "--json")
    assert ran.exit_code == 0
    at = life.born.queue_offset
    assert (ran.lines[0]["before"], ran.lines[0]["after"]) == (at, at + 1)
    assert offset(life.path, "audit") == at + 1
    assert offset(life.path, GROUP) == at + 1
    after = golden.file_digest(life.path)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"config/consumerOffset.json", "config/consumerOffset.json.bak"}
    assert (life.path / "config" / "consumerOffset.json.bak").read_bytes() == old


def test_the_way_back_that_is_printed_leads_back(seglog: Seglog, life):
    for arguments in ([], ["--to", "3"], ["--forget"]):
        was = offset(life.path, "audit")
        shown = seglog("skip", life.path, "audit", TOPIC, 0, *arguments, "--apply").stdout
        assert f"was {was}" in shown
        (line,) = [line for line in shown.splitlines() if line.startswith("way back: ")]
        assert offset(life.path, "audit") != was
        assert seglog(*shlex.split(line.removeprefix("way back: "))[1:]).exit_code == 0
        assert offset(life.path, "audit") == was


def test_a_broker_takes_the_offset(seglog: Seglog, life):
    assert seglog("skip", life.path, "audit", TOPIC, 0, "--to", "30", "--apply").exit_code == 0
    with Broker.open(life.path, background=False) as broker:
        assert broker._state.offsets.query("audit", TOPIC, 0) == 30


def test_real_tables_keep_all_that_is_not_moved(seglog: Seglog, tmp_path):
    path = golden.extract("broker-store", tmp_path)
    file = path / "config" / "consumerOffset.json"
    before = read_config(file)
    assert seglog("skip", path, "cgsql", "LiveTopic", 2, "--apply").exit_code == 0
    after = read_config(file)
    assert after["offsetTable"]["LiveTopic@cgsql"] == {0: 5, 1: 21, 2: 7, 3: 8}
    before["offsetTable"]["LiveTopic@cgsql"][2] = 7
    assert after["offsetTable"] == before["offsetTable"]
    assert {g: sorted(t) for g, t in after["groupTopicMap"].items()} == {
        g: sorted(t) for g, t in before["groupTopicMap"].items()
    }
    assert after["dataVersion"]["counter"] == before["dataVersion"]["counter"] + 1


def test_offsets_after_a_crash_are_bounded_by_the_log(seglog: Seglog, life):
    (life.path / "abort").touch()
    directory = life.path / "consumequeue" / TOPIC / "0"
    for file in directory.iterdir():
        file.unlink()
    ran = seglog("skip", life.path, "audit", TOPIC, 0, "--apply", "--json")
    assert (ran.exit_code, ran.lines[0]["maxOffset"]) == (0, 81)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nobody", TOPIC, "0"], NotFoundError),
        (["audit", "nosuch", "0"], NotFoundError),
        (["audit", TOPIC, "7"], NotFoundError),
        (["audit", TOPIC, "0", "--to", "82"], OffsetRangeError),
        (["audit", TOPIC, "0", "--to", "-1"], OffsetRangeError),
        (["audit", TOPIC, "0", "--to", "3", "--forget"], InvalidArgumentError),
        (["nobody", TOPIC, "0", "--forget"], NotFoundError),
    ],
)
def test_what_makes_no_sense_changes_nothing(seglog: Seglog, life, arguments, error):
    before = golden.file_digest(life.path)
    assert seglog("skip", life.path, *arguments, "--apply").exit_code == error.exit_code
    assert golden.file_digest(life.path) == before


def test_a_group_at_the_end_has_nothing_to_skip(seglog: Seglog, life):
    assert seglog("skip", life.path, "audit", TOPIC, 0, "--to", "81", "--apply").exit_code == 0
    assert seglog("skip", life.path, "audit", TOPIC, 0, "--apply").exit_code == OffsetRangeError.exit_code


def test_a_store_that_is_open_is_refused(seglog: Seglog, life):
    lock = RealFiles().lock(life.path)
    try:
        assert seglog("skip", life.path, "audit", TOPIC, 0, "--apply").exit_code == StoreLockedError.exit_code
        assert (
            seglog("park", life.path, UNIQUE, "--group", "audit", "--apply").exit_code
            == StoreLockedError.exit_code
        )
    finally:
        lock.release()


@pytest.mark.parametrize("wanted", ["unique", "id"])
def test_a_parked_message_keeps_everything_and_says_where_it_came_from(seglog: Seglog, life, wanted):
    name = UNIQUE if wanted == "unique" else life.born.message_id
    ran = seglog("park", life.path, name, "--group", "audit", "--apply", "--json")
    assert ran.exit_code == 0, ran.stderr
    done = ran.lines[0]
    assert offset(life.path, "audit") == life.born.queue_offset + 1
    with MessageStore.open(life.path, read_only=True) as store:
        (copy,) = store.get("%PARK%audit", 0, 0)
        born = store.message_at(life.born.phy_offset)
    assert (copy.body, copy.tags, copy.keys, copy.flag) == (BODY, "fruit", ["order-1"], 7)
    assert (copy.born_timestamp_ms, copy.born_host) == (born.born_timestamp_ms, born.born_host)
    assert copy.properties["SEGLOG_PARKED_FROM"] == f"{TOPIC}/0@{life.born.queue_offset}"
    assert copy.properties["SEGLOG_PARKED_ID"] == born.message_id
    assert copy.message_id == done["parkedMsgId"]
    roles = [line["role"] for line in seglog("explain", life.path, UNIQUE, "--json").lines if "role" in line]
    assert roles[-1] == "parked"


def test_parking_again_after_a_crash_makes_no_second_copy(seglog: Seglog, life):
    assert seglog("park", life.path, UNIQUE, "--group", "audit", "--apply").exit_code == 0
    assert (
        seglog("skip", life.path, "audit", TOPIC, 0, "--to", life.born.queue_offset, "--apply").exit_code == 0
    )
    ran = seglog("park", life.path, UNIQUE, "--group", "audit", "--apply")
    assert "it was there already" in ran.stdout
    with MessageStore.open(life.path, read_only=True) as store:
        assert store.max_offset("%PARK%audit", 0) == 1
    assert offset(life.path, "audit") == life.born.queue_offset + 1


def test_only_the_message_that_a_group_stands_at_is_parked(seglog: Seglog, life):
    before = golden.file_digest(life.path)
    passed = seglog("park", life.path, UNIQUE, "--group", GROUP, "--apply")
    assert (passed.exit_code, "has passed it" in passed.stderr) == (InvalidArgumentError.exit_code, True)
    other = seglog("park", life.path, "U-between-1-3", "--group", "audit", "--apply")
    assert (other.exit_code, "before it" in other.stderr) == (InvalidArgumentError.exit_code, True)
    assert (
        seglog("park", life.path, UNIQUE, "--group", "nobody", "--apply").exit_code == NotFoundError.exit_code
    )
    assert (
        seglog("park", life.path, "nosuch", "--group", "audit", "--apply").exit_code
        == NotFoundError.exit_code
    )
    assert golden.file_digest(life.path) == before


def test_a_broker_knows_the_parking_topic(seglog: Seglog, tmp_path):
    path = golden.extract("broker-store", tmp_path)
    with MessageStore.open(path, read_only=True) as store:
        message = next(iter(store.get("LiveTopic", 2, 6)))
    ran = seglog("park", path, message.message_id, "--group", "cgsql", "--apply")
    assert ran.exit_code == 0, ran.stderr
    topics = read_config(path / "config" / "topics.json")["topicConfigTable"]
    assert topics["%PARK%cgsql"]["readQueueNums"] == 1
    assert json.loads(seglog("query", path, "--id", message.message_id, "--json").stdout)["queueOffset"] == 6

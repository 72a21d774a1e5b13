"""How far delay levels are outlives the broker: nothing due is lost, and nothing comes twice."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.store import MessageStore
from tests.support.brokers import open_broker, send, send_delayed
from tests.support.material.config_files import read_config
from tests.support.material.golden import config_names, extract
from tests.support.scale import chance, scaled

START_MS = 1_700_000_000_000
DAY = "1d"


def table_of(path):
    return read_config(path / "config" / "delayOffset.json")


def bodies(broker, topic="T"):
    return [
        message.body
        for queue in broker.store.queues()
        if queue.topic == topic
        for message in broker.store.get(topic, queue.queue_id, 0, 1_000).messages
    ]


def killed(path, copy):
    """Returns what a broker at ``path`` would leave if its process ended now, but for the large index."""
    shutil.copytree(path, copy, ignore=shutil.ignore_patterns("index"))
    return copy


def test_offsets_are_saved_in_rocketmqs_form_with_the_others(tmp_path):
    with open_broker(tmp_path) as broker:
        send_delayed(broker, 1)
        send_delayed(broker, 4)
        broker.advance("4.999s")
        assert not (tmp_path / "config" / "delayOffset.json").exists()
        broker.advance("1ms")
        end = broker.store.max_phy_offset
        assert table_of(tmp_path) == {
            "dataVersion": {"counter": 1, "stateVersion": 0, "timestamp": START_MS + 5_000},
            "offsetTable": {1: 1, 4: 0},
            "seglogLogEnd": end,
        }


def test_fields_that_are_not_known_stay(tmp_path):
    with open_broker(tmp_path) as broker:
        send_delayed(broker, 1)
        broker.advance(0)
    file = tmp_path / "config" / "delayOffset.json"
    file.write_text(file.read_text().replace("{", '{"new": [1],', 1))
    with open_broker(tmp_path) as broker:
        broker.advance("1s")
    assert (table_of(tmp_path)["new"], table_of(tmp_path)["offsetTable"]) == ([1], {1: 1})


def test_deliveries_are_on_the_disk_before_they_count(tmp_path):
    done = []

    class Files(RealFiles):
        @override
        def write_file(self, path, data, *, sync=True):
            done.append(path.name)
            super().write_file(path, data, sync=sync)

    class Store(MessageStore):
        @override
        def flush(self):
            done.append("flush")
            super().flush()

    clock = VirtualClock()
    with Broker(Store.open(tmp_path, clock=clock, files=Files()), clock=clock) as broker:
        send_delayed(broker, 1)
        broker.advance("1s")
        done.clear()
        broker.persist()
        assert done.index("flush") < done.index("delayOffset.json.tmp")


def test_a_killed_broker_delivers_nothing_twice(tmp_path):
    with open_broker(tmp_path / "store") as broker:
        for number in range(100):
            send_delayed(broker, 1 + number % 3, b"%d" % number, queue_id=number % 4)
            send(broker, "T", b"%d" % number)
        broker.advance("5s")  # saved, with the first two levels delivered
        for number in range(100, 200):
            send_delayed(broker, 1, b"%d" % number)
            send(broker, "T", b"%d" % number)
        broker.advance("4.5s")
        assert table_of(tmp_path / "store")["offsetTable"][1] == 34
        before = Counter(bodies(broker))
        left = killed(tmp_path / "store", tmp_path / "left")
    with open_broker(left, VirtualClock(START_MS + 9_500)) as broker:
        broker.advance(0)
        assert Counter(bodies(broker)) == before
        broker.advance(DAY)
        assert Counter(bodies(broker)) == {b"%d" % number: 2 for number in range(200)}


@pytest.mark.parametrize("seed", range(scaled(12, 500)))
def test_killed_at_any_moment_and_again_each_message_is_delivered_once(tmp_path, seed):
    dice = chance("killed at any moment", seed)
    now_ms, path, sent = START_MS, tmp_path / "0", 0
    for life in range(4):
        broker = open_broker(path, VirtualClock(now_ms))
        for _ in range(dice.randrange(40)):
            for _ in range(dice.randrange(4)):
                send_delayed(broker, dice.randrange(1, 5), b"%d" % sent, queue_id=dice.randrange(2))
                sent += 1
            step_ms = dice.choice((0, 1, 300, 1_000, 2_500))
            broker.advance(step_ms)
            now_ms += step_ms
        path = killed(path, tmp_path / f"{life + 1}")
        broker.close()
    with open_broker(path, VirtualClock(now_ms)) as broker:
        broker.advance(DAY)
        assert Counter(bodies(broker)) == Counter(b"%d" % number for number in range(sent))
        assert broker.store.max_offset(SCHEDULE_TOPIC, 0) > 0


def test_a_message_that_goes_nowhere_has_none_behind_it_come_twice(tmp_path):
    with open_broker(tmp_path / "store") as broker:
        broker.advance("1s")
        for number in range(4):
            send_delayed(broker, 1, b"%d" % number)
            if number in {0, 2}:
                broker.store.append(SCHEDULE_TOPIC, 0, b"nowhere", encode_properties({"DELAY": "1"}), 0)
        broker.persist()
        broker.advance("1s")
        left = killed(tmp_path / "store", tmp_path / "left")
    with open_broker(left, VirtualClock(START_MS + 2_000)) as broker:
        send_delayed(broker, 1, b"4")
        broker.advance("1s")
        assert bodies(broker) == [b"0", b"1", b"2", b"3", b"4"]


def test_equal_messages_are_told_apart_by_their_number(tmp_path):
    with open_broker(tmp_path / "store") as broker:
        for _ in range(3):
            send_delayed(broker, 1, b"same", UNIQ_KEY="u")
        broker.advance("1s")
        for _ in range(2):
            send_delayed(broker, 1, b"same", UNIQ_KEY="u")
        broker.persist()
        broker.advance(500)
        left = killed(tmp_path / "store", tmp_path / "left")
    with open_broker(left, VirtualClock(START_MS + 2_000)) as broker:
        broker.advance(0)
        assert bodies(broker) == [b"same"] * 5


def test_a_delivery_by_a_java_broker_that_was_killed_is_known_by_its_properties(tmp_path):
    with open_broker(tmp_path) as broker:
        send_delayed(broker, 1, b"x", TAGS="A")
    with MessageStore.open(tmp_path) as store:
        waiting = store.get(SCHEDULE_TOPIC, 0, 0, 1).messages[0]
        properties = dict(reversed(waiting.properties.items()))
        store.append(
            *("T", 0, b"x", encode_properties(properties), 65),
            born_timestamp_ms=waiting.born_timestamp_ms,
            born_host=waiting.born_host,
        )
    with open_broker(tmp_path, VirtualClock(START_MS + 5_000)) as broker:
        broker.advance(0)
        assert bodies(broker) == [b"x"]


def test_a_delivery_that_was_lost_with_the_end_of_the_log_is_made_again(tmp_path):
    with open_broker(tmp_path / "store") as broker:
        send_delayed(broker, 1, b"first")
        send_delayed(broker, 1, b"second")
        broker.advance("1s")
        cut_at = broker.store.get("T", 0, 1, 1).messages[0].phy_offset
        left = killed(tmp_path / "store", tmp_path / "left")
    with (left / "commitlog" / f"{0:020d}").open("r+b") as log:
        log.seek(cut_at)
        log.write(bytes(1_000))
    with open_broker(left, VirtualClock(START_MS + 1_000)) as broker:
        assert bodies(broker) == [b"first"]
        broker.advance(0)
        assert bodies(broker) == [b"first", b"second"]


def test_without_its_table_a_level_finds_what_it_delivered(tmp_path):
    with open_broker(tmp_path) as broker:
        for number in range(10):
            send_delayed(broker, 1, b"%d" % number)
        broker.advance("1s")
        send_delayed(broker, 1, b"late")
    (tmp_path / "config" / "delayOffset.json").unlink()
    (tmp_path / "config" / "delayOffset.json.bak").unlink(missing_ok=True)
    with open_broker(tmp_path, VirtualClock(START_MS + 5_000)) as broker:
        broker.advance(0)
        assert bodies(broker) == [*(b"%d" % number for number in range(10)), b"late"]


@pytest.mark.parametrize(("saved", "expected"), [(0, 2), (1, 1), (2, 0), (9, 0), (-5, 2)])
def test_a_java_brokers_table_is_taken_at_its_word_but_within_the_queue(tmp_path, caplog, saved, expected):
    with open_broker(tmp_path) as broker:
        for _ in range(2):
            send_delayed(broker, 1)
        broker.advance("1s")
    table = '{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":7},"offsetTable":{1:'
    (tmp_path / "config" / "delayOffset.json").write_text(f"{table}{saved}}}}}")
    with open_broker(tmp_path, VirtualClock(START_MS + 5_000)) as broker:
        broker.advance("1s")
        assert len(bodies(broker)) == 2 + expected
    assert table_of(tmp_path)["offsetTable"] == {1: 2}
    assert ("continues at" in caplog.text) == (saved in (9, -5))


@pytest.mark.parametrize("name", [*config_names(), "broker-store"])
def test_what_a_java_broker_delivered_is_not_delivered_again(tmp_path, name):
    path = extract(name, tmp_path)
    before = table_of(path)["offsetTable"]
    with Broker.open(path, clock=VirtualClock(1_900_000_000_000)) as broker:
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in broker.store.queues()}
        broker.advance(DAY)
        assert {(q.topic, q.queue_id): q.max_offset for q in broker.store.queues()} == ends
    assert table_of(path)["offsetTable"] == before


def test_what_a_java_broker_accepted_is_delivered_here(tmp_path):
    path = extract("broker-store", tmp_path)
    file = path / "config" / "delayOffset.json"
    file.write_text(file.read_text().replace("1:9", "1:8"))
    with Broker.open(path, clock=VirtualClock(1_900_000_000_000)) as broker:
        count = len(bodies(broker, "%RETRY%gopushRetry2"))
        broker.advance(0)
        assert len(bodies(broker, "%RETRY%gopushRetry2")) == count + 1
    assert table_of(path)["offsetTable"] == {1: 9}

"""Delayed messages wait in the delay topic as RocketMQ stores them, and come out at their moment."""

from __future__ import annotations

import dataclasses
import logging
import time

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.broker.delay.delay_levels import DelayLevels
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import SystemClock, VirtualClock
from seglog.errors import FullError, InvalidArgumentError
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.format.record.record import DELAY_LEVELS_S
from seglog.storage.format.record.sys_flag import TRANSACTION_COMMIT
from seglog.storage.store import MessageStore
from tests.support.brokers import (
    QUEUE_FILE_BYTES,
    SEGMENT_BYTES,
    open_broker,
    send,
    send_delayed,
    send_header,
)
from tests.support.machine.patience import patience_s, wait_until
from tests.support.machine.said import said
from tests.support.material.golden import extract

START_MS = 1_700_000_000_000
STAMP = {"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


def stored(broker, topic="T", queue_id=0):
    return broker.store.get(topic, queue_id, 0, 1_000).messages


def bodies(broker, topic="T", queue_id=0):
    return [message.body for message in stored(broker, topic, queue_id)]


def due_times(broker, level):
    queue = broker.store.queue(SCHEDULE_TOPIC, level - 1)
    return queue.units()["tags_code"].tolist()


def without_place(message):
    """Returns what two records of one content share."""
    return dataclasses.replace(message, queue_offset=0, phy_offset=0, store_timestamp_ms=0)


@pytest.mark.parametrize("level", range(1, 19))
def test_s4_32_a_message_waits_as_long_as_its_level_says(tmp_path, level):
    delay_ms = DELAY_LEVELS_S[level - 1] * 1_000
    with open_broker(tmp_path) as broker:
        send_delayed(broker, level, b"late")
        assert due_times(broker, level) == [START_MS + delay_ms]
        broker.advance(delay_ms - 1)
        assert bodies(broker) == []
        broker.advance(1)
        assert bodies(broker) == [b"late"]
        assert stored(broker)[0].store_timestamp_ms == START_MS + delay_ms


def test_a_waiting_message_is_stored_as_rocketmq_stores_it(broker: Broker):
    answer = send_delayed(broker, 3, b"x", queue_id=2, TAGS="A", UNIQ_KEY="u", TIMER_DELAY_SEC="5")
    (message,) = stored(broker, SCHEDULE_TOPIC, 2)
    found = {name: value for name, value in message.properties.items() if name != "__CRC32#"}
    assert found == {
        "DELAY": "3",
        "TAGS": "A",
        "UNIQ_KEY": "u",
        "REAL_TOPIC": "T",
        "REAL_QID": "2",
        **STAMP,
    }
    assert (send_header(answer).queue_id, send_header(answer).queue_offset) == (2, 0)
    assert send_header(answer).msg_id == message.message_id
    assert stored(broker, queue_id=2) == []


def test_levels_beyond_the_highest_are_the_highest(broker: Broker):
    send_delayed(broker, 19)
    assert stored(broker, SCHEDULE_TOPIC, 17)[0].properties["DELAY"] == "18"


@pytest.mark.parametrize(("text", "expected"), [("+3", "3"), ("007", "7"), ("2147483647", "18")])
def test_levels_are_read_as_java_reads_numbers(broker: Broker, text, expected):
    send_delayed(broker, text)
    (message,) = stored(broker, SCHEDULE_TOPIC, int(expected) - 1)
    assert message.properties["DELAY"] == expected


@pytest.mark.parametrize("text", ["three", "1.0", "2147483648", "9" * 5_000, " 1"])
def test_a_level_that_java_cannot_read_is_refused(broker: Broker, text):
    assert send_delayed(broker, text).code is ResponseCode.SYSTEM_ERROR
    assert broker.store.queues() == []


@pytest.mark.parametrize("level", [0, -1])
def test_a_level_below_one_does_not_wait(broker: Broker, level):
    send_delayed(broker, level, b"now")
    assert bodies(broker) == [b"now"]


def test_what_was_delivered_is_found_by_its_tag(broker: Broker):
    send_delayed(broker, 1, b"a", TAGS="A")
    send_delayed(broker, 1, b"b", TAGS="B")
    broker.advance("1s")
    assert [message.body for message in broker.store.get("T", 0, 0, 10, "B").messages] == [b"b"]


def test_a_delivery_has_every_byte_that_a_java_broker_wrote(tmp_path):
    java = MessageStore.open(extract("broker-store", tmp_path))
    with java as theirs, Broker.open(tmp_path / "ours", clock=VirtualClock(), record_crc=False) as broker:
        waiting = theirs.get(SCHEDULE_TOPIC, 0, 0, 100).messages
        expected = []
        for message in waiting:
            target = message.properties["REAL_TOPIC"], int(message.properties["REAL_QID"])
            expected += [
                found
                for found in theirs.get(*target, 0, 1_000).messages
                if found.properties_raw == message.properties_raw
                and found.reconsume_times == message.reconsume_times
            ]
            broker.store.append(
                SCHEDULE_TOPIC,
                0,
                message.body,
                message.properties_raw,
                0,
                sys_flag=message.sys_flag,
                flag=message.flag,
                born_timestamp_ms=message.born_timestamp_ms,
                born_host=message.born_host,
                store_host=message.store_host,
                reconsume_times=message.reconsume_times,
            )
        broker.advance("1s")
        ours = [
            message
            for queue in broker.store.queues()
            if queue.topic != SCHEDULE_TOPIC
            for message in stored(broker, queue.topic, queue.queue_id)
        ]
    by_place = sorted(map(without_place, ours), key=repr)
    assert len(expected) == len(waiting) == 9
    assert by_place == sorted(map(without_place, expected), key=repr)


def test_each_level_keeps_its_order_and_is_passed_by_shorter_ones(broker: Broker):
    for number in range(200):
        send_delayed(broker, 2 - number % 2, b"%d" % number)
    broker.advance("1s")
    assert bodies(broker) == [b"%d" % number for number in range(1, 200, 2)]
    broker.advance("4s")
    assert bodies(broker)[100:] == [b"%d" % number for number in range(0, 200, 2)]


def test_a_batch_has_no_delay_level(broker: Broker):
    batch = MessageBatch([BatchMessage(b"x")])
    raw = encode_properties({"DELAY": "1"})
    answer = send(broker, "T", batch, properties=raw, code=RequestCode.SEND_BATCH_MESSAGE)
    assert answer.code is ResponseCode.MESSAGE_ILLEGAL


def test_messages_of_a_batch_keep_their_bytes_and_do_not_wait(broker: Broker):
    batch = MessageBatch([BatchMessage(b"x", encode_properties({"DELAY": "1"}))])
    assert send(broker, "T", batch, code=RequestCode.SEND_BATCH_MESSAGE).code is ResponseCode.SUCCESS
    assert bodies(broker) == [b"x"]


def test_levels_can_be_others(tmp_path):
    config = BrokerConfig(delay_levels="2s 1d")
    with open_broker(tmp_path, config=config) as broker:
        send_delayed(broker, 1, b"first")
        send_delayed(broker, 7, b"second")
        assert (due_times(broker, 1), due_times(broker, 2)) == (
            [START_MS + 2_000],
            [START_MS + 86_400_000],
        )
        broker.advance("1.999s")
        assert bodies(broker) == []
        broker.advance("1ms")
        assert bodies(broker) == [b"first"]
    clock = VirtualClock(START_MS + 86_400_000 - 1)
    with open_broker(tmp_path, clock, config) as broker:
        broker.advance(0)
        assert bodies(broker) == [b"first"]
        broker.advance(1)
        assert bodies(broker) == [b"first", b"second"]


def test_other_levels_count_for_queue_units_that_a_recovery_made_again(tmp_path):
    config = BrokerConfig(delay_levels="2s")
    with open_broker(tmp_path, config=config) as broker:
        send_delayed(broker, 1, b"x")
    for file in (tmp_path / "consumequeue" / SCHEDULE_TOPIC / "0").iterdir():
        file.unlink()
    with open_broker(tmp_path, config=config) as broker:
        assert due_times(broker, 1) == [START_MS + 1_000]
        broker.advance("1.999s")
        assert bodies(broker) == []
        broker.advance("1ms")
        assert bodies(broker) == [b"x"]


@pytest.mark.parametrize("text", ["", "1", "1s  2s", "s", "1x", "-1s", " 1s", "1s " * 99 + "1s"])
def test_levels_that_are_none_are_refused(text):
    with pytest.raises(InvalidArgumentError, match="delay levels"):
        DelayLevels(text)


def test_a_message_due_farther_away_than_its_level_ever_is_comes_at_once(tmp_path):
    """The machine's time was set back since it was stored."""
    with open_broker(tmp_path, VirtualClock(START_MS + 3_600_000)) as broker:
        send_delayed(broker, 1, b"x")
    with open_broker(tmp_path, VirtualClock(START_MS)) as broker:
        broker.advance(0)
        assert bodies(broker) == [b"x"]


def test_the_opening_and_undoing_of_transactions_do_not_wait(broker: Broker):
    for flag in (4, 12):
        broker.store.append(SCHEDULE_TOPIC, 0, b"x", encode_properties({"DELAY": "1"}), 0, sys_flag=flag)
    broker.advance("10s")
    assert [queue for queue in broker.store.queues() if queue.topic != SCHEDULE_TOPIC] == []


def test_a_committed_message_waits_and_keeps_its_flag(broker: Broker):
    raw = encode_properties({"DELAY": "1", "REAL_TOPIC": "T", "REAL_QID": "1"})
    broker.store.append(SCHEDULE_TOPIC, 0, b"x", raw, 0, sys_flag=TRANSACTION_COMMIT)
    broker.advance("1s")
    assert stored(broker, queue_id=1)[0].sys_flag == TRANSACTION_COMMIT


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({}, "goes nowhere"),
        ({"REAL_TOPIC": "T"}, "goes nowhere"),
        ({"REAL_TOPIC": "T", "REAL_QID": "x"}, "goes nowhere"),
        ({"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"}, "goes nowhere"),
        ({"REAL_TOPIC": SCHEDULE_TOPIC, "REAL_QID": "0"}, "goes nowhere"),
        ({"REAL_TOPIC": "a/b", "REAL_QID": "0"}, "cannot be delivered"),
        ({"REAL_TOPIC": "T", "REAL_QID": "9999999999"}, "cannot be delivered"),
    ],
    ids=str,
)
def test_what_can_never_be_delivered_is_said_and_passed(broker: Broker, caplog, properties, says):
    broker.store.append(SCHEDULE_TOPIC, 0, b"x", encode_properties({"DELAY": "1", **properties}), 0)
    send_delayed(broker, 1, b"behind")
    broker.advance("1s")
    assert says in caplog.text
    assert bodies(broker) == [b"behind"]


def test_a_topic_that_is_gone_gets_its_message_all_the_same(broker: Broker, caplog):
    send_delayed(broker, 1, b"x")
    broker.topics.delete("T")
    broker.advance("1s")
    assert "topic T, which is gone" in caplog.text
    assert bodies(broker) == [b"x"]


def test_messages_that_were_lost_are_passed(tmp_path):
    with open_broker(tmp_path) as broker:
        for number in range(3):
            send_delayed(broker, 1, b"number %d" % number)
        second = stored(broker, SCHEDULE_TOPIC)[1]
    log = tmp_path / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    at = data.index(b"number 1", second.phy_offset)
    data[at : at + 6] = b"\0" * 6  # more than the one bit that opening puts right
    log.write_bytes(data)
    with open_broker(tmp_path, VirtualClock(START_MS + 5_000)) as broker:
        broker.advance(0)
        assert bodies(broker) == [b"number 0", b"number 2"]


def test_a_delivery_that_fails_is_made_again(tmp_path, caplog):
    class FailingStore(MessageStore):
        failures = 3

        @override
        def append(self, topic, *arguments, **options):
            if topic == "T" and len(bodies(broker)) == 2 and self.failures:
                self.failures -= 1
                raise FullError("no space left")
            return super().append(topic, *arguments, **options)

    broker = Broker(FailingStore.open(tmp_path, clock=(clock := VirtualClock())), clock=clock)
    with broker:
        for number in range(4):
            send_delayed(broker, 1, b"%d" % number)
        broker.advance("3.999s")
        assert bodies(broker) == [b"0", b"1"]
        assert caplog.text.count("no space left") == 3
        broker.advance("1ms")
        assert bodies(broker) == [b"0", b"1", b"2", b"3"]


def test_on_real_time_a_message_comes_within_milliseconds_of_its_moment(tmp_path):
    config = BrokerConfig(delay_levels="1s")
    with Broker.open(
        tmp_path, config=config, segment_size_bytes=SEGMENT_BYTES, queue_file_size_bytes=QUEUE_FILE_BYTES
    ) as broker:
        sent_s = time.monotonic()
        send_delayed(broker, 1, b"x")
        assert broker.store.wait_for("T", 0, 0, patience_s(10) * 1_000)
        assert 0.99 <= time.monotonic() - sent_s < patience_s(5)
        waiting, delivered = stored(broker, SCHEDULE_TOPIC)[0], stored(broker)[0]
        assert delivered.store_timestamp_ms - waiting.store_timestamp_ms >= 1_000


def test_the_delay_store_of_the_bare_engine_is_delivered(tmp_path):
    path = extract("delay", tmp_path)
    with Broker.open(path, clock=VirtualClock(1_795_247_253_479 + 7_200_000)) as broker:
        broker.advance(1_000)
        delivered = [message for queue_id in range(4) for message in stored(broker, "DelayTopic", queue_id)]
        held = [message for queue_id in range(18) for message in stored(broker, SCHEDULE_TOPIC, queue_id)]
    assert sorted(message.keys for message in delivered) == sorted(message.keys for message in held)
    assert len(delivered) == 40


def test_a_broker_with_nothing_to_deliver_has_no_table(tmp_path):
    with open_broker(tmp_path) as broker:
        send(broker, "T")
        broker.advance("72h")
    assert not (tmp_path / "config" / "delayOffset.json").exists()


def test_the_log_says_nothing_when_all_is_well(broker: Broker, caplog):
    with caplog.at_level(logging.INFO):
        send_delayed(broker, 1)
        broker.advance("1h")
    assert said(caplog) == []


class SetBackClock(VirtualClock):
    """A clock whose wall can be set back; what is monotonic goes on."""

    back_ms = 0

    @override
    def now_ms(self) -> int:
        """Returns the wall's time."""
        return super().now_ms() - self.back_ms


@pytest.fixture
def set_back(tmp_path):
    clock = SetBackClock(START_MS)
    with open_broker(tmp_path / "set back", clock) as broker:
        yield clock, broker


HOUR_MS = 3_600_000
TWO_HOURS = 18
"""Delay level."""


def test_finding_12_of_the_broker_after_the_wall_clock_went_back_an_hour_what_waited_for_less_comes_at_once(
    set_back,
):
    clock, broker = set_back
    send_delayed(broker, TWO_HOURS, b"young")
    broker.advance("59m")
    assert bodies(broker) == []
    clock.back_ms = HOUR_MS
    broker.run_due()
    assert bodies(broker) == [b"young"]


def test_after_the_wall_clock_went_back_an_hour_what_waited_for_longer_comes_an_hour_late(set_back):
    clock, broker = set_back
    send_delayed(broker, TWO_HOURS, b"old")
    broker.advance("61m")
    clock.back_ms = HOUR_MS
    broker.advance(2 * HOUR_MS - 60_000 - 1)
    assert bodies(broker) == []
    broker.advance(1)
    assert bodies(broker) == [b"old"]


def test_after_the_wall_clock_went_back_a_level_keeps_its_order(set_back):
    clock, broker = set_back
    send_delayed(broker, TWO_HOURS, b"old")
    broker.advance("90m")
    send_delayed(broker, TWO_HOURS, b"young")
    clock.back_ms = HOUR_MS
    broker.advance("1h")
    assert bodies(broker) == []
    broker.advance("30m")
    assert bodies(broker) == [b"old"]
    broker.advance("90m")
    assert bodies(broker) == [b"old", b"young"]


def test_after_the_wall_clock_went_back_threads_on_real_time_see_it_within_a_second(tmp_path):
    clock = SetBackSystemClock()
    with Broker.open(tmp_path, clock=clock) as broker:
        send_delayed(broker, TWO_HOURS, b"young")
        clock.back_ms = HOUR_MS
        assert wait_until(lambda: bodies(broker), idle_s=10) == [b"young"]


class SetBackSystemClock(SystemClock):
    """The machine's clock, whose wall can be set back."""

    back_ms = 0

    @override
    def now_ms(self) -> int:
        """Returns the wall's time."""
        return super().now_ms() - self.back_ms

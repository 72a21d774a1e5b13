"""Old messages go when their time has come, and none that is still needed unless the policy says so."""

from __future__ import annotations

import json
import time
from datetime import datetime
from itertools import pairwise

import pytest

from seglog.broker.broker import Broker
from seglog.broker.offsets.idleness import idle_groups
from seglog.broker.retention.retention import FILES_IN_A_PASS, HOUR_MS, next_hour_ms
from seglog.broker.retention.retention_impact import Why
from seglog.broker.retention.retention_side_files import PARKED
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import TopicConfig
from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError
from seglog.remoting.codes import ResponseCode
from seglog.storage.format.record.message import decode_message
from tests.support.brokers import pull, pull_header, records_body, send
from tests.support.counted_calls import counted_calls
from tests.support.machine.disks import memory_disk, why_not
from tests.support.material.stores import SEGMENT_BYTES
from tests.support.narrow import not_none

DAY_MS = 24 * HOUR_MS


def fill(broker, count, *, topic="T", every="0s"):
    """Sends messages of which three fit into a file of the log, and the time between them passes."""
    for _ in range(count):
        assert send(broker, topic, bytes(1000)).code is ResponseCode.SUCCESS
        broker.advance(every)


def consume(broker, count, *, group="cg", topic="T", queue_id=0):
    broker.groups.find(group)
    broker.offsets.commit(group, topic, queue_id, count, "client")


def first_offset(broker, topic="T"):
    return broker.store.min_offset(topic, 0)


# --------------------------------------------------------------------------------------- by age


def test_messages_go_72_hours_after_they_were_sent(open_broker):
    broker = open_broker()
    fill(broker, 30)
    broker.advance("71h 59m")
    assert first_offset(broker) == 0
    broker.advance("2m")
    # The file of the last message stays, in RocketMQ too.
    assert broker.store.min_phy_offset >= broker.store.max_phy_offset - 2 * SEGMENT_BYTES
    assert pull(broker, "T", 0).code is ResponseCode.PULL_OFFSET_MOVED
    assert pull(broker, "T", first_offset(broker)).code is ResponseCode.SUCCESS


def test_only_what_is_old_goes(open_broker):
    broker = open_broker()
    fill(broker, 60, every="2h")
    broker.advance("10s")
    segments = broker.store.retention.segments()
    oldest_ms = broker._clock.now_ms() - segments[0].newest_store_ms
    assert oldest_ms < 72 * HOUR_MS
    assert 72 * HOUR_MS - oldest_ms < 3 * 2 * HOUR_MS
    message = pull(broker, "T", first_offset(broker)).body
    assert message is not None


def test_files_go_at_the_hour_of_the_day_that_is_meant_for_it(open_broker, clock):
    broker = open_broker(retention_delete_hours=(4,))
    fill(broker, 30)
    gone_at = []
    began_ms = clock.now_ms()
    while clock.now_ms() < began_ms + 5 * DAY_MS:
        before = broker.store.min_phy_offset
        broker.advance("30m")
        if broker.store.min_phy_offset > before:
            gone_at.append(datetime.fromtimestamp(clock.now_ms() / 1000).astimezone().hour)
    assert set(gone_at) == {4}


def test_hours_of_the_day_are_local(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        now_ms = VirtualClock().now_ms()
        due_ms = next_hour_ms(now_ms, (4,))
        due = datetime.fromtimestamp(due_ms / 1000).astimezone()
        assert (due.hour, due.minute, due.second) == (4, 0, 0)
        assert 0 < due_ms - now_ms <= DAY_MS
        assert next_hour_ms(due_ms + 1, (4,)) == due_ms + 1
    finally:
        monkeypatch.undo()
        time.tzset()


def test_four_virtual_days_take_few_turns_and_little_work(open_broker):
    broker = open_broker(retention_delete_hours=(4,))
    fill(broker, 60)
    turns = []
    original = broker.retention.run
    broker.retention.run = lambda: (turns.append(1), original())
    with counted_calls() as calls:
        broker.advance("96h")
    assert 1_000 < calls[0] < 100_000, "a look at each second of them would take more"
    assert first_offset(broker) > 0
    assert len(turns) < 60


def test_a_pass_deletes_at_most_ten_files_with_a_pause_after_each(open_broker, clock):
    broker = open_broker()
    fill(broker, 3 * 24)
    broker.advance("71h 59m")
    removed = []
    trim = broker.store.retention.delete_before
    broker.store.retention.delete_before = lambda at: (removed.append(clock.now_ms()), trim(at))
    broker.advance("2m")
    assert len(removed) > 2 * FILES_IN_A_PASS
    gaps = [after - before for before, after in pairwise(removed)]
    in_a_pass = FILES_IN_A_PASS - 1
    assert gaps[:in_a_pass] == [100] * in_a_pass
    assert gaps[in_a_pass] == 10_000


def test_a_request_deletes_old_files_at_any_hour(open_broker, clock):
    local = datetime.fromtimestamp(clock.now_ms() / 1000).astimezone()
    broker = open_broker(retention_delete_hours=((local.hour + 12) % 24,))
    fill(broker, 30)
    broker.advance("72h 10s")
    before = first_offset(broker)
    broker.retention.request()
    broker.advance("1s")
    assert first_offset(broker) > before


# ------------------------------------------------------------------------------------- by the disk


def test_a_disk_that_fills_up_lets_old_files_go_at_any_hour(open_broker, clock, disk):
    local = datetime.fromtimestamp(clock.now_ms() / 1000).astimezone()
    broker = open_broker(retention_delete_hours=((local.hour + 12) % 24,))
    fill(broker, 30)
    disk.percent = 76
    broker.advance("71h")
    assert first_offset(broker) == 0
    broker.advance("1h 10s")
    assert first_offset(broker) > 0


def test_a_disk_that_is_nearly_full_lets_files_go_whatever_their_age(open_broker, disk):
    broker = open_broker(retention_policy="allow")
    fill(broker, 30)
    disk.percent = 85
    broker.advance("2m")
    assert first_offset(broker) == 0
    fill(broker, 1)
    disk.percent = 86
    broker.advance("2m")
    assert first_offset(broker) > 20


@pytest.mark.parametrize("policy", ["refuse", "park"])
def test_a_full_disk_costs_no_message_that_nobody_had_the_time_to_read(open_broker, disk, policy):
    broker = open_broker(retention_policy=policy)
    fill(broker, 30)
    disk.percent = 95
    broker.advance("10m")
    if policy == "refuse":
        assert first_offset(broker) == 0
        refused = send(broker, "T")
        assert refused.code is ResponseCode.SERVICE_NOT_AVAILABLE
        assert "needed by 3 unread" in not_none(refused.remark)
        disk.percent = 10
        broker.advance("73h")
        assert first_offset(broker) > 20, "their time is over, and nobody reads them"
    else:
        parked = [
            json.loads(line)
            for file in (broker.path / PARKED).iterdir()
            for line in file.read_text().splitlines()
        ]
        assert len(parked) == first_offset(broker) > 20
        assert {one["why"] for line in parked for one in line["parkedFor"]} == {"unread"}


def test_files_go_only_until_there_is_space(open_broker, disk):
    broker = open_broker()
    fill(broker, 30)
    consume(broker, 30)
    disk.percent = 86
    trim = broker.store.retention.delete_before

    def trim_and_free(at):
        trim(at)
        disk.percent -= 1

    broker.store.retention.delete_before = trim_and_free
    broker.advance("2m")
    assert broker.store.min_phy_offset == SEGMENT_BYTES


def test_sends_are_refused_above_90_percent_until_there_are_85(open_broker, disk):
    broker = open_broker(retention_policy="allow")
    fill(broker, 3)
    disk.percent = 91
    broker.advance("70s")
    answer = send(broker, "T")
    assert answer.code is ResponseCode.SERVICE_NOT_AVAILABLE
    assert "the broker's disk is full [CL:  0.91 CQ:  0.91 INDEX:  0.91]" in not_none(answer.remark)
    disk.percent = 86
    broker.advance("10s")
    assert send(broker, "T").code is ResponseCode.SERVICE_NOT_AVAILABLE
    disk.percent = 85
    broker.advance("10s")
    assert send(broker, "T").code is ResponseCode.SUCCESS
    disk.percent = 90
    broker.advance("10s")
    assert send(broker, "T").code is ResponseCode.SUCCESS


# --------------------------------------------------------------------------------------- the guard


def test_a_file_that_a_group_still_needs_stays_and_goes_once_it_has_it(open_broker, caplog):
    broker = open_broker()
    fill(broker, 30)
    consume(broker, 10)
    broker.advance("73h")
    kept = first_offset(broker)
    assert 10 - 3 <= kept <= 10
    assert [(v.why, v.group, v.topic, v.queue_id) for v in broker.retention.held.victims] == [
        (Why.UNDELIVERED, "cg", "T", 0)
    ]
    assert "group cg" in caplog.text
    consume(broker, 30)
    broker.advance("1m")
    assert first_offset(broker) > 20
    assert broker.retention.held is None


def test_a_refused_send_names_the_group_that_holds_the_log_and_what_to_run(open_broker, disk):
    broker = open_broker()
    fill(broker, 30)
    consume(broker, 1, group="slow")
    disk.percent = 95
    broker.advance("2m")
    answer = send(broker, "T")
    assert answer.code is ResponseCode.SERVICE_NOT_AVAILABLE
    assert "group slow: 2 undelivered" in not_none(answer.remark)
    assert f"seglog retention plan {broker.path}" in not_none(answer.remark)


def test_with_the_policy_of_rocketmq_needed_messages_go(open_broker, caplog):
    broker = open_broker(retention_policy="allow")
    fill(broker, 30)
    consume(broker, 1)
    broker.advance("73h")
    assert first_offset(broker) > 20
    assert "needed by group cg" in caplog.text


def test_needed_messages_are_parked_before_they_go(open_broker):
    broker = open_broker(retention_policy="park")
    fill(broker, 30)
    consume(broker, 10)
    consume(broker, 12, group="other")
    broker.advance("73h")
    low = first_offset(broker)
    assert low > 20
    files = sorted((broker.path / PARKED).iterdir())
    assert {file.suffix for file in files} == {".jsonl"}
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [row["queueOffset"] for row in rows] == list(range(10, low))
    both = [{"why": "undelivered", "group": group} for group in ("cg", "other")]
    assert [row["parkedFor"] for row in rows] == [both[:1]] * 2 + [both] * (low - 12)


def test_without_space_to_park_nothing_goes(open_broker, disk, caplog):
    broker = open_broker(retention_policy="park")
    fill(broker, 30)
    consume(broker, 1)
    create = disk.create

    def full(path, size_bytes):
        made = create(path, size_bytes)
        if path.parent.name == "parked":
            made.close()
            path.unlink()
            raise OSError(28, "No space left on device", str(path))
        return made

    disk.create = full
    broker.advance("73h")
    assert first_offset(broker) == 0
    assert "retention failed" in caplog.text
    del disk.create
    broker.advance("2h")
    assert first_offset(broker) > 20


def test_groups_that_nobody_uses_any_more_can_be_left_out(open_broker):
    broker = open_broker(retention_idle_days=7)
    fill(broker, 30)
    consume(broker, 1)
    broker.persist()
    broker.advance("6d")
    assert first_offset(broker) <= 1
    broker.advance("2d")
    assert first_offset(broker) > 20


def test_a_history_that_is_too_young_makes_no_group_idle(open_broker, clock):
    broker = open_broker()
    fill(broker, 1)
    assert idle_groups(broker.offset_past, clock.now_ms()) == frozenset()
    consume(broker, 1)
    broker.persist()
    assert idle_groups(broker.offset_past, clock.now_ms() - 1) == frozenset()
    assert idle_groups(broker.offset_past, clock.now_ms() + 1) == {"cg"}


def test_an_unknown_policy_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"retention_policy='keep' .*'refuse', 'park' or 'allow'"):
        Broker.open(tmp_path / "store", clock=VirtualClock(), config=BrokerConfig(retention_policy="keep"))


# ------------------------------------------------------------------------------------ a real disk


@pytest.mark.skipif(why_not("tmpfs") is not None, reason=str(why_not("tmpfs")))
def test_a_disk_that_is_full_refuses_until_the_group_that_holds_it_goes_on(tmp_path, clock):
    with (
        memory_disk(tmp_path, 8) as path,
        Broker.open(
            path / "store",
            clock=clock,
            config=BrokerConfig(retention_hours=72),
            segment_size_bytes=256 << 10,
            queue_file_size_bytes=2000,
        ) as broker,
    ):
        consume(broker, 1)
        sent = 0
        while (answer := send(broker, "T", bytes(20_000))).code is ResponseCode.SUCCESS and sent < 1000:
            sent += 1
            broker.advance("10s")
        assert answer.code is ResponseCode.SERVICE_NOT_AVAILABLE
        assert "group cg:" in not_none(answer.remark)
        used = broker.store.files.usage(broker.path).used_percent
        assert 90 < used < 100
        assert pull(broker, "T", sent - 1).code is ResponseCode.SUCCESS
        consume(broker, sent)
        broker.advance("20s")
        assert broker.store.files.usage(broker.path).used_percent <= 85
        assert first_offset(broker) > 1
        assert send(broker, "T", bytes(20_000)).code is ResponseCode.SUCCESS


# ----------------------------------------------------------------------------------- compaction


def test_s4_39_a_compaction_topic_outlives_the_log_files_of_its_messages(open_broker):
    broker = open_broker(retention_policy="refuse")
    broker.topics.put(TopicConfig("kept", 1, 1, attributes={"cleanup.policy": "COMPACTION"}))
    for number in range(9):
        sent = send(broker, "kept", bytes([number]) * 1000, properties=b"KEYS\x01k%d\x02" % number)
        assert sent.code is ResponseCode.SUCCESS
    consume(broker, 2, topic="kept")
    fill(broker, 9)
    broker.advance("74h")
    assert broker.store.min_phy_offset > 0, "what waits for the group is in the topic's own log"
    assert pull(broker, "T", 0).code is ResponseCode.PULL_OFFSET_MOVED
    answer = pull(broker, "kept", 0)
    header = pull_header(answer)
    assert (answer.code, header.min_offset, header.max_offset) == (ResponseCode.SUCCESS, 0, 9)
    bodies = [decode_message(record).body[0] for record in records_body(answer).records]
    assert bodies == list(range(9))
    broker.close()
    again = open_broker()
    assert [len(record) for record in records_body(pull(again, "kept", 0)).records] == [
        len(record) for record in records_body(answer).records
    ]

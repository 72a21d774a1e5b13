"""What tools show of a whole broker: where its groups are, who produces, and how it runs."""

from __future__ import annotations

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.broker.handlers import runtime
from seglog.clock import VirtualClock
from seglog.remoting.admin_bodies import BrokerConsumeStatsBody, ConsumeStatsBody, GroupOffsets, KeyValuesBody
from seglog.remoting.admin_headers import BrokerConsumeStatsHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.headers import CreateTopicHeader
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody, Producer, ProducersBody
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.peer import Peer
from seglog.remoting.subscription import SubscriptionData
from seglog.storage.files.files import DiskUsage
from seglog.storage.format.record import Host
from seglog.storage.threads import WouldWaitError, without_waiting
from seglog.testing import RoomyFiles
from tests.support.brokers import ask, open_broker, pull, send, send_delayed

START_MS = 1_700_000_000_000


@pytest.fixture
def clock():
    return VirtualClock(START_MS)


def consume_stats(broker, *, is_order_only=False):
    header = BrokerConsumeStatsHeader(is_order_only)
    body = expect_body(ask(broker, RequestCode.GET_BROKER_CONSUME_STATS, header), BrokerConsumeStatsBody)
    return body, {name: found for entry in body.groups for name, found in entry.items()}


def queue(queue_id, topic="T"):
    return MessageQueue(topic, "broker-a", queue_id)


def test_all_groups_are_shown_with_what_they_have_still_to_consume(broker):
    for topic, count in (("T", 5), ("U", 2)):
        for _ in range(count):
            send(broker, topic)
    pull(broker, "T", max_msg_nums=3)
    broker.offsets.commit("cg", "T", 0, 1)
    broker.offsets.commit("cg", "U", 0, 2)
    broker.groups.find("idle")
    body, groups = consume_stats(broker)
    assert body.broker_address == broker.config.address
    assert (body.total_lag, body.total_inflight) == (4, 2)
    assert groups["idle"] == ()
    of_t, of_u = groups["cg"]
    assert of_t.offsets[queue(0)] == GroupOffsets(5, 1, 3, START_MS)
    assert of_t.offsets[queue(1)] == GroupOffsets(0, 0, 0, 0)
    assert of_u.offsets[queue(0, "U")] == GroupOffsets(2, 2, 2, START_MS)
    assert set(groups) == {group.name for group in broker.groups.all()}


def test_groups_are_shown_in_topics_of_order_alone_if_that_is_asked(broker):
    make = CreateTopicHeader("Ordered", "TBW102", 2, 2, 6, is_order=True)
    ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, make)
    send(broker, "T")
    send(broker, "Ordered")
    broker.groups.find("cg")
    for topic in ("T", "Ordered", "Gone"):
        broker.offsets.commit("cg", topic, 0, 0)
    body, groups = consume_stats(broker, is_order_only=True)
    empty = GroupOffsets(0, 0, 0, 0)
    ordered = {queue(0, "Ordered"): GroupOffsets(1, 0, 0, 0), queue(1, "Ordered"): empty}
    assert groups["cg"] == (ConsumeStatsBody(ordered),)
    assert (body.total_lag, body.total_inflight) == (1, 0)


def test_a_group_that_is_online_is_shown_in_what_it_subscribes_to(broker):
    for topic in ("T", "U"):
        send(broker, topic)
        broker.offsets.commit("g", topic, 0, 1)
    data = ConsumerData("g", (SubscriptionData("U", version=1),))
    ask(broker, RequestCode.HEART_BEAT, body=HeartbeatBody("c", (), (data,)))
    _, groups = consume_stats(broker)
    assert [{one.topic for one in found.offsets} for found in groups["g"]] == [{"U"}]


def test_all_groups_are_not_shown_by_a_thread_that_may_not_wait(broker):
    request = Request(RequestCode.GET_BROKER_CONSUME_STATS, BrokerConsumeStatsHeader(is_order_only=False))
    with without_waiting(), pytest.raises(WouldWaitError):
        broker.dispatch(request)


def test_producers_are_shown_by_group_with_when_they_were_heard_of(broker, clock):
    assert ask(broker, RequestCode.GET_ALL_PRODUCER_INFO).body == ProducersBody({})
    first = Peer("c1", Host(b"\x7f\0\0\1", 5001), language="GO", version=317)
    second = Peer("c2", Host(b"\x7f\0\0\1", 5002), language="JAVA", version=493)
    broker.dispatch(Request(RequestCode.HEART_BEAT, body=HeartbeatBody("c1", ("pg", "ph"))), first)
    clock.advance(30_000)
    broker.dispatch(Request(RequestCode.HEART_BEAT, body=HeartbeatBody("c2", ("pg",))), second)
    clock.advance(5_000)
    old = Producer("c1", "/127.0.0.1:5001", "GO", 317, START_MS)
    new = Producer("c2", "/127.0.0.1:5002", "JAVA", 493, START_MS + 30_000)
    answer = ask(broker, RequestCode.GET_ALL_PRODUCER_INFO)
    assert (answer.code, answer.body) == (
        ResponseCode.SUCCESS,
        ProducersBody({"pg": (old, new), "ph": (old,)}),
    )


# ------------------------------------------------------------------------------------ how it runs


def running(broker):
    return expect_body(ask(broker, RequestCode.GET_BROKER_RUNTIME_INFO), KeyValuesBody).values


OF_CLUSTER_LIST = {
    *("brokerActive", "brokerVersionDesc", "commitLogDiskRatio", "earliestMessageTimeStamp"),
    *("getTransferredTps", "putTps", "pageCacheLockTimeMills", "sendThreadPoolQueueSize"),
    *("sendThreadPoolQueueHeadWaitTimeMills", "pullThreadPoolQueueSize", "ackThreadPoolQueueSize"),
    *("pullThreadPoolQueueHeadWaitTimeMills", "ackThreadPoolQueueHeadWaitTimeMills"),
    *("msgGetTotalTodayMorning", "msgGetTotalTodayNow", "msgGetTotalYesterdayMorning"),
    *("msgPutTotalTodayMorning", "msgPutTotalTodayNow", "msgPutTotalYesterdayMorning"),
    *("timerCongestNum", "timerDequeueTps", "timerEnqueueTps", "timerOffsetBehind", "timerReadBehind"),
}
"""What mqadmin's clusterList looks for."""


def test_bytes_are_what_the_log_has_grown_by(tmp_path, clock):
    with open_broker(tmp_path / "s", clock) as broker:
        send(broker, "T", b"x" * 500)
        size_bytes = broker.store.max_phy_offset
        broker.store.flush()
        assert running(broker)["putMessageTimesTotal"] == "1"
    with open_broker(tmp_path / "s", clock) as broker:
        found = running(broker)
        assert (found["putMessageSizeTotal"], found["putMessageTimesTotal"]) == ("0", "1")
        for _ in range(2):
            send(broker, "T", b"x" * 500)
        found = running(broker)
        assert (found["putMessageSizeTotal"], found["putMessageTimesTotal"]) == (str(2 * size_bytes), "2")
        assert found["putMessageAverageSize"] == f"{size_bytes}.0"
        broker.store.flush()
        assert running(broker)["remainHowManyDataToFlush"] == "0 B"


def test_what_a_part_says_of_itself_is_shown_for_as_long_as_it_is_there(broker):
    take_back = broker.figures.add_facts(lambda: {"sendThreadPoolQueueSize": "7", "new": "x"})
    found = running(broker)
    assert (found["sendThreadPoolQueueSize"], found["new"]) == ("7", "x")
    take_back()
    found = running(broker)
    assert (found["sendThreadPoolQueueSize"], found.get("new")) == ("0", None)


def test_a_broker_says_how_it_runs(broker, clock, tmp_path):
    found = running(broker)
    assert set(found) >= OF_CLUSTER_LIST
    assert (found["bootTimestamp"], found["earliestMessageTimeStamp"]) == (str(START_MS), "-1")
    assert found["brokerVersionDesc"] == "V5_5_1"
    assert found["runtime"] == "[ 0 days, 0 hours, 0 minutes, 0 seconds ]"
    assert found["commitLogDiskRatio_" + str(tmp_path / "store/commitlog")] == found["commitLogDiskRatio"]
    clock.advance(93_784_000)
    send(broker, "T")
    later = running(broker)
    assert later["runtime"] == "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"
    assert later["bootTimestamp"] == str(START_MS)
    assert later["earliestMessageTimeStamp"] == str(START_MS + 93_784_000)
    assert later["commitLogMinOffset"] == "0"
    assert later["commitLogMaxOffset"] == str(broker.store.max_phy_offset)
    assert (found["putTps"], later["putTps"]) == ("0.00 0.00 0.00", "0.05 0.01 0.00")
    assert later["getTransferredTps"] == "0.00 0.00 0.00"


class QuarterFull(RoomyFiles):
    """The machine's files on a disk that is a quarter full."""

    @override
    def usage(self, path):
        return DiskUsage(1 << 30, 3 << 30)


def test_a_broker_says_how_full_its_disk_is(tmp_path):
    path = tmp_path / "store"
    with Broker.open(path, clock=VirtualClock(START_MS), files=QuarterFull(path)) as broker:
        found = running(broker)
    assert [found[name] for name in ("commitLogDiskRatio", "consumeQueueDiskRatio")] == ["0.25", "0.25"]
    assert found["commitLogDirCapacity"] == "Total : 4.0 GiB, Free : 3.0 GiB."


def test_a_broker_says_how_far_delayed_messages_are_delivered(broker):
    for _ in range(3):
        send_delayed(broker, 2)
    send_delayed(broker, 3)
    broker.advance("6s")
    found = running(broker)
    assert found["scheduleMessageOffset_2"] == "3,3"
    assert found["scheduleMessageOffset_3"] == "0,1"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 << 30, "5.0 GiB"),
        ((1 << 40) - 1, "1024.0 GiB"),
        (3 << 60, "3.0 EiB"),
    ],
)
def test_sizes_are_shown_as_java_shows_them(size_bytes, text):
    assert runtime._size(size_bytes) == text

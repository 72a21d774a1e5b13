"""What a group pulls without having named it in a heartbeat belongs to its topics for ten minutes."""

from __future__ import annotations

from seglog.broker.broker import Broker
from seglog.broker.tables.pulled_topics import PulledTopics
from seglog.clock import VirtualClock
from seglog.remoting.admin_headers import ConsumeStatsHeader
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import CloneGroupOffsetHeader, ResetOffsetHeader
from seglog.remoting.subscription import SubscriptionData
from tests.support.brokers import open_broker, pull, send
from tests.support.clients import ToldClient


def consuming(broker: Broker) -> None:
    """Has group cg be online for topic T alone, with offsets in T and U."""
    for topic in ("T", "U"):
        send(broker, topic)
        broker.offsets.commit("cg", topic, 0, 1)
    ToldClient(broker, "a").beat(SubscriptionData("T", "*", 1))


def cloned(broker):
    """Returns which topics another group got offsets in."""
    header = CloneGroupOffsetHeader("cg", "copy")
    broker.dispatch(Request(RequestCode.CLONE_GROUP_OFFSET, header))
    return sorted(broker.offsets.topics_of("copy"))


def shown(broker):
    """Returns which topics the group's lag is shown in."""
    answer = broker.dispatch(Request(RequestCode.GET_CONSUME_STATS, ConsumeStatsHeader("cg")))
    return sorted({queue.topic for queue in answer.body.offsets})


def test_finding_5_of_the_broker_a_topic_that_is_pulled_only_is_cloned_and_shown(tmp_path):
    with open_broker(tmp_path, clock=VirtualClock()) as broker:
        consuming(broker)
        assert (cloned(broker), shown(broker)) == (["T"], ["T"])
        pull(broker, "U")
        assert (cloned(broker), shown(broker)) == (["T", "U"], ["T", "U"])


def test_after_ten_minutes_it_is_left_out_again(tmp_path):
    clock = VirtualClock()
    with open_broker(tmp_path, clock=clock) as broker:
        consuming(broker)
        pull(broker, "U")
        clock.advance(600_000)
        assert shown(broker) == ["T", "U"]
        clock.advance(1)
        assert shown(broker) == ["T"]


def test_finding_6_of_the_broker_a_reset_that_is_pending_goes_before_what_is_cloned(tmp_path):
    with open_broker(tmp_path, clock=VirtualClock()) as broker:
        for _ in range(9):
            send(broker, "T")
        broker.groups.find("copy")
        broker.offsets.commit("cg", "T", 0, 5)
        reset = ResetOffsetHeader("copy", "T", 0, True, 0, 8)
        broker.dispatch(Request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset))
        cloned(broker)
        assert broker.offsets.query("copy", "T", 0) == 8
        assert broker.offsets.take_reset("copy", "T", 0) == 8
        assert broker.offsets.query("copy", "T", 0) == 5


def test_pulls_of_long_ago_take_no_memory():
    clock = VirtualClock()
    pulled = PulledTopics(clock)
    for number in range(2_000):
        pulled.note("g", f"T{number}")
        clock.advance(60_000)
    assert len(pulled._pulled_ms) < 100
    assert pulled.has("g", "T1999")
    assert not pulled.has("g", "T0")

"""Usual sends, which the kernels make in one call, are what the handlers would have made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seglog.broker.broker import Broker
from seglog.broker.tables.topics import MULTI_TAG, TopicConfig
from seglog.clock import VirtualClock
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import NO_HEADER, Request
from seglog.remoting.headers import SendMessageHeader
from seglog.remoting.peer import LOCAL_PEER, Peer
from seglog.storage.format.record.host import Host
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.writes.flush import Durability
from tests.support.brokers import open_broker, send, send_header

native_only = pytest.mark.skipif(KERNELS != NATIVE, reason="Python kernels leave all sends to the handlers")

USUAL = SendMessageHeader("pg", "T", "TBW102", 4, 0, 0, 1_234, 7, b"UNIQ_KEY\x01u\x02TAGS\x01A\x02")
PEERS = (
    LOCAL_PEER,
    Peer("four", Host(b"\x0a\x01\x02\x03", 65_535)),
    Peer("six", Host(bytes(range(16)), 1)),
)
TOPICS = (
    TopicConfig("T", 4, 4),
    TopicConfig("Narrow", 1, 2),
    TopicConfig("Ordered", 2, 2, is_order=True),
    TopicConfig("Tags", 2, 2, filter_type=MULTI_TAG),
    TopicConfig("Silent", 2, 2, 4),
    TopicConfig("%RETRY%g", 1, 1),
    TopicConfig("%LMQ%x", 1, 1),
)
PLAIN = ("UNIQ_KEY", "TAGS", "WAIT", "KEYS", "a", "UNIQ_KEYS", "XTAGS", "DELAY_")
SPECIAL = (
    *(
        "CLUSTER",
        "MSG_REGION",
        "TRACE_ON",
        "POP_CK",
        "DELAY",
        "TRAN_MSG",
        "TIMER_DELAY_SEC",
        "TIMER_DELAY_MS",
    ),
    *("TIMER_DELIVER_MS", "INNER_BASE", "INNER_NUM", "__CRC32#"),
)
ODD = (
    *(("topic", topic.name) for topic in TOPICS),
    *(("topic", name) for name in ("New", "Newer", "SCHEDULE_TOPIC_XXXX", "", "no/ne", "T" * 128)),
    *(("queue_id", number) for number in (1, 2, 3, 4, -1, 2**31 - 1, 2**40)),
    *(("sys_flag", number) for number in (1, 2, 4, 8, 12, 16, 1 << 7, 1 << 20, -1, 2**31)),
    *(("born_timestamp_ms", number) for number in (0, -1, 2**62, 2**63)),
    *(("flag", number) for number in (0, -1, 2**31)),
    *(("reconsume_times", number) for number in (1, 16, -1)),
    ("default_topic", "none"),
)
"""What is not as in a usual send, or only just so."""

values = st.sampled_from(
    [b"", b"1", b"false", b"true", b"A", b"\xff", b"caf\xc3\xa9", b"a\x01b", b"\xed\xa0\x80"]
) | st.binary(max_size=4)
entries = st.builds(
    lambda name, value: name.encode() + b"\x01" + value,
    st.sampled_from(PLAIN * 6 + SPECIAL),
    values,
)
properties = st.builds(
    lambda key, rest, end: b"\x02".join([*key, *rest]) + end,
    st.sampled_from([[b"UNIQ_KEY\x01id"], [b"UNIQ_KEY\x01id"], [b"UNIQ_KEY\x01id", b"TAGS\x01TagA"], []]),
    st.lists(entries | st.binary(max_size=6), max_size=3),
    st.sampled_from([b"\x02", b""]),
)
headers = st.builds(
    lambda raw, odd: replace(USUAL, properties=raw, **dict(odd)),
    properties,
    st.lists(st.sampled_from(ODD), max_size=1),
)
bodies = st.one_of(
    st.binary(max_size=50),
    st.binary(max_size=50),
    st.binary(max_size=50).map(lambda body: memoryview(body)[:]),
    st.sampled_from([None, bytes(5 << 20), MessageBatch([BatchMessage(b"x", b"")])]),
)
requests = st.builds(
    Request,
    st.sampled_from([RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_MESSAGE, 310, 10]),
    st.one_of(headers, headers, headers, st.just(NO_HEADER)),
    bodies,
    is_oneway=st.booleans(),
)
changes = st.sampled_from(["fewer", "more", "deleted", "shut", "open", "open"])
sends = st.tuples(requests, st.sampled_from(PEERS))
steps = st.lists(st.one_of(sends, sends, sends, changes), min_size=1, max_size=12)


def change(broker: Broker, how: str) -> None:
    """Changes what the sends before have met."""
    if how == "deleted":
        if broker.topics.get("New") is not None:
            broker.topics.delete("New")
    elif how in {"fewer", "more"}:
        count = 1 if how == "fewer" else 4
        broker.topics.put(TopicConfig("T", count, count))
    else:
        broker._state.disk.look(100 if how == "shut" else 0)


def by_handlers(broker: Broker) -> Broker:
    """Has a broker leave all sends to its handlers."""
    broker._state = replace(broker._state, try_send=lambda *_: None)
    return broker


def files_of(root: Path) -> dict[str, bytes]:
    """Returns what a store holds, but for what says where it is."""
    kinds = ("commitlog", "consumequeue", "config")
    return {
        str(file.relative_to(root)): file.read_bytes()
        for kind in kinds
        for file in sorted((root / kind).rglob("*"))
        if file.is_file()
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps)
def test_the_same_requests_get_the_same_answers_on_both_ways(pair, taken):
    quick, slow = pair
    for step in ("open", "more", *taken):
        if isinstance(step, str):
            change(quick, step)
            change(slow, step)
        else:
            assert quick.dispatch(*step) == slow.dispatch(*step)
    assert quick.store.max_phy_offset == slow.store.max_phy_offset
    assert {(queue.topic, queue.queue_id, queue.max_offset) for queue in quick.store.queues()} == {
        (queue.topic, queue.queue_id, queue.max_offset) for queue in slow.store.queues()
    }


@pytest.fixture
def pair(tmp_path: Path):
    """Two brokers over stores of their own, whose files must be the same in the end."""
    roots = tmp_path / "quick", tmp_path / "slow"
    quick, slow = (open_broker(root, VirtualClock()) for root in roots)
    by_handlers(slow)
    for broker in (quick, slow):
        broker._state.disk._refuse_percent = 95
        broker.topics.put_all(TOPICS)
        send(broker, "T")
    yield quick, slow
    quick.close()
    slow.close()
    assert files_of(roots[0]) == files_of(roots[1])


@native_only
@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2])
def test_a_usual_send_needs_no_handler(broker: Broker, code):
    send(broker, "T")
    for number in range(1, 4):
        answer = broker._state.try_send(Request(code, USUAL, b"body"), LOCAL_PEER)
        assert answer is not None
        header = send_header(answer)
        assert (header.queue_offset, header.transaction_id) == (number, "u")
        message = broker.store.message_at(int(header.msg_id[16:], 16))
        assert (message.message_id, message.body, message.flag) == (header.msg_id, b"body", 7)
        assert broker.store.get("T", 0, number, 1, "A").messages == [message]


@native_only
@pytest.mark.parametrize(
    "header",
    [
        replace(USUAL, properties=b"TAGS\x01A\x02"),
        replace(USUAL, properties=b"UNIQ_KEY\x01u\x02DELAY\x013\x02"),
        replace(USUAL, queue_id=-1),
        replace(USUAL, queue_id=4),
        replace(USUAL, topic="Ordered"),
        replace(USUAL, topic="%RETRY%g"),
        replace(USUAL, sys_flag=4),
    ],
)
def test_what_needs_more_than_to_be_stored_is_left_to_the_handlers(broker: Broker, header):
    broker.topics.put_all(TOPICS)
    for topic in ("T", header.topic):
        send(broker, topic)  # from now on there is room in its queue
    assert broker._state.try_send(Request(RequestCode.SEND_MESSAGE_V2, USUAL, b""), LOCAL_PEER) is not None
    before = broker.store.max_phy_offset
    assert broker._state.try_send(Request(RequestCode.SEND_MESSAGE_V2, header, b""), LOCAL_PEER) is None
    assert broker.store.max_phy_offset == before


@native_only
def test_a_send_that_waits_for_the_disk_is_left_to_the_handlers(tmp_path: Path):
    with Broker.open(tmp_path, clock=VirtualClock(), durability=Durability.SYNC, small=True) as broker:
        send(broker, "T")
        waits = Request(RequestCode.SEND_MESSAGE_V2, USUAL, b"")
        assert broker._state.try_send(waits, LOCAL_PEER) is None
        header = replace(USUAL, properties=b"UNIQ_KEY\x01u\x02WAIT\x01false\x02")
        answer = broker._state.try_send(replace(waits, header=header), LOCAL_PEER)
        assert answer is not None
        assert send_header(answer).durability == Durability.ASYNC.value


def test_a_closed_broker_answers_no_usual_send(broker: Broker):
    send(broker, "T")
    broker.close()
    answer = broker.dispatch(Request(RequestCode.SEND_MESSAGE_V2, USUAL, b""))
    assert answer.code is ResponseCode.SERVICE_NOT_AVAILABLE
    assert broker._state.try_send(Request(RequestCode.SEND_MESSAGE_V2, USUAL, b""), LOCAL_PEER) is None

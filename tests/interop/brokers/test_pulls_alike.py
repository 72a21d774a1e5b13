"""Heartbeats, refused pulls, portions and SQL92 filters: the real broker and ours answer the same."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.remoting.client_headers import GroupForbiddenHeader
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import CreateTopicHeader, PullMessageHeader, SendMessageHeader
from seglog.remoting.heartbeat import ConsumerData, ConsumeType, HeartbeatBody, MessageModel
from seglog.remoting.peer import Peer
from seglog.remoting.subscription import SubscriptionData
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import decode_message
from tests.interop.judging.alike import plain_remark
from tests.interop.judging.difference_cases import EXPLAINED
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import Geometry
from tests.interop.judging.wire import encode_answer
from tests.support.connections import QuietConnection
from tests.support.narrow import not_none

pytestmark = pytest.mark.interop

GEOMETRY = Geometry(64 << 20, 20_000, 500, 20_000)
CALM: dict[str, Any] = {
    "timerWheelEnable": False,
    # The judge asks for more than a broker gives; here the broker's own bounds are the subject.
    "maxTransferCountOnMessageInMemory": 32,
    "maxTransferBytesOnMessageInMemory": 256 << 10,
    "maxTransferCountOnMessageInDisk": 8,
    "maxTransferBytesOnMessageInDisk": 64 << 10,
}
GROUP = "cg"
PLAIN = PullMessageHeader(GROUP, "T", 0, 0, 32, 0, 0, 0, 5)
FLAGGED = dataclasses.replace(PLAIN, sys_flag=int(PullFlag.SUBSCRIPTION), subscription="*")
SQL = "a > 3 AND b IS NOT NULL"


class Both:
    """Two brokers that are asked the same."""

    def __init__(self, ours, theirs):
        self._ours, self._theirs = ours, theirs
        self._peer = Peer("c1", Host(b"\x7f\x00\x00\x01", 1), QuietConnection())

    def __call__(self, request):
        """Returns the answer of both, which is one."""
        ours = encode_answer(request, self._ours.dispatch(request, self._peer))
        theirs = self._theirs.ask(request, "c1")
        assert essence(ours) == essence(theirs), request
        return ours

    def pull(self, header=PLAIN, code=RequestCode.PULL_MESSAGE, **changes):
        return self(Request(code, dataclasses.replace(header, **changes)))

    def beat(self, *subscriptions, model=MessageModel.CLUSTERING, kind=ConsumeType.PASSIVELY, fingerprint=0):
        data = ConsumerData(GROUP, subscriptions, kind, model)
        return self(Request(RequestCode.HEART_BEAT, body=HeartbeatBody("c1", (), (data,), fingerprint)))

    def group(self, **settings):
        return self(
            Request(
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SubscriptionGroup(GROUP, **settings)
            )
        )

    def topic(self, perm=6, **settings):
        header = CreateTopicHeader("T", "TBW102", 4, 4, perm, **settings)
        return self(Request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))

    def forbid(self, is_forbidden):
        header = GroupForbiddenHeader(GROUP, "T", not is_forbidden)
        return self(Request(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, header))

    def send(self, body=b"x", properties=""):
        header = SendMessageHeader(
            "pg", "T", "TBW102", 4, 0, 0, 1_234, 0, f"UNIQ_KEY\x01u\x02{properties}".encode()
        )
        request = Request(RequestCode.SEND_MESSAGE_V2, header, body)
        answers = [
            encode_answer(request, self._ours.dispatch(request, self._peer)),
            self._theirs.ask(request, "c1"),
        ]
        assert [answer.code for answer in answers] == [0, 0]


def bodies(records):
    view, at, found = memoryview(records), 0, []
    while at < len(view):
        message = decode_message(view[at:])
        found.append(bytes(message.body))
        at += message.size_bytes
    return found


def essence(answer):
    ext = {name: value for name, value in answer.ext.items() if name != "seglogDurability"}
    remark = plain_remark(answer.remark).partition(EXPLAINED)[0].rstrip(" ,")
    if answer.code == ResponseCode.INVALID_PARAMETER:
        remark = remark.partition("consumer:")[0]  # theirs continues with the client's address
    if remark == "not set any response code":
        remark = ""  # what Java says of a success that says nothing
    body = answer.body
    if body[:1] == b"{":
        body = json.loads(body)
    elif body:
        body = bodies(body)
    return answer.code, remark, ext, body


def both(judge, tmp_path, config, percent_in_memory=40, **settings):
    """Returns both brokers, each on its own empty directory, as two context managers."""
    settings["brokerName"] = "broker-a"
    store = CALM | {"accessMessageInMemoryMaxRatio": percent_in_memory}
    theirs = judge.broker(tmp_path / "theirs", GEOMETRY, settings=settings, **store)
    ours = Broker.open(
        tmp_path / "ours",
        segment_size_bytes=GEOMETRY.segment_size_bytes,
        queue_file_size_bytes=GEOMETRY.queue_file_size_bytes,
        record_crc=False,
        config=config,
    )
    return ours, theirs


def test_s4_36_pulls_are_refused_alike_one_reason_after_another(judge: Judge, tmp_path):
    ours, theirs = both(
        judge,
        tmp_path,
        BrokerConfig(auto_create_groups=False, lite_pull_message_enable=False, enable_property_filter=True),
        autoCreateSubscriptionGroup=False,
        litePullMessageEnable=False,
        enablePropertyFilter=True,
    )
    with ours as our_broker, theirs as their_broker:
        ask = Both(our_broker, their_broker)
        codes = []

        def pull(**changes):
            codes.append(ask.pull(**changes).code)

        lite = Request(RequestCode.LITE_PULL_MESSAGE, PLAIN)
        their_lite = their_broker.ask(lite)
        our_lite = encode_answer(lite, our_broker.dispatch(lite))
        assert (
            (our_lite.code, our_lite.ext) == (their_lite.code, their_lite.ext) == (16, {"forbiddenType": "1"})
        )
        pull(queue_id=9)
        ask.group(is_consume_enabled=False, is_broadcast_enabled=False)
        pull(queue_id=9)
        ask.group(is_broadcast_enabled=False, sys_flag=3)
        pull(queue_id=9)
        ask.topic(perm=2)
        pull(queue_id=9)
        ask.topic(topic_sys_flag=1)
        pull(queue_id=9)
        pull()
        ask.forbid(is_forbidden=True)
        ask.beat(model=MessageModel.BROADCASTING)
        pull()
        ask.beat(model=MessageModel.CLUSTERING)
        pull()
        ask.forbid(is_forbidden=False)
        pull()
        ask.beat(SubscriptionData("T", "TagA", 4))
        pull()
        ask.beat(SubscriptionData("T", "a =", 6, "SQL92"))
        pull()
        ask.beat(SubscriptionData("T", SQL, 7, "SQL92"))
        pull()
        pull(sys_flag=int(PullFlag.SUBSCRIPTION), subscription="||")
        pull(sys_flag=int(PullFlag.SUBSCRIPTION), subscription="", expression_type="SQL92")
        assert codes == [26, 16, 17, 16, 29, 24, 16, 16, 24, 25, 27, 19, 23, 23]


def test_s4_36_without_property_filters_and_with_rejected_pulls_they_refuse_alike(judge: Judge, tmp_path):
    ours, theirs = both(
        judge, tmp_path, BrokerConfig(reject_pull_consumer_enable=True), rejectPullConsumerEnable=True
    )
    with ours as our_broker, theirs as their_broker:
        ask = Both(our_broker, their_broker)
        ask.group()
        ask.topic()
        ask.beat(SubscriptionData("T", SQL, 7, "SQL92"), kind=ConsumeType.ACTIVELY)
        codes = [
            ask.pull().code,
            ask.pull(FLAGGED).code,
            ask.pull(FLAGGED, consumer_group="TOOLS_CONSUMER").code,
            ask.pull(FLAGGED, subscription=SQL, expression_type="SQL92").code,
        ]
        ask.beat(SubscriptionData("T", SQL, 7, "SQL92"))
        codes += [ask.pull().code, ask.pull(FLAGGED).code]
        assert codes == [24, 24, 19, 1, 1, 19]


@pytest.mark.parametrize("percent_in_memory", [40, 0], ids=["hot", "cold"])
def test_s4_42_portions_and_sql_filters_are_alike(judge: Judge, tmp_path, percent_in_memory):
    config = BrokerConfig(enable_property_filter=True, hot_bytes=None if percent_in_memory else 0)
    ours, theirs = both(judge, tmp_path, config, percent_in_memory, enablePropertyFilter=True)
    with ours as our_broker, theirs as their_broker:
        ask = Both(our_broker, their_broker)
        ask.group(sys_flag=3)
        ask.topic()
        for number in range(60):
            b = "b\x01x\x02" if number % 2 else ""
            ask.send(bytes(10 if number < 40 else 30_000), f"TAGS\x01t\x02a\x01{number % 7}\x02{b}")
        for at in (0, 20, 35, 45, 59, 60):
            for count in (1, 5, 32, 100):
                ask.pull(FLAGGED, queue_offset=at, max_msg_nums=count)
        sql = {"subscription": SQL, "expression_type": "SQL92"}
        for at in (0, 7, 50):
            for count in (1, 3, 32):
                ask.pull(FLAGGED, queue_offset=at, max_msg_nums=count, **sql)
        ask.pull(FLAGGED, subscription="a = 'no' AND TAGS = 't'", expression_type="SQL92")
        ask.beat(SubscriptionData("T", "TAGS = 't' AND a BETWEEN 2 AND 3", 5, "SQL92"))
        assert ask.pull().code == ResponseCode.SUCCESS


def test_s0_04_the_filters_that_ours_stored_are_taken_over_by_theirs(judge: Judge, tmp_path):
    root = tmp_path / "store"
    subscription = SubscriptionData("T", SQL, 7, "SQL92")
    body = HeartbeatBody("c1", (), (ConsumerData(GROUP, (subscription,)),))
    with Broker.open(
        root,
        segment_size_bytes=GEOMETRY.segment_size_bytes,
        queue_file_size_bytes=GEOMETRY.queue_file_size_bytes,
    ) as ours:
        ours.dispatch(Request(RequestCode.HEART_BEAT, body=body))
    before = stored_filter(root)
    (root / "config" / "consumerFilter.json.bak").unlink(missing_ok=True)
    with judge.broker(root, GEOMETRY, settings={"enablePropertyFilter": True}, **CALM):
        time.sleep(0.1)
    after = stored_filter(root)
    # It drops all of them when one is not what it would have stored itself.
    assert {**after, "dead": None, "deadTime": None} == {**before, "dead": None, "deadTime": None}
    assert after["dead"]
    with Broker.open(root) as ours:
        assert not_none(ours.filters.get(GROUP, "T")).expression == SQL


def stored_filter(root):
    table = json.loads((root / "config" / "consumerFilter.json").read_text())["filterDataByTopic"]
    return table["T"]["groupFilterData"][GROUP]

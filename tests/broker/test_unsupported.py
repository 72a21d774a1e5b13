"""Each request code of RocketMQ 5.4.0 is answered, asked of clients, or refused, and the log says why."""

from __future__ import annotations

import json

import pytest

from seglog.broker.handlers.table import HANDLERS
from seglog.broker.state.unsupported import UNSUPPORTED
from seglog.remoting.admin_bodies import GroupSubscriptionBody, HaStatusBody
from seglog.remoting.admin_headers import GroupSubscriptionHeader
from seglog.remoting.body_json.dialects import Dialect
from seglog.remoting.body_json.figure_bodies import GROUP_SUBSCRIPTION, HA_STATUS
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import expect_body
from seglog.remoting.frames.limits import DEFAULT_LIMITS
from seglog.remoting.heartbeat import HeartbeatBody
from seglog.remoting.subscription import SubscriptionData
from tests.support.asks import beat_of
from tests.support.brokers import ask, send
from tests.support.rows import every_row

ASKED_OF_CLIENTS = {40, 220, 221, 307, 309, 326}
"""The last but two are asked of the broker too."""
OF_5_4_0 = {
    *range(10, 16), 17, 18, 21, 22, 23, *range(25, 44), 45, 46, 47, 60, 61, *range(100, 107),
    *range(200, 218), *range(219, 226), *range(300, 330), 343, 345, *range(351, 356), 361, 370,
    *range(400, 403), 513, *range(901, 909), *range(1001, 1014), *range(2001, 2005), *range(3001, 3011),
    5001, *range(200050, 200057), 200151,
}  # fmt: skip


def test_no_code_of_rocketmq_is_left_out_and_none_is_in_both_tables():
    assert len(OF_5_4_0) == 154
    assert HANDLERS.keys() & UNSUPPORTED.keys() == set()
    assert HANDLERS.keys() | UNSUPPORTED.keys() | ASKED_OF_CLIENTS == OF_5_4_0


@pytest.mark.parametrize("unknown", [7, 99_999])
def test_what_is_not_supported_is_refused_with_3_and_the_log_says_why(broker, caplog, unknown):
    with every_row() as row:
        for code in (*UNSUPPORTED, unknown):
            caplog.clear()
            with row(code):
                check_refused(broker, caplog, code)


def check_refused(broker, caplog, code):
    for _ in range(2):
        answer = ask(broker, code)
        assert answer.code is ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert answer.remark == f" request type {code} not supported"
    (line,) = caplog.messages
    reason = UNSUPPORTED.get(code, ("", "the requests that are known here are those of RocketMQ 5.4.0"))[1]
    assert line.startswith(f"requests of code {code} (")
    assert reason in line


def test_what_a_group_subscribes_to_is_told_while_it_is_online(broker):
    asked = RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, GroupSubscriptionHeader("g", "T")
    assert ask(broker, *asked).body == GroupSubscriptionBody("g", "T")
    beat = beat_of("c", "T")
    assert isinstance(beat.body, HeartbeatBody)
    broker.dispatch(beat)
    (said,) = beat.body.consumers[0].subscriptions
    assert isinstance(said, SubscriptionData)
    body = expect_body(ask(broker, *asked), GroupSubscriptionBody)
    assert body == GroupSubscriptionBody("g", "T", said)
    written = GROUP_SUBSCRIPTION.encode(body, Dialect.FASTJSON)
    assert GROUP_SUBSCRIPTION.decode(written, DEFAULT_LIMITS) == body
    assert json.loads(written)["subscriptionData"]["topic"] == "T"
    other = ask(broker, RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, GroupSubscriptionHeader("g", "U"))
    assert other.body == GroupSubscriptionBody("g", "U")


def test_the_broker_is_a_master_without_slaves(broker):
    send(broker, "T")
    body = expect_body(ask(broker, RequestCode.GET_BROKER_HA_STATUS), HaStatusBody)
    assert body == HaStatusBody(broker.store.max_phy_offset)
    assert json.loads(HA_STATUS.encode(body, Dialect.FASTJSON)) == {
        "haClientRuntimeInfo": {
            "lastReadTimestamp": 0,
            "lastWriteTimestamp": 0,
            "masterFlushOffset": 0,
            "maxOffset": 0,
            "transferredByteInSecond": 0,
        },
        "haConnectionInfo": [],
        "inSyncSlaveNums": 0,
        "master": True,
        "masterCommitLogMaxOffset": broker.store.max_phy_offset,
    }

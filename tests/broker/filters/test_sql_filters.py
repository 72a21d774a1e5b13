"""Consumers filter by SQL92 expressions, in the broker and by the properties of each message."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from seglog.broker.settings.config import BrokerConfig
from seglog.clock import VirtualClock
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.heartbeat import CheckClientBody
from seglog.remoting.subscription import SubscriptionData
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.properties import encode_properties
from tests.support.brokers import open_broker, pull, pull_header, send
from tests.support.clients import GROUP, ToldClient
from tests.support.machine.patience import patience_s
from tests.support.narrow import not_none

WITH_SQL = BrokerConfig(enable_property_filter=True)
BEATEN = PullMessageHeader(GROUP, "T", 0, 0, 32, 0, 0, 0, 5)
EXPRESSION = "a > 3 AND b IS NOT NULL"


@pytest.fixture
def broker(tmp_path):
    with open_broker(tmp_path, VirtualClock(), WITH_SQL) as opened:
        for a in range(6):
            for b in ("x", None):
                properties = {"a": str(a), "TAGS": "t"} | ({} if b is None else {"b": b})
                send(opened, "T", f"{a}{b}".encode(), properties=encode_properties(properties))
        yield opened


def bodies(answer):
    return [decode_message(record).body for record in answer.body.records]


def by_heartbeat(client, **changes):
    return client.link.invoke(Request(RequestCode.PULL_MESSAGE, dataclasses.replace(BEATEN, **changes)))


def sql(expression, version=5):
    return SubscriptionData("T", expression, version, "SQL92")


def test_s0_04_a_pull_brings_exactly_the_messages_that_its_expression_is_true_for(broker):
    answer = pull(broker, "T", subscription=EXPRESSION, expression_type="SQL92")
    assert bodies(answer) == [b"4x", b"5x"]
    assert pull_header(answer).next_begin_offset == 12
    answer = pull(broker, "T", subscription="TAGS = 't' AND a = 0", expression_type="SQL92", max_msg_nums=1)
    assert (bodies(answer), pull_header(answer).next_begin_offset) == ([b"0x"], 1)


def test_s0_04_a_heartbeat_brings_the_expression_as_well(broker):
    client = ToldClient(broker, "a")
    client.beat(sql(EXPRESSION))
    assert bodies(by_heartbeat(client)) == [b"4x", b"5x"]
    client.beat(sql("a = 0", 6))
    assert bodies(by_heartbeat(client, sub_version=6)) == [b"0x", b"0None"]


def test_a_message_that_has_no_order_with_the_expression_does_not_match(broker):
    answer = pull(broker, "T", subscription="b > 3", expression_type="SQL92")
    assert (answer.code, pull_header(answer).next_begin_offset) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 12)


def test_s4_36_a_filter_that_is_missing_or_old_is_told_apart(broker):
    client = ToldClient(broker, "a")
    client.beat(sql("a ="))
    answer = by_heartbeat(client)
    assert answer.code is ResponseCode.FILTER_DATA_NOT_EXIST
    client.beat(sql(EXPRESSION, 6))
    assert by_heartbeat(client, sub_version=6).code is ResponseCode.SUCCESS
    client.beat(sql("a = 1", 7))
    client.beat()
    client.beat(sql("a = 2", 9))
    broker.filters._filters[GROUP, "T"] = dataclasses.replace(broker.filters.get(GROUP, "T"), version=8)
    assert by_heartbeat(client, sub_version=9).code is ResponseCode.FILTER_DATA_NOT_LATEST


def test_s4_36_an_expression_that_is_none_is_refused(broker):
    for text, language in (("a =", "SQL92"), ("", "SQL92"), ("a", "GROOVY")):
        answer = pull(broker, "T", subscription=text, expression_type=language)
        assert answer.code is ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_s4_36_without_property_filters_expressions_are_not_looked_at(tmp_path):
    says = "The broker does not support consumer to filter message by SQL92"
    with open_broker(tmp_path) as broker:
        send(broker, "T")
        client = ToldClient(broker, "a")
        client.beat(sql(EXPRESSION))
        answers = [by_heartbeat(client)]
        answers += [
            pull(broker, "T", subscription=text, expression_type="SQL92") for text in ("a = 1", "a =")
        ]
        assert [(answer.code, answer.remark) for answer in answers] == [(ResponseCode.SYSTEM_ERROR, says)] * 3
        assert check(client, sql("a = 1")).code is ResponseCode.SYSTEM_ERROR


def check(client, subscription):
    body = CheckClientBody(client.link.client_id, GROUP, subscription)
    return client.link.invoke(Request(RequestCode.CHECK_CLIENT_CONFIG, body=body))


def test_a_client_can_ask_before_whether_it_will_be_served(broker):
    client = ToldClient(broker, "a")
    for subscription in (None, SubscriptionData("T", "||"), sql("a = 1")):
        assert check(client, subscription).code is ResponseCode.SUCCESS
    answer = check(client, sql("a = 1 b"))
    assert answer.code is ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert "unexpected 'b' at column 7" in answer.remark


def test_s4_25_a_held_pull_waits_for_a_message_that_its_expression_is_true_for(broker):
    flags = int(PullFlag.SUBSCRIPTION | PullFlag.SUSPEND)
    header = PullMessageHeader(GROUP, "T", 0, 12, 32, flags, 0, 15_000, 0, EXPRESSION, "SQL92")
    held = broker.answer(Request(RequestCode.PULL_MESSAGE, header))
    woken = []
    held.then(lambda _: woken.append(True))
    send(broker, "T", properties=encode_properties({"a": "3", "b": "x"}))
    assert not woken
    send(broker, "T", b"wanted", properties=encode_properties({"a": "4", "b": "x"}))
    assert woken
    assert bodies(held.result()) == [b"wanted"]


def test_filters_of_heartbeats_outlive_the_broker_and_die_with_their_group(tmp_path):
    clock = VirtualClock()
    with open_broker(tmp_path, clock, WITH_SQL) as broker:
        client = ToldClient(broker, "a")
        client.beat(sql(EXPRESSION))
        broker.advance("5s")
        assert EXPRESSION in (tmp_path / "config" / "consumerFilter.json").read_text()
        clock.advance(1)
        client.link.close()
        assert not_none(broker.filters.get(GROUP, "T")).is_dead
    with open_broker(tmp_path, clock, WITH_SQL) as broker:
        assert not_none(broker.filters.get(GROUP, "T")).expression == EXPRESSION
        broker.advance("25h")
        broker.persist()
        assert broker.filters.all() == []


def test_the_parser_is_loaded_by_the_first_expression_only():
    script = """
import sys, tempfile
from seglog.broker.broker import Broker
from seglog.broker.filters.subscription_filter import expression_filter
with tempfile.TemporaryDirectory() as root, Broker.open(root, background=False):
    assert "lark" not in sys.modules
expression_filter("a = 1", "SQL92")
assert "lark" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=patience_s(30))

"""Tag expressions mean what they mean to RocketMQ, and one value says the same everywhere."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import InvalidArgumentError
from seglog.remoting.bodies import RecordsBody
from seglog.remoting.body_json.client_bodies import HEARTBEAT
from seglog.remoting.body_json.dialects import Dialect
from seglog.remoting.codes import PullFlag
from seglog.remoting.command import expect_body
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.subscription import Subscription, parse_subscription
from seglog.storage.format.record import decode_message, tags_code
from seglog.storage.format.record.properties import encode_properties
from tests.support.brokers import open_broker, pull, send


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        (None, None),
        ("", None),
        ("*", None),
        ("TagA", {"TagA"}),
        ("TagA || TagB", {"TagA", "TagB"}),
        ("TagA||TagB||", {"TagA", "TagB"}),
        (" * ", {"*"}),
    ],
)
def test_an_expression_names_its_tags(expression, tags):
    assert parse_subscription(expression).tags == tags


@pytest.mark.parametrize("expression", ["||", "||||", "  ", " || "])
def test_separators_alone_are_refused(expression):
    with pytest.raises(InvalidArgumentError, match="names no tag"):
        parse_subscription(expression)


def raw(**properties):
    return encode_properties({"KEYS": "k", **properties})


def test_s4_21_tags_with_one_code_are_told_apart_by_their_text():
    assert tags_code("Aa") == tags_code("BB")
    wanted = parse_subscription("Aa || C")
    assert [wanted.wants(raw(TAGS=tag)) for tag in ("Aa", "BB", "C", "c", "Aa ")] == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert not wanted.wants(raw(TAG="Aa"))
    assert not wanted.wants(b"")


def test_s4_21_of_a_broker_that_compares_codes_only_what_is_wanted_is_left(tmp_path):
    wanted = parse_subscription("Aa")
    with open_broker(tmp_path) as broker:
        for tag in ("Aa", "BB", "C", "Aa"):
            send(broker, "T", tag.encode(), properties=raw(TAGS=tag))
        answer = pull(broker, "T", subscription=wanted.expression)
    given = [decode_message(record) for record in expect_body(answer, RecordsBody).records]
    assert [one.body for one in given] == [b"Aa", b"BB", b"Aa"]
    assert [one.body for one in given if wanted.wants(one.properties_raw)] == [b"Aa", b"Aa"]


TAGS = st.text("aBé*\u4e2d", min_size=1, max_size=2)


@given(st.sets(TAGS, min_size=1, max_size=3), TAGS)
def test_s4_21_a_message_is_wanted_if_its_tag_is_among_those_of_the_expression(wanted, tag):
    expression = " || ".join(sorted(wanted))
    assert parse_subscription(expression).wants(raw(TAGS=tag)) is (expression == "*" or tag in wanted)


def test_all_messages_and_those_that_a_condition_chose_are_wanted_without_a_look():
    for wanted in (parse_subscription("*"), Subscription.by_sql("a > 3")):
        assert wanted.wants(b"")
        assert wanted.wants(raw(TAGS="x"))


def test_heartbeat_and_pull_say_the_same_of_a_subscription():
    for wanted, kind in (
        (parse_subscription("A || B"), "TAG"),
        (parse_subscription(None), "TAG"),
        (Subscription.by_sql("a > 3"), "SQL92"),
    ):
        said = wanted.in_heartbeat("T", 77)
        assert (said.topic, said.expression, said.version) == ("T", wanted.expression, 77)
        assert said.expression_type == kind
        assert wanted.in_pull(77, is_posted=True) == (said.expression, kind, 77, PullFlag.SUBSCRIPTION)
        assert wanted.in_pull(77) == (None, kind, 77, PullFlag(0))


def test_a_heartbeat_of_a_condition_names_no_tags():
    said = HeartbeatBody(
        "c", consumers=(ConsumerData("g", (Subscription.by_sql("a > 3").in_heartbeat("T", 5),)),)
    )
    text = bytes(HEARTBEAT.encode(said, Dialect.FASTJSON))
    (subscription,) = json.loads(text)["consumerDataSet"][0]["subscriptionDataSet"]
    assert subscription == {
        "classFilterMode": False,
        "codeSet": [],
        "expressionType": "SQL92",
        "subString": "a > 3",
        "subVersion": 5,
        "tagsSet": [],
        "topic": "T",
    }


@pytest.mark.parametrize("condition", ["", "  "])
def test_an_empty_condition_is_refused(condition):
    with pytest.raises(InvalidArgumentError, match="SQL92 condition of a subscription is empty"):
        Subscription.by_sql(condition)


def test_subscriptions_of_one_text_are_equal_if_they_are_of_one_language():
    assert parse_subscription("a") == parse_subscription("a")
    assert parse_subscription("a") != Subscription.by_sql("a")
    assert len({parse_subscription("a"), parse_subscription("a"), Subscription.by_sql("a")}) == 2

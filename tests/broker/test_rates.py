"""How many messages a broker takes and hands out: of the last seconds, minute, hour and day."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from seglog.broker.figures.figures import SAMPLE_MS
from seglog.broker.figures.samples import Rate, Samples, Span
from seglog.clock import VirtualClock
from seglog.remoting.admin_bodies import (
    BrokerConsumeStatsBody,
    ConsumeStatsBody,
    Figure,
    FiguresBody,
    KeyValuesBody,
    TopicStatsBody,
)
from seglog.remoting.admin_headers import (
    BrokerConsumeStatsHeader,
    ConsumeStatsHeader,
    DeleteTopicHeader,
    FiguresHeader,
    TopicHeader,
)
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import NO_HEADER, Request, expect_body
from seglog.remoting.headers import DeleteGroupHeader, SendBackHeader
from tests.support.brokers import open_broker, pull, send, send_delayed
from tests.support.rows import each_row

START_MS = 1_700_000_000_000
DAY_MS = 86_400_000


@pytest.fixture
def clock():
    return VirtualClock(START_MS)


def figures(broker, name, key):
    header = FiguresHeader(name, key)
    return broker.dispatch(Request(RequestCode.VIEW_BROKER_STATS_DATA, header))


def running(broker):
    answer = broker.dispatch(Request(RequestCode.GET_BROKER_RUNTIME_INFO, NO_HEADER))
    return expect_body(answer, KeyValuesBody).values


def sent(broker, count, topic="T"):
    for _ in range(count):
        send(broker, topic)


def test_messages_of_a_topic_and_of_a_group_are_told_by_the_minute_hour_and_day(broker):
    sent(broker, 30)
    broker.advance("30s")
    pull(broker, "T", max_msg_nums=12)
    found = figures(broker, "TOPIC_PUT_NUMS", "T")
    assert (found.code, found.body) == (
        ResponseCode.SUCCESS,
        FiguresBody(Figure(30, 1.0), Figure(30, 1.0), Figure(30, 1.0)),
    )
    assert expect_body(figures(broker, "GROUP_GET_NUMS", "T@cg"), FiguresBody).minute == Figure(12, 0.4, 12.0)
    broker.advance("5m")
    of_late = expect_body(figures(broker, "TOPIC_PUT_NUMS", "T"), FiguresBody)
    assert (of_late.minute, of_late.hour.total, of_late.day.total) == (Figure(0, 0.0), 30, 30)
    broker.advance("2h")
    of_late = expect_body(figures(broker, "TOPIC_PUT_NUMS", "T"), FiguresBody)
    assert (of_late.hour.total, of_late.day.total) == (0, 30)
    broker.advance("26h")
    assert expect_body(figures(broker, "TOPIC_PUT_NUMS", "T"), FiguresBody).day.total == 0


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("TOPIC_PUT_NUMS", "none"),
        ("GROUP_GET_NUMS", "T@none"),
        ("GROUP_GET_NUMS", "T"),
        ("TOPIC_PUT_NUMS", "TBW102"),  # a topic without puts
        ("TOPIC_PUT_SIZE", "TBW102"),
        ("TOPIC_PUT_SIZE", "T@cg"),
        ("GROUP_GET_SIZE", "T@none"),
        ("SNDBCK_PUT_NUMS", "T@cg"),
        ("BROKER_GET_NUMS", "DefaultCluster"),
        ("TOPIC_PUT_LATENCY", "0@T"),
        ("nothing", "T"),
    ],
)
def test_what_is_not_counted_is_refused_in_rocketmqs_words(broker, name, key):
    sent(broker, 1)
    answer = figures(broker, name, key)
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        f"The stats <{name}> <{key}> not exist",
    )


def test_what_tools_show_of_topics_and_groups_has_their_rates(broker):
    sent(broker, 60)
    broker.advance("60s")
    pull(broker, "T", max_msg_nums=30)
    broker.offsets.commit("cg", "T", 0, 10)
    of_topic = broker.dispatch(Request(RequestCode.GET_TOPIC_STATS_INFO, TopicHeader("T")))
    assert expect_body(of_topic, TopicStatsBody).put_tps == 1.0
    of_group = broker.dispatch(Request(RequestCode.GET_CONSUME_STATS, ConsumeStatsHeader("cg")))
    assert expect_body(of_group, ConsumeStatsBody).consume_tps == 0.5
    header = BrokerConsumeStatsHeader(is_order_only=False)
    of_all = broker.dispatch(Request(RequestCode.GET_BROKER_CONSUME_STATS, header))
    found = {
        name: stats
        for one in expect_body(of_all, BrokerConsumeStatsBody).groups
        for name, stats in one.items()
    }
    assert [stats.consume_tps for stats in found["cg"]] == [0.5]


def test_a_broker_says_what_it_does(broker):
    sent(broker, 20)
    pull(broker, "T", max_msg_nums=8)
    pull(broker, "T", 20)
    broker.offsets.commit("cg", "T", 0, 8)
    broker.advance("10s")
    found = running(broker)
    assert found["putTps"] == "2.00 2.00 2.00"
    assert found["getTransferredTps"] == "0.80 0.80 0.80"
    assert (found["getFoundTps"], found["getMissTps"]) == ("0.10 0.10 0.10", "0.10 0.10 0.10")
    assert found["getTotalTps"] == "0.20 0.20 0.20"
    ours = {name: value for name, value in found.items() if name.startswith("seglog.")}
    assert ours == {
        "seglog.consumerGroups": "0",
        "seglog.lag": "12",
        "seglog.locks": "0",
        "seglog.parkedPulls": "0",
        "seglog.producerGroups": "0",
    }


def test_a_pull_counts_what_it_hands_out_with_a_filter_and_without(broker):
    for tag in (b"A", b"B", b"A", b"A"):
        send(broker, "T", properties=b"TAGS\x01" + tag + b"\x02")
    pull(broker, "T", subscription="A", max_msg_nums=2)
    assert broker.figures.pulled_rate("cg", "T", Span.MINUTE).total == 2
    pull(broker, "T", 1)
    assert broker.figures.pulled_rate("cg", "T", Span.MINUTE).total == 5


def test_numbers_of_messages_are_told_by_the_day(broker):
    def told(what):
        found = running(broker)
        return [
            int(found[f"msg{what}Total{when}"]) for when in ("YesterdayMorning", "TodayMorning", "TodayNow")
        ]

    sent(broker, 5)
    assert told("Put") == [0, 0, 5]
    broker.advance(DAY_MS)
    sent(broker, 3)
    pull(broker, "T", max_msg_nums=2)
    assert (told("Put"), told("Get")) == ([0, 5, 8], [0, 0, 2])
    broker.advance(DAY_MS)
    assert told("Put") == [5, 8, 8]
    broker.advance(3 * DAY_MS)
    assert told("Put") == [8, 8, 8]


@pytest.mark.parametrize("sampled", [False, True])
def test_the_figures_of_a_topic_begin_anew_with_it_and_those_of_the_broker_do_not(broker, sampled):
    sent(broker, 7)
    broker.advance("10s")
    assert (
        broker.dispatch(Request(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicHeader("T"))).code
        is ResponseCode.SUCCESS
    )
    sent(broker, 1, "U")
    if sampled:
        broker.figures.sample()
    assert figures(broker, "TOPIC_PUT_NUMS", "T").code is ResponseCode.SYSTEM_ERROR
    assert figures(broker, "TOPIC_PUT_SIZE", "T").code is ResponseCode.SYSTEM_ERROR
    sent(broker, 2)
    assert expect_body(figures(broker, "TOPIC_PUT_NUMS", "T"), FiguresBody).minute.total == 2
    assert expect_body(figures(broker, "BROKER_PUT_NUMS", "DefaultCluster"), FiguresBody).minute.total == 10
    assert running(broker)["msgPutTotalTodayNow"] == "10"


def test_the_bytes_of_records_are_told_of_a_topic_and_of_a_group(broker):
    sizes = []
    for size_bytes in (1, 100, 3_000):
        before = broker.store.max_phy_offset
        send(broker, "T", body=b"x" * size_bytes)
        sizes.append(broker.store.max_phy_offset - before)
    send(broker, "U")
    pull(broker, "T", max_msg_nums=2)
    pull(broker, "T", queue_offset=2)
    broker.advance("10s")
    put = expect_body(figures(broker, "TOPIC_PUT_SIZE", "T"), FiguresBody)
    assert (put.minute.total, put.minute.per_s) == (sum(sizes), sum(sizes) / 10)
    got = expect_body(figures(broker, "GROUP_GET_SIZE", "T@cg"), FiguresBody)
    assert got.day == Figure(sum(sizes), sum(sizes) / 10, sum(sizes) / 2)


def test_what_was_put_to_the_brokers_own_topics_is_told_apart(broker):
    sent(broker, 3)
    send_delayed(broker, 1)  # it waits in SCHEDULE_TOPIC_XXXX
    pull(broker, "T")
    for name, count in (
        ("BROKER_PUT_NUMS", 4),
        ("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", 3),
        ("BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC", 3),
    ):
        assert expect_body(figures(broker, name, "DefaultCluster"), FiguresBody).day.total == count, name


def test_what_a_group_sent_back_is_told_by_the_topic_it_came_from_first(broker):
    sent(broker, 3)
    broker.groups.find("cg")
    places = [message.phy_offset for message in broker.store.get("T", 0, 0, 3).messages]
    for place in places:
        send_message_back(broker, place, level=1)
    assert expect_body(figures(broker, "SNDBCK_PUT_NUMS", "T@cg"), FiguresBody).day.total == 3
    broker.advance("1m")
    retry = broker.store.get("%RETRY%cg", 0, 0, 1).messages[0]
    send_message_back(broker, retry.phy_offset, level=-1)  # a dead letter now
    assert expect_body(figures(broker, "SNDBCK_PUT_NUMS", "T@cg"), FiguresBody).day.total == 4
    assert figures(broker, "SNDBCK_PUT_NUMS", "%RETRY%cg@cg").code is ResponseCode.SYSTEM_ERROR


def send_message_back(broker, place, *, level):
    header = SendBackHeader(place, "cg", level)
    answer = broker.dispatch(Request(RequestCode.CONSUMER_SEND_MSG_BACK, header))
    assert answer.code is ResponseCode.SUCCESS


def test_the_figures_of_a_group_begin_anew_with_it(broker):
    sent(broker, 2)
    pull(broker, "T")
    header = DeleteGroupHeader("cg", cleans_offsets=True)
    assert broker.dispatch(Request(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)).code is ResponseCode.SUCCESS
    for name in ("GROUP_GET_NUMS", "GROUP_GET_SIZE"):
        assert figures(broker, name, "T@cg").code is ResponseCode.SYSTEM_ERROR
    pull(broker, "T", max_msg_nums=1)
    assert expect_body(figures(broker, "GROUP_GET_NUMS", "T@cg"), FiguresBody).day.total == 1
    assert expect_body(figures(broker, "BROKER_GET_NUMS", "DefaultCluster"), FiguresBody).day.total == 3


def test_messages_of_before_are_not_counted(tmp_path):
    for expected in ("3", "3"):
        with open_broker(tmp_path / "store", VirtualClock(START_MS)) as broker:
            sent(broker, 3)
            assert running(broker)["msgPutTotalTodayNow"] == expected


def test_a_broker_that_nothing_is_asked_of_takes_no_samples(broker, monkeypatch):
    taken = []
    monkeypatch.setattr(broker.figures, "sample", lambda: taken.append(1))
    broker.advance("1h")
    assert not taken


@each_row("seed", range(8))
@each_row("span", Span)
def test_a_rate_is_of_its_span_and_one_step_at_most(seed, span):
    chance = random.Random(seed)
    now_ms, counts, grown = 0, Counter(), []
    samples = Samples(now_ms, counts)
    length_ms, step_ms = span.value
    for _ in range(400):
        now_ms += SAMPLE_MS
        if chance.random() < 0.3:
            growth = chance.randrange(1, 50)
            counts["x"] += growth
            grown.append((now_ms, growth))
            samples.take(now_ms, counts)
        rate = samples.rate(span, now_ms, "x", counts["x"])
        least = sum(growth for at, growth in grown if at > now_ms - length_ms)
        most = sum(growth for at, growth in grown if at > now_ms - length_ms - step_ms - SAMPLE_MS)
        assert least <= rate.total <= most
        assert (
            rate.per_s == rate.total * 1_000 / min(now_ms, length_ms + step_ms)
            or rate.total == 0
            or (
                rate.total * 1_000 / (length_ms + step_ms)
                <= rate.per_s
                <= rate.total * 1_000 / min(length_ms, now_ms)
            )
        )


def test_a_count_that_has_just_begun_is_told_by_the_second():
    samples = Samples(0.0, {})
    assert samples.rate(Span.MINUTE, 10.0, "x", 5) == Rate(5, 5.0)


def test_messages_of_the_whole_broker_are_told_by_the_name_of_its_cluster(broker):
    for name in ("BROKER_PUT_NUMS", "BROKER_GET_NUMS"):
        answer = figures(broker, name, "DefaultCluster")
        assert (answer.code, answer.remark) == (
            ResponseCode.SYSTEM_ERROR,
            f"The stats <{name}> <DefaultCluster> not exist",
        )
    sent(broker, 20)
    sent(broker, 10, "U")
    pull(broker, "T", max_msg_nums=12)
    broker.advance("30s")
    found = expect_body(figures(broker, "BROKER_PUT_NUMS", "DefaultCluster"), FiguresBody)
    assert (found.minute, found.day.total) == (Figure(30, 1.0), 30)
    found = expect_body(figures(broker, "BROKER_GET_NUMS", "DefaultCluster"), FiguresBody)
    assert found.minute == Figure(12, 0.4)
    assert figures(broker, "BROKER_PUT_NUMS", "other").code is ResponseCode.SYSTEM_ERROR

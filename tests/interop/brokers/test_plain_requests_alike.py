"""Requests as bytes to the real broker, its name server and ours: the same codes, fields and bodies."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import pytest

from tests.interop.judging import toolchain
from tests.interop.judging.places import CONFIG, place_of_rocketmq
from tests.interop.judging.plain_requests import PLAIN_REQUESTS, TOPIC, Plain, seen
from tests.interop.judging.wire import RawClient, WireRequest
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until
from tests.support.rows import every_row
from tests.support.scale import chance, is_gate

pytestmark = pytest.mark.interop

RELEASES = (toolchain.DEFAULT_VERSION, toolchain.NEWEST_VERSION)
TRIED = (chance("release of plain requests").choice(RELEASES),) if is_gate() else RELEASES
"""In the gate one of them, which the commit draws."""


class Side:
    """Connections to a broker and its name server."""

    def __init__(self, opened, broker, name_server):
        self._broker = opened.enter_context(RawClient(broker))
        self._name_server = opened.enter_context(RawClient(name_server))

    def ask(self, plain):
        return (self._name_server if plain.is_for_name_server else self._broker).ask(plain.request)


@pytest.fixture(scope="module", params=TRIED)
def sides(request, judge, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    with ExitStack() as opened:
        theirs = opened.enter_context(place_of_rocketmq(folder / "theirs", request.param))
        config = replace(CONFIG, compatible_with=request.param)
        ours = opened.enter_context(BrokerServer(folder / "ours", config=config, record_crc=False))
        yield Side(opened, ours.address, ours.address), Side(opened, theirs.address, theirs.target)


def test_each_request_is_answered_alike(sides):
    ours, theirs = sides
    with every_row() as row:
        for number, plain in enumerate(PLAIN_REQUESTS):
            with row(f"{number}: {plain.request.code} {plain.request.ext!s:.200}"):
                here, there = seen(ours.ask(plain)), seen(theirs.ask(plain))
                if plain.request.code in {310, 325}:  # the real broker makes units and index a little later
                    wait_until(partial(is_in_the_queues, ours, theirs), idle_s=30)
                assert there["code"] == plain.code
                assert here["code"] == there["code"]
                assert here["fields"].keys() == there["fields"].keys()
                if plain.is_exact:
                    assert here == there


def is_in_the_queues(ours, theirs):
    """Returns whether both brokers find the same number of messages, in the queue and by their key."""
    units = {"topic": TOPIC, "queueId": "0", "index": "0", "count": "99"}
    found = {"topic": TOPIC, "key": "u", "maxNum": "99", "beginTimestamp": "0", "endTimestamp": "9" * 15}
    asked = (Plain(WireRequest(321, units, None), 0), Plain(WireRequest(12, found, None), 0))
    return all(len(ours.ask(each).body) == len(theirs.ask(each).body) for each in asked)


def test_what_was_counted_is_told_alike_once_the_real_broker_has_taken_a_sample(sides):
    asked = [
        Plain(WireRequest(315, {"statsName": name, "statsKey": key}, None), 0)
        for name, key in (
            ("TOPIC_PUT_NUMS", "Counted"),
            ("TOPIC_PUT_SIZE", "Counted"),
            ("GROUP_GET_NUMS", "Counted@counting"),
            ("GROUP_GET_SIZE", "Counted@counting"),
            ("SNDBCK_PUT_NUMS", "Counted@counting"),
        )
    ]
    for side in sides:
        count(side)
    # It takes one every ten seconds.
    wait_until(lambda: all(figure_of(sides[1], each)["sum"] for each in asked), idle_s=30, look_s=0.5)
    for each in asked:
        here, there = (figure_of(side, each) for side in sides)
        assert here["sum"] == there["sum"], each
        if "PUT_" not in each.request.ext["statsName"] or "SNDBCK" in each.request.ext["statsName"]:
            assert here["avgpt"] == there["avgpt"], each


def count(side):
    """Has a broker store, hand out and take back messages."""
    send = next(plain.request for plain in PLAIN_REQUESTS if plain.request.code == 310)
    for _ in range(5):
        assert side.ask(Plain(replace(send, ext={**send.ext, "b": "Counted"}), 0)).code == 0
    body = json.dumps({"groupName": "counting"}).encode()
    assert side.ask(Plain(WireRequest(200, {}, body), 0)).code == 0
    pull = next(plain.request for plain in PLAIN_REQUESTS if plain.request.code == 11 and plain.request.ext)
    ext = {**pull.ext, "topic": "Counted", "consumerGroup": "counting"}
    for offset in ("0", "3"):
        asked = Plain(replace(pull, ext={**ext, "queueOffset": offset, "maxMsgNums": "3"}), 0)
        wait_until(partial(is_found, side, asked), idle_s=30)
    units = {"topic": "Counted", "queueId": "0", "index": "0", "count": "2"}
    units = json.loads(side.ask(Plain(WireRequest(321, units, None), 0)).body)["queueData"]
    for unit in units:
        ext = {"offset": str(unit["physicOffset"]), "group": "counting", "delayLevel": "1"}
        assert side.ask(Plain(WireRequest(36, {**ext, "originTopic": "Counted"}, None), 0)).code == 0


def is_found(side, asked):
    """Returns whether a pull has found messages."""
    return side.ask(asked).code == 0


def figure_of(side, asked):
    """Returns what was counted today."""
    answer = side.ask(asked)
    assert answer.code == 0, asked
    return json.loads(answer.body)["statsMinute"]

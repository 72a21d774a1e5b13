"""What sends and pulls took is told in RocketMQ's words, of the last whole minute."""

from __future__ import annotations

import pytest

from seglog.server.call_times import CallTimes

NAMES = (
    *("[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]"),
    *("[1~2s]", "[2~3s]", "[3~4s]", "[4~5s]", "[5~10s]", "[10s~]"),
)


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def times(clock):
    return CallTimes(clock)


def put(times, clock, *took_ms):
    for each in took_ms:
        times.note_put(clock.now_s - (each + 0.5) / 1_000, clock.now_s)


def shares(times):
    text = times.figures()["putMessageDistributeTime"]
    return {name: int(count) for name, _, count in (part.rpartition(":") for part in text.split())}


def test_the_first_minute_has_no_shares_and_the_longest_calls_at_once(times, clock):
    put(times, clock, 3, 70, 2)
    times.note_get(0.0125)
    times.note_get(0.004)
    assert times.figures() == {
        "getMessageEntireTimeMax": "12",
        "putLatency99": "0.00",
        "putLatency999": "0.00",
        "putMessageDistributeTime": "null",
        "putMessageEntireTimeMax": "70",
    }


def test_each_send_is_in_the_share_of_its_time(times, clock):
    put(times, clock, 0, 1, 9, 10, 49, 50, 99, 100, 199, 200, 499, 500, 999, 1_000, 2_000, 3_000, 4_000)
    put(times, clock, 5_000, 9_999, 10_000, 99_000)
    clock.now_s += 60
    assert list(shares(times)) == list(NAMES)
    assert list(shares(times).values()) == [1, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 2, 2]


def test_percentiles_are_those_of_the_last_minute(times, clock):
    put(times, clock, *[1] * 985, *[20] * 10, *[300] * 5)
    clock.now_s += 61
    put(times, clock, 5_000)
    found = times.figures()
    assert (found["putLatency99"], found["putLatency999"]) == ("20.00", "300.00")
    clock.now_s += 60
    assert times.figures()["putLatency99"] == "5000.00"


def test_a_minute_without_sends_is_empty(times, clock):
    put(times, clock, 5)
    clock.now_s += 200
    assert set(shares(times).values()) == {0}
    assert times.figures()["putLatency99"] == "0.00"

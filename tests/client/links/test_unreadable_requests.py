"""What is logged of a broker that sends requests that cannot be read."""

from __future__ import annotations

import logging

import pytest

from seglog.client.links.serving import Serving
from seglog.clock import VirtualClock
from seglog.remoting.codec import Codec, WronglyAsked
from seglog.remoting.command import Request

FLOOD = 5_000


@pytest.fixture
def clock():
    return VirtualClock(0)


@pytest.fixture
def answers():
    return []


@pytest.fixture
def serving(clock, answers):
    return Serving(clock, Codec(), answers.append, None, None)


def unreadable():
    """Returns what a codec makes of a request that lacks fields."""
    sent = Request(307, body=b"b")
    codec = Codec()
    (found,) = codec.receive(b"".join(Codec().ask(sent, 7)[1]))
    assert isinstance(found, WronglyAsked)
    return found


def test_a_flood_is_logged_once_a_minute_with_how_many_there_were(serving, clock, answers, caplog):
    asked = unreadable()
    with caplog.at_level(logging.WARNING):
        for _ in range(FLOOD):
            serving.serve(asked)
        clock.advance(59_999)
        serving.serve(asked)
        assert len(caplog.records) == 1
        clock.advance(1)
        serving.serve(asked)
    texts = [record.getMessage() for record in caplog.records]
    said = "a broker has sent a request that cannot be read: the custom field <consumerGroup> is null"
    assert texts == [said, f"{said} ({FLOOD} more of the kind before it)"]
    assert len(answers) == FLOOD + 2, "each is answered all the same"

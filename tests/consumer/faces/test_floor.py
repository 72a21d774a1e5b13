"""A message is done once its listener has returned, also while a later one of its hand is at work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from seglog import ConsumeFrom, Message, OrderlyConsumer, PushConsumer, sleep_ms
from seglog.consumer.contexts import Context
from seglog.testing import VirtualBroker
from tests.support.faces import driven

COUNT = 32
"""As many as one hand has at most."""
KINDS = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
FORMS = pytest.mark.parametrize("form", ["plain", "context", "batch"])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        for number in range(COUNT):
            opened.producer().send("T", b"%d" % number, queue_id=0)
        yield opened


class Listening:
    """Listeners that are done with each message at once, and with the last one after an hour.

    Attributes:
        returned: How many messages they have returned from.
    """

    def __init__(self) -> None:
        self.returned = 0

    async def plain(self, message: Message) -> None:
        if message.queue_offset == COUNT - 1:
            await sleep_ms(3_600_000)
        self.returned += 1

    async def context(self, message: Message, _context: Context) -> None:
        await self.plain(message)

    async def batch(self, messages: tuple[Message, ...]) -> None:
        for message in messages:
            await self.plain(message)


def settings_of(form: str, kind: Callable[..., Any]) -> dict[str, object]:
    batch = {"batch_size": 2} if form == "batch" else {}
    threads = {"threads": 1} if kind is PushConsumer else {}
    return {"consume_from": ConsumeFrom.FIRST, **batch, **threads}


@KINDS
@FORMS
def test_a_commit_by_time_or_by_call_is_of_all_that_listeners_have_returned_from(
    broker: VirtualBroker, kind: Callable[..., Any], form: str
):
    listening = Listening()
    consumer = kind(broker.link(), "g", "T", getattr(listening, form), **settings_of(form, kind))
    consumer.start()
    broker.advance("9s")
    done = COUNT - 2 if form == "batch" else COUNT - 1
    assert listening.returned >= done
    assert not broker.offsets.query("g", "T", 0), "no commit was due"
    consumer.commit()
    assert broker.offsets.query("g", "T", 0) == done
    with suppress(TimeoutError):
        consumer.close(0)


@KINDS
@FORMS
def test_the_timed_commit_does_not_wait_for_the_end_of_a_hand(
    broker: VirtualBroker, kind: Callable[..., Any], form: str
):
    listening = Listening()
    consumer = kind(broker.link(), "g", "T", getattr(listening, form), **settings_of(form, kind))
    consumer.start()
    broker.advance("11s")
    done = COUNT - 2 if form == "batch" else COUNT - 1
    assert broker.offsets.query("g", "T", 0) == done
    # What comes later, with another hand at work, is committed by the next one.
    broker.advance("61m")
    assert broker.offsets.query("g", "T", 0) == COUNT
    with suppress(TimeoutError):
        consumer.close(0)


@KINDS
def test_a_member_that_leaves_at_once_commits_what_its_listeners_have_returned_from(
    broker: VirtualBroker, kind: Callable[..., Any]
):
    listening = Listening()
    with driven(kind, broker.link(), "g", "T", listening.plain, **settings_of("plain", kind)) as consumer:
        consumer.start()
        broker.advance("1s")
        with suppress(TimeoutError):
            consumer.close(0)
    assert broker.offsets.query("g", "T", 0) == COUNT - 1

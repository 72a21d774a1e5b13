"""``seglog tail``: the newest messages over all queues in log order, and those to come.

Reads beside a running writer without a lock, as every reader does; following looks at the log again a few
times a second.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from seglog.cli import messages, options, render
from seglog.cli.get import check_range
from seglog.clock import Clock, SystemClock
from seglog.storage.format.message import Message
from seglog.storage.format.names import check_topic
from seglog.storage.store import MessageStore

_POLL_MS: Final = 100
_STEP_MESSAGES: Final = 512


@click.command
@options.store
@click.argument("topic", required=False)
@click.option(
    "-n", "--count", type=int, default=10, show_default=True, help="How many of the newest messages."
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@options.as_json
def command(*, path: Path, topic: str | None, count: int, follow: bool, as_json: bool) -> None:
    """Show the newest messages of STORE, or of TOPIC, in the order of the log."""
    check_range("--count", count)
    if topic is not None:
        check_topic(topic)
    with MessageStore.open(path, create=False, read_only=True) as store:
        positions = {key: store.max_offset(*key) for key in _queues(store, topic)}
        for message in newest(store, topic, count):
            _print(message, as_json=as_json)
        if follow:
            sys.stdout.flush()
            for message in iter_following(store, topic, positions, SystemClock()):
                _print(message, as_json=as_json)
                sys.stdout.flush()


def newest(store: MessageStore, topic: str | None, count: int) -> list[Message]:
    """Returns the last ``count`` messages of a topic, or of all, in log order."""
    found: dict[int, Message] = {}  # by place in the log: several %LMQ% queues may lead to one message
    for queue in sorted(store.queues(), key=lambda queue: -queue.max_phy_offset):
        if topic is not None and queue.topic != topic:
            continue
        if len(found) >= count and queue.max_phy_offset <= min(found, default=queue.max_phy_offset):
            break  # all of this queue, and of those that end before it, is older
        start = max(queue.min_offset, queue.max_offset - count)
        for message in _read(store, queue.topic, queue.queue_id, start, queue.max_offset):
            found[message.phy_offset] = message
        for phy_offset in sorted(found)[: max(0, len(found) - count)]:
            del found[phy_offset]
    return [found[phy_offset] for phy_offset in sorted(found)]


def iter_following(
    store: MessageStore, topic: str | None, positions: dict[tuple[str, int], int], clock: Clock
) -> Iterator[Message]:
    """Yields messages as they are written, those of one look in log order; never ends.

    Args:
        store: A store opened for reading.
        topic: The only topic to follow; None for all.
        positions: Queue offset to go on at, by topic and queue; others start at their first message.
        clock: Waits between two looks.
    """
    pause = threading.Condition()
    while True:
        store.refresh()
        fresh: dict[int, Message] = {}
        for key in _queues(store, topic):
            end = store.max_offset(*key)
            start = positions.get(key, 0)
            if start < end:
                for message in _read(store, *key, max(start, store.min_offset(*key)), end):
                    fresh[message.phy_offset] = message
                positions[key] = end
        yield from (fresh[phy_offset] for phy_offset in sorted(fresh))
        if not fresh:
            with pause:
                clock.wait(pause, _POLL_MS)


def _queues(store: MessageStore, topic: str | None) -> list[tuple[str, int]]:
    return [
        (queue.topic, queue.queue_id) for queue in store.queues() if topic is None or queue.topic == topic
    ]


def _read(store: MessageStore, topic: str, queue_id: int, start: int, end: int) -> Iterator[Message]:
    """Yields the readable messages of a range of a queue."""
    while start < end:
        result = store.get(topic, queue_id, start, min(_STEP_MESSAGES, end - start))
        yield from result
        if result.next_offset <= start:
            return
        start = result.next_offset


def _print(message: Message, *, as_json: bool) -> None:
    if as_json:
        render.emit(messages.message_fields(message, "text"))
    else:
        render.say(messages.message_text(message))

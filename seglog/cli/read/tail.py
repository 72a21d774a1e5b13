"""``seglog tail``: the newest messages of all queues in log order, and new messages.

It reads beside a running writer without a lock, as every reader does; to follow, it reads the log again a few
times a second. Lost messages are printed before the next message of their queue.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import click

from seglog.cli.read.get import check_range
from seglog.cli.ui import messages, options, pager, render
from seglog.clock import Clock, SystemClock
from seglog.errors import NotFoundError
from seglog.storage.directory import known_topics
from seglog.storage.format.names import check_topic
from seglog.storage.format.record import Message
from seglog.storage.store import MessageStore
from seglog.storage.writes import QueueInfo

_POLL_MS: Final = 100
_STEP_MESSAGES: Final = 512
_END: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Lost:
    """Messages of a queue that are lost, or that only a repair restores."""

    topic: str
    queue_id: int
    offsets: range
    kind: str = "lost"


Item = Message | Lost


class _Place(NamedTuple):
    """A place in the order of the log; lost messages are placed before the message after them."""

    phy_offset: int
    is_message: int = 1
    topic: str = ""
    queue_id: int = 0
    queue_offset: int = 0


@click.command
@options.followed_store
@click.argument("topic", required=False)
@click.option(
    "-n", "--count", type=int, default=10, show_default=True, help="How many of the newest messages."
)
@click.option("-f", "--follow", is_flag=True, help="Follow what is written, until Ctrl-C.")
@options.as_json
@pager.paged(stops=True)
def command(*, path: Path, topic: str | None, count: int, follow: bool, as_json: bool) -> None:
    """Show the newest messages of STORE, or of TOPIC, in log order, and what is lost among them."""
    check_range("--count", count)
    if topic is not None:
        check_topic(topic)
    with MessageStore.open(path, create=False, read_only=True, follow=options.followed(path)) as store:
        if topic is not None and topic not in store.topics():
            _miss(path, topic, is_waiting=follow)
        positions = {key: store.max_offset(*key) for key in _queues(store, topic)}
        for item in newest(store, topic, count):
            _print(item, as_json=as_json)
        if follow:
            sys.stdout.flush()
            for item in iter_following(store, topic, positions, SystemClock()):
                _print(item, as_json=as_json)
                sys.stdout.flush()


def _miss(path: Path, topic: str, *, is_waiting: bool) -> None:
    """Refuses a topic that the store does not have, or prints that the command waits for a message."""
    if is_waiting:
        render.say(f"note: the store has no topic {topic} yet; its first message is waited for", err=True)
    elif topic not in (known_topics(options.reading(path), path) or ()):
        raise NotFoundError(
            f"the store has no topic {topic}",
            help="`seglog inspect queues STORE` lists them; --follow waits for one that is to come",
        )


def newest(store: MessageStore, topic: str | None, count: int) -> list[Item]:
    """Returns the last ``count`` messages of a topic, or of all, in log order, with the losses among them."""
    found: dict[_Place, Item] = {}  # several %LMQ% queues may lead to one message
    oldest = _Place(0)
    for queue in sorted(store.queues(), key=lambda queue: -queue.max_phy_offset):
        if (topic is not None and queue.topic != topic) or not count:
            continue
        if queue.max_phy_offset <= oldest.phy_offset:
            break  # all messages of this queue, and of queues that end before it, are older
        found |= _newest_of(store, queue, count)
        shown = sorted(place for place, item in found.items() if isinstance(item, Message))[-count:]
        oldest = shown[0] if len(shown) == count else oldest
        found = {place: item for place, item in found.items() if place >= oldest}
    return [found[place] for place in sorted(found)]


def _newest_of(store: MessageStore, queue: QueueInfo, count: int) -> dict[_Place, Item]:
    """Returns at least the last ``count`` messages of a queue, and the losses after the first of them."""
    wanted, start = count, queue.max_offset
    while True:
        start = max(queue.min_offset, start - wanted)
        found = _read(store, queue.topic, queue.queue_id, start, queue.max_offset)
        held = sum(isinstance(item, Message) for item in found.values())
        if held >= count or start == queue.min_offset:
            return found
        wanted *= 2  # the last messages are lost, so more are needed


def iter_following(
    store: MessageStore, topic: str | None, positions: dict[tuple[str, int], int], clock: Clock
) -> Iterator[Item]:
    """Yields messages as they are written, the messages of one look in log order; never ends.

    Args:
        store: A store opened for reading.
        topic: The only topic to follow; None for all.
        positions: Queue offset at which to continue, by topic and queue; other queues start at their first
            message.
        clock: Waits between two looks.
    """
    pause = threading.Condition()
    while True:
        store.refresh()
        fresh: dict[_Place, Item] = {}
        for key in _queues(store, topic):
            end = store.max_offset(*key)
            start = positions.get(key, 0)
            if start < end:
                fresh |= _read(store, *key, max(start, store.min_offset(*key)), end)
                positions[key] = end
        yield from (fresh[place] for place in sorted(fresh))
        if not fresh:
            with pause:
                clock.wait(pause, _POLL_MS)


def _queues(store: MessageStore, topic: str | None) -> list[tuple[str, int]]:
    return [
        (queue.topic, queue.queue_id) for queue in store.queues() if topic is None or queue.topic == topic
    ]


def _read(store: MessageStore, topic: str, queue_id: int, start: int, end: int) -> dict[_Place, Item]:
    """Returns the messages and the losses in a range of a queue, by their place in the log's order."""
    found: dict[_Place, Item] = {}
    lost: list[Lost] = []
    while start < end:
        result = store.get(topic, queue_id, start, min(_STEP_MESSAGES, end - start))
        for kind, offsets in (("lost", result.lost), ("repairable", result.repairable)):
            lost += [Lost(topic, queue_id, one, kind) for one in offsets]
        for message in result:
            before = [one for one in lost if one.offsets.stop <= message.queue_offset]
            for one in before:
                found[_Place(message.phy_offset, 0, topic, queue_id, one.offsets.start)] = one
            lost = [one for one in lost if one not in before]
            found[_Place(message.phy_offset)] = message
        if result.next_offset <= start:
            break
        start = result.next_offset
    return found | {_Place(_END, 0, topic, queue_id, one.offsets.start): one for one in lost}


def _print(item: Item, *, as_json: bool) -> None:
    if isinstance(item, Lost):
        lost = item.topic, item.queue_id, item.offsets, item.kind
        if as_json:
            render.emit(messages.lost_fields(*lost))
        else:
            render.say(messages.lost_text(*lost))
    elif as_json:
        render.emit(messages.message_fields(item, "text"))
    else:
        render.say(messages.message_text(item))

"""Counts messages for parts of RocketMQ that this broker does not have: timer and transactions."""

from __future__ import annotations

from collections.abc import Iterator

from seglog.cli.ui import render
from seglog.doctor.groups import count_open_transactions
from seglog.doctor.parts import waiting_timers
from seglog.storage.format.system_names import TIMER_TOPIC
from seglog.storage.store import MessageStore
from seglog.text import shell_text


def undelivered(store: MessageStore) -> Iterator[str]:
    """Yields lines for the log: the number of messages that will not be delivered, and what to do next.

    Args:
        store: The open store.

    Raises:
        ConfigError: Neither the table of offsets nor its backup can be read.
    """
    timers = [one for one in store.queues() if (one.topic, one.queue_id) == (TIMER_TOPIC, 0)]
    count = sum(
        waiting_timers(store.files, store.path, store.geometry, one.min_offset, one.max_offset)
        for one in timers
    )
    if count:
        yield (
            f"{render.count_text(count, 'timer message')} of {TIMER_TOPIC} will not be delivered: this broker"
            f" has no timer; `seglog check {shell_text(store.path)}` has a note of them, RocketMQ on this"
            " store delivers them"
        )
    halves = count_open_transactions(store)
    if halves:
        yield (
            f"{render.count_text(halves, 'half message')} of transactions will not be asked about, nor"
            f" delivered: stop, and commit or roll back what `seglog tx ls {shell_text(store.path)}` lists"
        )

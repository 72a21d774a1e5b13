"""Chooses the pool of a listener, by its kind and the home of its client."""

from __future__ import annotations

from collections.abc import Callable

from seglog.client.home import Home, VirtualHome
from seglog.consumer.hands.by_topic import AwaitedByTopic
from seglog.consumer.listener import is_awaited
from seglog.consumer.pools.inline_pool import InlinePool
from seglog.consumer.pools.mixed_pool import MixedPool
from seglog.consumer.pools.pool import ListenerPool
from seglog.consumer.pools.thread_pool import ThreadPool


def pool_for(
    home: Home, listener: Callable[..., object], most: int, name: str, *, in_loop: bool
) -> ListenerPool:
    """Returns a pool for a consumer.

    Args:
        home: The home of its client.
        listener: The listener.
        most: The most concurrent calls; on virtual time plain listeners run one at a time.
        name: The name of the consumer, for its threads and tasks.
        in_loop: Whether an async listener runs in the event loop that runs the caller, if there is one.
    """
    if not is_awaited(listener):
        return InlinePool(home) if isinstance(home, VirtualHome) else ThreadPool(most, name)
    # These import asyncio, which is loaded only if it is used.
    from seglog.consumer.pools.tasks import SteppedPool, TaskPool
    from seglog.remoting.later import running_loop

    if home.loop is None:
        return SteppedPool(home, most, name)
    tasks = TaskPool((running_loop() if in_loop else None) or home.loop, most, name)
    if not isinstance(listener, AwaitedByTopic) or listener.are_all_awaited:
        return tasks
    mixed = MixedPool(tasks, ThreadPool(most, name))
    listener.plain = mixed.call_plain
    return mixed

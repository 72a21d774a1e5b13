"""Which pool a listener is called in: that depends on its kind, and on the home of its client."""

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
        home: Of its client.
        listener: What is called.
        most: How many calls may be at work at a time; on virtual time a plain one is alone.
        name: Of the consumer, for its threads and tasks.
        in_loop: Whether a listener that is awaited is to be in the loop that runs the caller, if one does.
    """
    if not is_awaited(listener):
        return InlinePool(home) if isinstance(home, VirtualHome) else ThreadPool(most, name)
    # With these comes asyncio, which is not loaded where it is not used.
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

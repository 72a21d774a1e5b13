"""A store without threads of its own, and puts of one turn of an event loop: a process may die at any call.

What threads of the store would do is done at once by the one that asks for it: a life has one thread, so that
its seed lives it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import PutResult
from tests.support.crash.crash_files import CrashFiles
from tests.support.crash.crash_model import Wanted
from tests.support.material.stores import writer_of


class AtOnce:
    """A thread on demand whose task is done by whom it asks."""

    def __init__(self, task: Callable[[], None], files: CrashFiles) -> None:
        self._task = task
        self._files = files

    def ask(self) -> None:
        self._task()
        self._files.check_alive()  # what the task of a dead process swallowed

    def stop(self) -> None:
        """Returns: nothing is ever left to do."""


def do_at_once(store: MessageStore, files: CrashFiles) -> None:
    """Has all that a store asks its threads for done by whom it is asked of."""
    writer = writer_of(store)
    owners: tuple[tuple[Any, str], ...] = (
        (writer.commit, "_leader"),
        (writer._growth, "_allocator"),
        (store._tasks, "_worker"),
    )
    for owner, name in owners:
        setattr(owner, name, AtOnce(getattr(owner, name)._task, files))


def put_together(store: MessageStore, wanted: Sequence[Wanted]) -> list[PutResult]:
    """Puts messages in one turn and waits for them; the store has no threads, see :func:`do_at_once`.

    Raises:
        KilledError: The process died meanwhile.
    """
    deaths: list[BaseException] = []
    loop = asyncio.new_event_loop()

    def die(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        deaths.append(context["exception"])
        task.cancel()

    async def put() -> list[PutResult]:
        return await asyncio.gather(
            *(
                store.put_async(
                    item.topic,
                    item.body,
                    queue_id=item.queue_id,
                    properties=dict(item.properties),
                    durability=Durability.SYNC,
                )
                for item in wanted
            )
        )

    loop.set_exception_handler(die)
    task = loop.create_task(put())
    try:
        return loop.run_until_complete(task)
    except asyncio.CancelledError:
        store._tasks.gathered.clear()  # gone with the process
        raise deaths[0] from None
    finally:
        loop.close()

"""Opens the fast path of a store: tells it where it is, whom to call, and what to make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from seglog.clock import SystemClock
from seglog.storage.kernels.fast_path import FastPath, FastPathOwner
from seglog.storage.writes.appender import Appender
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, RawMessage
from seglog.storage.writes.writer import Writer

FAST_PATH_CALLS: Final = ("put", "put_batch", "append", "append_batch")
"""Calls of a store that a fast path may take; the one in Python takes puts, and batches of them."""


def open_fast_path(
    appender: Appender,
    writer: Writer,
    put: Callable[..., PutResult],
    put_batch: Callable[..., BatchResult],
    append: Callable[..., PutResult],
    append_batch: Callable[..., BatchResult],
) -> tuple[Mapping[str, Callable[..., PutResult | BatchResult]], Callable[..., PutResult | None]]:
    """Opens the fast path of a store.

    Args:
        appender: What it does.
        writer: Where to.
        put: The ordinary way of that call, as the others.
        put_batch: See ``put``.
        append: See ``put``.
        append_batch: See ``put``.

    Returns:
        The calls that the fast path takes, by name, and its ``try_put``.
    """
    owner = FastPathOwner(
        put=put,
        put_batch=put_batch,
        append=append,
        append_batch=append_batch,
        grant=writer.grant,
        notify=writer.waiters.notify,
        ensure=writer.ensure,
        waiting=writer.waiters.waiting,
        put_result=PutResult,
        batch_result=BatchResult,
        new_message=NewMessage,
        raw_message=RawMessage,
        store_host=appender.store_host,
        record_crc=appender.record_crc,
        max_body_bytes=appender.max_message_size_bytes,
        durability=appender.durability,
        sync=Durability.SYNC,
        clock=appender.clock,
        has_system_clock=type(appender.clock) is SystemClock,
        lock=writer.append_lock,
    )
    fast_path: FastPath[PutResult, BatchResult, Durability] = FastPath(writer.log.tail, owner)
    writer.serve(fast_path)
    return {
        name: getattr(fast_path, name) for name in FAST_PATH_CALLS if hasattr(fast_path, name)
    }, fast_path.try_put

"""Opens the fast path of a store: gives it the log's tail, its callbacks, and the classes of its results."""

from __future__ import annotations

from seglog.clock import SystemClock
from seglog.storage.kernels.calls import fast_path
from seglog.storage.kernels.calls.tails import LogTail
from seglog.storage.threads.waiters import Waiters
from seglog.storage.writes.append_core import AppendCore
from seglog.storage.writes.appender import Appender
from seglog.storage.writes.fast_path import FastPath
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, RawMessage


def open_fast_path(appender: Appender, core: AppendCore, tail: LogTail, waiters: Waiters) -> FastPath:
    """Opens the fast path of a store.

    Args:
        appender: The ordinary way, which writes the same bytes for the same arguments.
        core: Grants it write windows.
        tail: The end of the log.
        waiters: Woken after each append.
    """
    owner = fast_path.FastPathOwner(
        notify=waiters.notify,
        ensure=appender.ensure,
        waiting=waiters.waiting,
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
        lock=core.append_lock,
        gathered=[],
    )
    path: FastPath = fast_path.FastPath(tail, owner)
    core.serve(path)
    return path

"""Opens the lane of a store: tells it where it is, and whom to call."""

from __future__ import annotations

from collections.abc import Callable

from seglog.clock import SystemClock
from seglog.storage.appender import Appender
from seglog.storage.flush import Durability
from seglog.storage.kernels.lane import Lane, LaneOwner
from seglog.storage.values import PutResult
from seglog.storage.writer import Writer


def open_lane(
    appender: Appender, writer: Writer, put: Callable[..., PutResult]
) -> Lane[PutResult, Durability]:
    """Returns the lane of a store; ``put`` is the ordinary way."""
    owner = LaneOwner(
        put=put,
        lend=writer.lend,
        notify=writer.waiters.notify,
        ensure=writer.ensure,
        waiting=writer.waiters.waiting,
        put_result=PutResult,
        store_host=appender.store_host,
        record_crc=appender.record_crc,
        max_body_bytes=appender.max_message_size_bytes,
        durability=appender.durability,
        sync=Durability.SYNC,
        clock=appender.clock,
        has_system_clock=type(appender.clock) is SystemClock,
        lock=writer.append_lock,
    )
    lane = Lane(writer.log.tip, owner)
    writer.serve(lane)
    return lane

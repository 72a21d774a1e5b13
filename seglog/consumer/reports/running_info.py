"""The running info of a consumer, which ``mqadmin consumerStatus`` shows.

Source: ``DefaultMQPushConsumerImpl.java consumerRunningInfo``, ``ProcessQueue.java fillProcessQueueInfo``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from seglog.clock import Clock
from seglog.consumer.lease import WORK_MS
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.settings import ConsumerSettings
from seglog.remoting.heartbeat import ConsumerData, QueueReport
from seglog.remoting.message_queue import MessageQueue

_MIB: Final = 1 << 20
_MINUTE_MS: Final = 60_000


def properties_of(
    settings: ConsumerSettings, data: ConsumerData, *, is_in_order: bool, started_ms: int
) -> Mapping[str, str]:
    """Returns the settings by their names in Java.

    Args:
        settings: The settings of the consumer.
        data: Its data in heartbeats.
        is_in_order: Whether it is orderly.
        started_ms: The time of its creation.
    """
    found = {
        "consumerGroup": settings.group,
        "messageModel": data.message_model.value,
        "consumeFromWhere": data.consume_from,
        "consumeThreadMin": settings.threads,
        "consumeThreadMax": settings.threads,
        "consumeConcurrentlyMaxSpan": settings.max_span,
        "pullThresholdForQueue": settings.max_cached,
        "pullThresholdSizeForQueue": settings.max_cached_bytes // _MIB,
        "pullInterval": settings.pull_interval_ms,
        "pullBatchSize": settings.pull_count,
        "pullBatchSizeInBytes": settings.pull_bytes,
        "consumeMessageBatchMaxSize": settings.batch_size,
        "consumeTimeout": settings.consume_timeout_ms // _MINUTE_MS,
        "maxReconsumeTimes": settings.max_reconsume_times,
        "suspendCurrentQueueTimeMillis": int(settings.suspend_ms),
        "unitMode": str(data.is_unit_mode).lower(),
        "PROP_CONSUMEORDERLY": str(is_in_order).lower(),
        "PROP_THREADPOOL_CORE_SIZE": settings.threads,
        "PROP_CONSUMER_START_TIMESTAMP": started_ms,
    }
    return {name: str(value) for name, value in found.items()}


def reports_of(queues: Iterable[ProcessQueue], clock: Clock) -> Mapping[MessageQueue, QueueReport]:
    """Returns a report of each queue of a consumer."""
    return {held.queue: _report(held, clock) for held in sorted(queues, key=lambda held: held.queue)}


def _report(held: ProcessQueue, clock: Clock) -> QueueReport:
    places = held.cache.places()
    done_offset = held.done_offset()
    now_ms = clock.monotonic_ms()
    left_ms = held.lease.work_until_ms - now_ms
    is_locked = held.is_locked and left_ms >= 0
    # The lease uses the monotonic clock; reports need the wall clock.
    locked_ms = clock.now_ms() - int(WORK_MS - left_ms) if is_locked else 0
    return QueueReport(
        -1 if done_offset is None else done_offset,
        cached_min_offset=places.cached.first,
        cached_max_offset=places.cached.last,
        cached_count=places.cached.count,
        cached_size_mib=places.size_bytes // _MIB,
        taken_min_offset=places.taken.first,
        taken_max_offset=places.taken.last,
        taken_count=places.taken.count,
        is_locked=is_locked,
        locked_ms=locked_ms,
        is_dropped=held.is_dropped,
        pulled_ms=held.pulled_ms,
        consumed_ms=held.consumed_ms,
    )

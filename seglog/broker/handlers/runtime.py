"""GET_BROKER_RUNTIME_INFO and GET_BROKER_HA_STATUS: how a broker runs, in the words of RocketMQ's tools.

Features of RocketMQ that this broker lacks have their true values: nothing waits for dispatch, because a
message is in its queue as soon as it is in the log, and there are no timers yet. Without a server no request
waits for its turn; a server adds the lengths of its queues and the times of calls. Names that begin with
``seglog.`` are seglog's own.

Source: ``AdminBrokerProcessor.java prepareRuntimeInfo, getBrokerHaStatus``,
``StoreStatsService.java getRuntimeInfo``, ``DefaultMessageStore.java getRuntimeInfo``,
``ScheduleMessageService.java buildRunningStats``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from seglog.broker.access import Action
from seglog.broker.figures.figures import FOUND, MISSED, PULLED, PUT, Figures
from seglog.broker.figures.samples import Span
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.rates import lag_of_all
from seglog.broker.handlers.touching import of_cluster
from seglog.broker.state.state import BrokerState
from seglog.errors import NotFoundError
from seglog.remoting.admin_bodies import HaStatusBody, KeyValuesBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Response
from seglog.storage.format.names import COMMIT_LOG, SCHEDULE_TOPIC
from seglog.storage.store import MessageStore

_SECOND_MS: Final = 1_000
_KIB: Final = 1 << 10
_UNITS: Final = "KMGTPE"
_NONE: Final = -1
_RATES: Final = (Span.SECONDS, Span.MINUTE, Span.MINUTES)
"""Values that RocketMQ joins into one text."""
_WHENS: Final = ("YesterdayMorning", "TodayMorning", "TodayNow")
_POOLS: Final = ("send", "pull", "litePull", "query", "ack")
_STILL: Final[Mapping[str, str]] = {
    "brokerActive": "true",
    "dispatchBehindBytes": "0",
    "dispatchMaxBuffer": "0",
    "pageCacheLockTimeMills": "0",
    "remainTransientStoreBufferNumbs": "2147483647",
    "startAcceptSendRequestTimeStamp": "0",
    "timerReadBehind": "0",
    "timerOffsetBehind": "0",
    "timerCongestNum": "0",
    "timerEnqueueTps": "0.0",
    "timerDequeueTps": "0.0",
    "EndTransactionQueueSize": "0",
    **{f"{pool}ThreadPoolQueueSize": "0" for pool in _POOLS},
    **{f"{pool}ThreadPoolQueueHeadWaitTimeMills": "0" for pool in _POOLS},
}
"""Constant values."""


def get_runtime_info(state: BrokerState, _call: Call[Header]) -> Response:
    """Returns how the broker runs."""
    store = state.store
    usage = store.files.usage(store.path)
    total_bytes = usage.used_bytes + usage.available_bytes
    ratio = str(usage.used_bytes / max(1, total_bytes))
    levels = state.delivery.progress
    ends = {level: store.max_offset(SCHEDULE_TOPIC, level - 1) for level in levels}
    values = {
        **_STILL,
        "bootTimestamp": str(state.opened_ms),
        "brokerVersionDesc": "V" + state.config.compatible_with.replace(".", "_"),
        "commitLogDirCapacity": f"Total : {_size(total_bytes)}, Free : {_size(usage.available_bytes)}.",
        "commitLogDiskRatio": ratio,
        f"commitLogDiskRatio_{store.path / COMMIT_LOG}": ratio,
        "commitLogMaxOffset": str(store.max_phy_offset),
        "commitLogMinOffset": str(store.min_phy_offset),
        "consumeQueueDiskRatio": ratio,
        "earliestMessageTimeStamp": str(_first_ms(store)),
        "remainHowManyDataToFlush": _size(max(0, store.max_phy_offset - store.synced_phy_offset)),
        "runtime": _duration(max(0, state.now_ms() - state.opened_ms)),
        **{f"scheduleMessageOffset_{level}": f"{levels[level]},{end}" for level, end in ends.items()},
        **_counted(state.figures),
        "putMessageFailedTimes": str(state.refusals.failed_puts),
        **state.figures.facts(),
        **_ours(state),
    }
    return Response(ResponseCode.SUCCESS, body=KeyValuesBody(values))


def get_ha_status(state: BrokerState, _call: Call[Header]) -> Response:
    """Says that the broker is a master without slaves."""
    return Response(ResponseCode.SUCCESS, body=HaStatusBody(state.store.max_phy_offset))


def _counted(figures: Figures) -> dict[str, str]:
    """Returns rates and numbers of messages."""
    rates = {
        name: [figures.rate(what, span).per_s for span in _RATES]
        for name, what in (("put", PUT), ("getFound", FOUND), ("getMiss", MISSED), ("getTransferred", PULLED))
    }
    rates["getTotal"] = [sum(both) for both in zip(rates["getFound"], rates["getMiss"], strict=True)]
    puts = max(1, figures.totals()[-1].put)  # RocketMQ starts at 1, so that the average is a number
    found = {
        "putMessageAverageSize": str(figures.put_bytes / puts),
        "putMessageSizeTotal": str(figures.put_bytes),
        "putMessageTimesTotal": str(puts),
    }
    found |= {f"{name}Tps": " ".join(f"{rate:.2f}" for rate in each) for name, each in rates.items()}
    for when, totals in zip(_WHENS, figures.totals(), strict=True):
        found |= {f"msgPutTotal{when}": str(totals.put), f"msgGetTotal{when}": str(totals.pulled)}
    return found


def _ours(state: BrokerState) -> dict[str, str]:
    """Returns figures that RocketMQ does not have."""
    locks = state.locks.all()
    found = {
        "consumerGroups": len(state.clients.all_consumers()),
        "lag": lag_of_all(state),
        "locks": sum(not lock.is_expired for lock in locks),
        "producerGroups": len(state.clients.all_producers()),
        **state.figures.gauges(),
    }
    return {f"seglog.{name}": str(number) for name, number in found.items()}


def _first_ms(store: MessageStore) -> int:
    """Returns the store time of the log's first message in ms, -1 if none can be read."""
    try:
        return store.message_at(store.min_phy_offset).store_timestamp_ms
    except NotFoundError:
        return _NONE


def _size(size_bytes: int) -> str:
    if size_bytes < _KIB:
        return f"{size_bytes} B"
    power = min(len(_UNITS), (size_bytes.bit_length() - 1) // 10)
    return f"{size_bytes / (1 << 10 * power):.1f} {_UNITS[power - 1]}iB"


def _duration(span_ms: int) -> str:
    minutes, seconds = divmod(span_ms // _SECOND_MS, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


HANDLERS: Final = (
    Handler(RequestCode.GET_BROKER_RUNTIME_INFO, Header, get_runtime_info, (of_cluster(Action.GET),)),
    Handler(RequestCode.GET_BROKER_HA_STATUS, Header, get_ha_status, (of_cluster(Action.GET),)),
)

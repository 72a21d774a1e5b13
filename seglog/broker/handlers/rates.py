"""VIEW_BROKER_STATS_DATA: puts and pulls in the last minute, hour and day.

Differences: this broker counts messages, bytes of records, pulls and messages that were sent back, not sends;
so the average of a send is 0. Figures of times, connections, reads from the disk and bills do not exist, nor
those that RocketMQ counts by a key that is not a topic, a group of a topic, or the cluster.

Source: ``AdminBrokerProcessor.java viewBrokerStatsData``, ``Stats.java``, ``BrokerStatsManager.java``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, NamedTuple

from seglog.broker.access import Action, Resource
from seglog.broker.figures.figures import FOUND, OF_USERS, PULLED, PULLED_BYTES, PUT, PUT_BYTES, SENT_BACK
from seglog.broker.figures.samples import Span
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import named
from seglog.broker.state.state import BrokerState
from seglog.remoting.admin_bodies import Figure, FiguresBody
from seglog.remoting.admin_headers import FiguresHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse

OF_TOPICS: Final[Mapping[str, str]] = {"TOPIC_PUT_NUMS": PUT, "TOPIC_PUT_SIZE": PUT_BYTES}
"""Figures whose key is a topic."""
OF_GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "GROUP_GET_NUMS": (PULLED, FOUND),
    "GROUP_GET_SIZE": (PULLED_BYTES, FOUND),
    "SNDBCK_PUT_NUMS": (SENT_BACK, SENT_BACK),
}
"""Figures whose key is ``topic@group``: what they count, and the calls that it came in."""
OF_ALL: Final[Mapping[str, str]] = {
    "BROKER_PUT_NUMS": PUT,
    "BROKER_GET_NUMS": PULLED,
    "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC": OF_USERS[PUT],
    "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC": OF_USERS[PULLED],
}
"""Figures of the whole broker; their key is the name of the cluster."""


class _Counted(NamedTuple):
    """The name of a count, and that of the calls it came in if those are counted."""

    name: Hashable
    calls: Hashable | None = None


def view_figures(state: BrokerState, call: Call[FiguresHeader]) -> Response:
    """Returns how much of one thing was counted; what was never counted does not exist."""
    header = call.header
    counted = _counted(state, header)
    if counted is None or not state.figures.has_any(counted.name):
        return refuse(ResponseCode.SYSTEM_ERROR, f"The stats <{header.name}> <{header.key}> not exist")
    spans = (_figure(state, counted, span) for span in (Span.MINUTE, Span.HOUR, Span.DAY))
    return Response(ResponseCode.SUCCESS, body=FiguresBody(*spans))


def _figure(state: BrokerState, counted: _Counted, span: Span) -> Figure:
    total, per_s = state.figures.rate(counted.name, span)
    calls = 0 if counted.calls is None else state.figures.rate(counted.calls, span).total
    return Figure(total, per_s, total / calls if calls else 0.0)


def lag_of_all(state: BrokerState) -> int:
    """Returns the sum of the lags of all groups, in the queues where they have committed."""
    ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in state.store.queues()}
    return sum(
        max(0, ends.get((topic, queue_id), 0) - offset)
        for (_group, topic, queue_id), offset in state.offsets.all().items()
    )


def _counted(state: BrokerState, header: FiguresHeader) -> _Counted | None:
    """Returns what a name and a key stand for; None if that is not counted."""
    if header.name in OF_ALL:
        is_ours = header.key == state.config.cluster_name
        return _Counted(OF_ALL[header.name]) if is_ours else None
    if header.name in OF_TOPICS:
        return _Counted((OF_TOPICS[header.name], header.key))
    topic, _, group = header.key.partition("@")
    if header.name not in OF_GROUPS:
        return None
    name, calls = OF_GROUPS[header.name]
    return _Counted((name, topic, group), (calls, topic, group))


def _topic(header: FiguresHeader, _request: Request, _state: BrokerState) -> tuple[str]:
    return (header.key.partition("@")[0],)


def _group(header: FiguresHeader, _request: Request, _state: BrokerState) -> tuple[str, ...]:
    group = header.key.partition("@")[2]
    return (group,) if group else ()


HANDLERS: Final = (
    Handler(
        RequestCode.VIEW_BROKER_STATS_DATA,
        FiguresHeader,
        view_figures,
        (named(Resource.TOPIC, _topic, Action.GET), named(Resource.GROUP, _group, Action.GET)),
    ),
)

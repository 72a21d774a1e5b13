"""VIEW_BROKER_STATS_DATA: puts and pulls in the last minute, hour and day.

Differences: of RocketMQ's figures this broker counts the messages put to a topic and to all topics, and those
pulled by a group and by all groups; it counts no bytes, calls or latencies, so the average of a call is 0. A
topic without puts has a figure of 0, where RocketMQ has none.

Source: ``AdminBrokerProcessor.java viewBrokerStatsData``, ``Stats.java``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.figures.figures import PULLED, PUT
from seglog.broker.figures.samples import Rate, Span
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import named
from seglog.broker.state.state import BrokerState
from seglog.remoting.admin_bodies import Figure, FiguresBody
from seglog.remoting.admin_headers import FiguresHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse

TOPIC_PUT_NUMS: Final = "TOPIC_PUT_NUMS"
GROUP_GET_NUMS: Final = "GROUP_GET_NUMS"
OF_ALL: Final = {"BROKER_PUT_NUMS": PUT, "BROKER_GET_NUMS": PULLED}
"""Figures of the whole broker; their key is the name of the cluster."""


def view_figures(state: BrokerState, call: Call[FiguresHeader]) -> Response:
    """Returns how much of one thing was counted."""
    header = call.header
    rate = _rate_of(state, header)
    if rate is None:
        return refuse(ResponseCode.SYSTEM_ERROR, f"The stats <{header.name}> <{header.key}> not exist")
    spans = (Figure(*rate(span)) for span in (Span.MINUTE, Span.HOUR, Span.DAY))
    return Response(ResponseCode.SUCCESS, body=FiguresBody(*spans))


def lag_of_all(state: BrokerState) -> int:
    """Returns the sum of the lags of all groups, in the queues where they have committed."""
    ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in state.store.queues()}
    return sum(
        max(0, ends.get((topic, queue_id), 0) - offset)
        for (_group, topic, queue_id), offset in state.offsets.all().items()
    )


def _rate_of(state: BrokerState, header: FiguresHeader) -> Callable[[Span], Rate] | None:
    """Returns the object that counts rates; None if there is no such thing."""
    what = OF_ALL.get(header.name)
    if what is not None:
        is_ours = header.key == state.config.cluster_name and state.figures.has_any(what)
        return (lambda span: state.figures.rate_of_all(what, span)) if is_ours else None
    topic, _, group = header.key.partition("@")
    if header.name == TOPIC_PUT_NUMS and not group and state.topics.get(topic) is not None:
        return lambda span: state.figures.put_rate(topic, span)
    if header.name == GROUP_GET_NUMS and state.figures.has_pulled(group, topic):
        return lambda span: state.figures.pulled_rate(group, topic, span)
    return None


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

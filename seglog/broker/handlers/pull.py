"""PULL_MESSAGE and LITE_PULL_MESSAGE."""

from __future__ import annotations

from typing import Final

from seglog.broker.access import Action
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import of_consumer_group, of_topic
from seglog.broker.pulls.pull import HeldPull, pull
from seglog.broker.state.state import BrokerState
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Response
from seglog.remoting.headers import PullMessageHeader


def pull_message(state: BrokerState, call: Call[PullMessageHeader]) -> Response | HeldPull:
    """Reads messages of one queue."""
    return pull(state, call.header, call.peer)


def lite_pull_message(state: BrokerState, call: Call[PullMessageHeader]) -> Response | HeldPull:
    """Does the same for a client that shares its queues by itself, if the broker is set to."""
    return pull(state, call.header, call.peer, is_lite=True)


_RULES: Final = (of_topic(Action.SUB), of_consumer_group(Action.SUB))
HANDLERS: Final = (
    Handler(RequestCode.PULL_MESSAGE, PullMessageHeader, pull_message, _RULES),
    Handler(RequestCode.LITE_PULL_MESSAGE, PullMessageHeader, lite_pull_message, _RULES),
)

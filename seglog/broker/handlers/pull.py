"""PULL_MESSAGE."""

from __future__ import annotations

from typing import Final

from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.pull import HeldPull, pull
from seglog.broker.state import BrokerState
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Response
from seglog.remoting.headers import PullMessageHeader


def pull_message(state: BrokerState, call: Call[PullMessageHeader]) -> Response | HeldPull:
    """Reads messages of one queue."""
    return pull(state, call.header, call.peer.client_id)


HANDLERS: Final = (Handler(RequestCode.PULL_MESSAGE, PullMessageHeader, pull_message),)

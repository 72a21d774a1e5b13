"""CONSUMER_SEND_MSG_BACK."""

from __future__ import annotations

from typing import Final

from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.sends.send_back import send_back
from seglog.broker.state.state import BrokerState
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Response
from seglog.remoting.headers import SendBackHeader


def send_message_back(state: BrokerState, call: Call[SendBackHeader]) -> Response:
    """Takes back a message that could not be consumed."""
    return send_back(state, call.header, call.appends)


HANDLERS: Final = (Handler(RequestCode.CONSUMER_SEND_MSG_BACK, SendBackHeader, send_message_back),)

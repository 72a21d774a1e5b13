"""CONSUMER_SEND_MSG_BACK."""

from __future__ import annotations

from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import named, of_group
from seglog.broker.sends.send_back import find_message, send_back
from seglog.broker.state.state import BrokerState
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, Response
from seglog.remoting.headers import SendBackHeader


def send_message_back(state: BrokerState, call: Call[SendBackHeader]) -> Response:
    """Takes back a message that could not be consumed."""
    return send_back(state, call.header, call.appends)


def _read(header: SendBackHeader, _request: Request, state: BrokerState) -> tuple[str | None, ...]:
    """Returns the topic that the client names, and that of the record, which it may name wrongly.

    A record that does not exist yet may exist when the handler looks, and may be of any topic.
    """
    message = find_message(state, header)
    read = None if message is None else message.topic
    return (read,) if header.origin_topic is None else (header.origin_topic, read)


HANDLERS: Final = (
    Handler(
        RequestCode.CONSUMER_SEND_MSG_BACK,
        SendBackHeader,
        send_message_back,
        (of_group(Action.SUB), named(Resource.TOPIC, _read, Action.SUB)),
    ),
)

"""Handles requests and notices of brokers to a client.

A broker asks a client for its running info and its offsets, and to consume a message chosen by an operator;
it notifies the client of joined or left members and of reset offsets. Replies to requests of producers are
acknowledged, and dropped if nothing waits for them, as in Java.

Source: ``ClientRemotingProcessor.java``.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from seglog.client.home.flows import start
from seglog.client.home.home import Home
from seglog.client.links.link import Link
from seglog.client.links.served import unsupported
from seglog.client.member import Member
from seglog.logs import logger
from seglog.remoting.bodies import ConsumerStatusBody, ResetOffsetsBody
from seglog.remoting.body_json import CONSUMED_DIRECTLY, RUNNING_INFO, BodyCodec, Dialect
from seglog.remoting.client_headers import (
    ConsumeDirectlyHeader,
    ConsumerStatusHeader,
    MembersChangedHeader,
    RunningInfoHeader,
)
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, TypedBody, expect_body, expect_header, refuse
from seglog.remoting.headers import ResetOffsetHeader
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message
from seglog.storage.kernels.decode import decode_message

LIKE_VERSION: Final = "V5_4_0"
"""Name of ``OUR_SENDER.version``, shown in the running info of a client."""

B = TypeVar("B", bound=TypedBody)
_log = logger(__name__)


class Answers:
    """The answers of one client. Any thread may call it; members are called on the home.

    Args:
        link: The link of the client.
        home: The home of the client.
        members: Its consumers, by group.
    """

    def __init__(self, link: Link, home: Home, members: Mapping[str, Member]) -> None:
        self._link = link
        self._home = home
        self._members = members

    def on_notice(self, request: Request) -> None:
        """Handles a notice of a broker."""
        if request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            said = expect_header(request, MembersChangedHeader)
            member = self._members.get(said.consumer_group)
            if said.topic is None or said.broker_name is None or said.queue_id is None:
                self._home.post(partial(self._look_again, said.consumer_group))
            elif member is not None:  # at once: in process the other member begins when this returns
                member.taken(MessageQueue(said.topic, said.broker_name, said.queue_id))
        elif request.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
            header = expect_header(request, ResetOffsetHeader)
            offsets = {} if request.body is None else expect_body(request, ResetOffsetsBody).offsets
            self._home.post(partial(self._reset, header, offsets))

    def on_request(self, request: Request) -> Response | Deferred[Response]:
        """Answers a request of a broker."""
        if request.code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT:
            header = expect_header(request, ConsumerStatusHeader)
            return start(self._home, self._status(header), "an answer of how far a consumer is")
        if request.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
            asked = expect_header(request, RunningInfoHeader)
            return start(self._home, self._running_info(asked), "an answer of how a consumer runs")
        if request.code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
            return self._consumed_directly(request)
        if request.code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT:
            _log.warning("a reply has come that nothing waits for: it is dropped")
            return Response(ResponseCode.SUCCESS)
        return unsupported(request)

    async def _status(self, header: ConsumerStatusHeader) -> Response:
        member = self._members.get(header.group)
        found = {} if member is None else member.progress(header.topic)
        return Response(ResponseCode.SUCCESS, body=ConsumerStatusBody(dict(found)))

    async def _running_info(self, header: RunningInfoHeader) -> Response:
        member = self._members.get(header.consumer_group)
        if member is None:
            return _not_here(header.consumer_group)
        found = member.running_info()
        properties = {
            **found.properties,
            "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in self._link.name_servers),
            "PROP_CONSUME_TYPE": member.heartbeat().consume_type.value,
            "PROP_CLIENT_VERSION": LIKE_VERSION,
        }
        stacks = _stacks() if header.is_with_stacks else None
        return _answered(RUNNING_INFO, replace(found, properties=properties, stacks=stacks))

    def _consumed_directly(self, request: Request) -> Response | Deferred[Response]:
        header = expect_header(request, ConsumeDirectlyHeader)
        if not isinstance(request.body, bytes | memoryview):
            return refuse(ResponseCode.SYSTEM_ERROR, "there is no message to consume")
        message = decode_message(request.body)
        steps = self._consume_directly(header, message)
        return start(self._home, steps, f"message {message.message_id}, which was picked to be consumed")

    async def _consume_directly(self, header: ConsumeDirectlyHeader, message: Message) -> Response:
        member = self._members.get(header.consumer_group)
        if member is None:
            return _not_here(header.consumer_group)
        ended = await member.consume_directly(message, header.broker_name or "")
        return _answered(CONSUMED_DIRECTLY, ended)

    def _look_again(self, group: str) -> None:
        member = self._members.get(group)
        if member is not None:
            member.look_again()

    def _reset(self, header: ResetOffsetHeader, offsets: Mapping[MessageQueue, int]) -> None:
        member = self._members.get(header.group)
        if member is None:
            _log.warning("offsets of group %s were reset, which is not in this client", header.group)
        else:
            member.reset(header.topic, offsets)


def _answered(codec: BodyCodec[B], body: B) -> Response:
    return Response(ResponseCode.SUCCESS, body=codec.encode(body, Dialect.FASTJSON))


def _not_here(group: str) -> Response:
    return refuse(ResponseCode.SYSTEM_ERROR, f"The Consumer Group <{group}> not exist in this consumer")


def _stacks() -> str:
    """Returns the stacks of all threads of this process as text."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"{names.get(ident, '?')}  id: {ident}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    )

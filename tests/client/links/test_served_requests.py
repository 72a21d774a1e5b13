"""What servers ask and tell a client over its connection."""

from __future__ import annotations

import select
import threading
from dataclasses import replace
from typing import Any

import pytest

from seglog.remoting.bodies import ResetOffsetsBody
from seglog.remoting.client_headers import MembersChangedHeader
from seglog.remoting.codec import Codec
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.headers import ResetOffsetHeader
from seglog.remoting.heartbeat import ConsumerListBody
from seglog.remoting.later import Deferred
from tests.support.listening import Server
from tests.support.machine.patience import wait_until
from tests.support.peers import (
    ASK,
    answered_with,
    echo,
)

NOTICES = {
    40: Request(40, MembersChangedHeader("g")),
    220: Request(220, ResetOffsetHeader("g", "T", 0, is_forced=False), ResetOffsetsBody({})),
    77: Request(77, body=b"b"),
}


@pytest.mark.parametrize("code", NOTICES)
def test_what_a_server_says_unasked_is_a_notice_and_never_answered(link_to, code):
    told, heard = [], []

    def serve(one, number):
        codec = Codec()
        one.recv(1 << 16)
        one.sendall(b"".join(codec.ask(replace(NOTICES[code], is_oneway=True), 7)[1]))
        if code != 77:  # never answered, even where an answer is asked for
            one.sendall(b"".join(codec.ask(NOTICES[code], 8)[1]))
        if select.select([one], [], [], 0.3)[0]:
            heard.append(one.recv(1 << 16))

    with Server(serve) as server:
        link = link_to(server.address, on_notice=told.append)
        link.tell(ASK)
        wait_until(lambda: len(told) == (1 if code == 77 else 2))
        assert {request.code for request in told} == {code}
        server.close()
    assert heard in ([], [b""])


@pytest.mark.parametrize(
    "way", ["now", "later", "raises", "fails later", "unknown", "unreadable", "wrong body", "text", "remark"]
)
def test_what_a_server_asks_is_answered_under_its_number(link_to, way):
    answers, later = [], Deferred()

    def on_request(request):
        if way == "now":
            return echo(request)
        if way == "raises":
            raise KeyError("k")
        if way == "wrong body":
            return Response(ResponseCode.SUCCESS, body=ConsumerListBody(()))
        if way in ("text", "remark"):  # what is no answer must not end the connection
            remark: Any = 5
            return "text" if way == "text" else Response(ResponseCode.SUCCESS, remark=remark)
        threading.Timer(
            0.05,
            later.fail if way == "fails later" else later.resolve,
            (KeyError("k") if way == "fails later" else echo(request),),
        ).start()
        return later

    def serve(one, number):
        codec = Codec()
        one.recv(1 << 16)
        asked = Request(
            307, body=b"b", ext={} if way == "unreadable" else {"consumerGroup": "g", "clientId": "c"}
        )
        one.sendall(b"".join(codec.ask(asked, 123_456)[1]))
        while not answers:
            answers.extend(answered_with(codec, one.recv(1 << 16)))

    with Server(serve) as server:
        link = link_to(server.address, on_request=None if way == "unknown" else on_request)
        link.tell(ASK)
        wait_until(lambda: answers)
    ((opaque, answer),) = answers
    assert opaque == 123_456
    expected = {
        "now": ResponseCode.SUCCESS,
        "later": ResponseCode.SUCCESS,
        "unknown": ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
    }
    assert answer.code is expected.get(way, ResponseCode.SYSTEM_ERROR)
    if way == "unknown":
        assert answer.remark == " request type 307 not supported"


def test_a_server_may_ask_so_much_and_no_more(link_to):
    refused, made = [], []

    def serve(one, number):
        codec = Codec()
        one.recv(1 << 16)
        one.sendall(b"".join(b"".join(codec.ask(ASK, number)[1]) for number in range(1_030)))
        while data := one.recv(1 << 16):
            refused.extend(answer.code for _, answer in answered_with(codec, data))

    def on_request(_):
        made.append(Deferred())
        return made[-1]

    with Server(serve) as server:
        link_to(server.address, on_request=on_request).tell(ASK)
        wait_until(lambda: len(refused) == 6)
        assert set(refused) == {ResponseCode.SYSTEM_BUSY}
    wait_until(lambda: all(one.is_done for one in made))  # given up with the connection

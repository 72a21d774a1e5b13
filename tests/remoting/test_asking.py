"""Both ends of a connection of bytes ask, and each ask ends: answered, in time, or with the connection."""

from __future__ import annotations

import socket

import pytest

from seglog.clock import VirtualClock
from seglog.errors import AskTimeoutError, ConnectionEndedError, LocalProtocolError, ProtocolError
from seglog.remoting.client_headers import ConsumerGroupHeader
from seglog.remoting.codec import Asked, Codec
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.frames.frame import Serialization
from seglog.remoting.heartbeat import ConsumerListBody
from seglog.schedule import Duties, Timers
from tests.support.connections import WireEnd
from tests.support.machine.patience import wait_for_result

WHO = Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader("g"))


class Pair:
    """The two ends, and the time of the first one."""

    def __init__(self, answer, serialization=Serialization.JSON):
        clock = VirtualClock()
        timers = Timers(clock)
        self.duties = Duties(clock, [timers])
        left, right = socket.socketpair()
        self.asking = WireEnd(left, timers, answer, serialization)
        self.answering = WireEnd(right, timers, answer, serialization)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.asking.close()
        self.answering.close()


@pytest.mark.parametrize("serialization", Serialization)
def test_finding_4_of_the_seam_either_end_gets_the_answers_to_what_it_asked(serialization):
    def answer(request):
        group = request.header.consumer_group
        return Response(ResponseCode.SUCCESS, body=ConsumerListBody((group,)))

    with Pair(answer, serialization) as pair:
        asked = []
        for number in range(50):
            request = Request(WHO.code, ConsumerGroupHeader(f"g{number}"))
            asked += [(number, end.ask(request, 1_000)) for end in (pair.asking, pair.answering)]
        for number, one in asked:
            assert wait_for_result(one).body == ConsumerListBody((f"g{number}",))
        assert [len(end.asks) for end in (pair.asking, pair.answering)] == [0, 0]


def test_an_answer_that_comes_too_late_is_dropped():
    held = []

    def answer(request):
        return refuse(ResponseCode.SYSTEM_ERROR, "second") if held else held.append(request)

    with Pair(answer) as pair:
        late = pair.asking.ask(WHO, 5_000)
        pair.duties.advance(5_000)
        with pytest.raises(AskTimeoutError):
            late.wait(0)
        again = pair.asking.ask(WHO, 5_000)
        assert wait_for_result(again).remark == "second"
        pair.answering._end.sendall(answer_bytes(late.opaque))
        pair.answering._end.sendall(answer_bytes(again.opaque))
        assert wait_for_result(pair.asking.ask(WHO, 5_000)).remark == "second"
        assert pair.asking.unasked == [late.opaque, again.opaque]


def answer_bytes(opaque):
    """Returns the bytes of an answer that is not waited for."""
    return b"".join(Codec().answer(Asked(opaque, WHO), refuse(ResponseCode.SYSTEM_ERROR, "late")))


def test_finding_3_of_the_seam_the_end_of_the_connection_fails_all_that_wait():
    with Pair(lambda _: None) as pair:
        waiting = [pair.asking.ask(WHO, 60_000) for _ in range(10)]
        pair.answering._end.shutdown(socket.SHUT_WR)
        for one in waiting:
            with pytest.raises(ConnectionEndedError, match="hung up"):
                wait_for_result(one)
        assert len(pair.asking.asks) == 0
        with pytest.raises(ConnectionEndedError, match="was not asked"):
            pair.asking.ask(WHO, 60_000).result()


def test_what_cannot_be_written_fails_and_what_cannot_be_read_fails():
    with Pair(lambda _: Response(ResponseCode.SUCCESS, body=b"{")) as pair:
        wrong = Request(RequestCode.HEART_BEAT, ConsumerGroupHeader("g"))
        with pytest.raises(ProtocolError, match="came with ConsumerGroupHeader"):
            pair.asking.ask(wrong, 1_000).result()
        with pytest.raises(ProtocolError, match="no JSON"):
            wait_for_result(pair.asking.ask(WHO, 1_000))
        assert len(pair.asking.asks) == 0


def test_a_codec_takes_each_number_once_and_its_own_numbers_pass_by_those_given():
    codec = Codec()
    assert codec.ask(WHO, 0)[0] == 0
    with pytest.raises(LocalProtocolError, match="number 0 waits"):
        codec.ask(WHO, 0)
    assert codec.ask(WHO)[0] == 1
    codec.forget(0)
    assert codec.ask(WHO, 0)[0] == 0

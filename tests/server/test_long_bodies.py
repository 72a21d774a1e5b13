"""Long bodies are read by a thread, in the order of their connection, and are refused where too many wait."""

from __future__ import annotations

import threading

from typing_extensions import override

from seglog.remoting.codec import Codec
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Inbox
from seglog.server.limits import ServerLimits
from seglog.server.long_bodies import LongBodies
from tests.server.conftest import ask
from tests.server.frames import answers, bytes_of
from tests.support.asks import beat_of, route_of, send_to
from tests.support.machine.patience import wait_until

LONG = b'{"clientID":"c","producerDataSet":[{"groupName":"p"}],"more":"' + b"x" * 100_000 + b'"}'
BEAT = Request(RequestCode.HEART_BEAT, body=LONG)


def unread_of(codec):
    (found,) = codec.receive(bytes_of(Codec(), BEAT))
    return found


def test_what_comes_behind_a_long_body_is_served_behind_it(serve, dial, join):
    server, codec = serve(), Codec()
    assert ask(join(server), send_to("T")).code is ResponseCode.SUCCESS
    end = dial(server)
    requests = [beat_of("c", "T"), BEAT, route_of("T"), BEAT, Request(RequestCode.HEART_BEAT, body=LONG[:-1])]
    end.sendall(bytes_of(codec, *requests))
    found = answers(codec, end, 5)
    assert list(found) == [0, 1, 2, 3, 4]
    assert [answer.code for answer in found.values()][:4] == [ResponseCode.SUCCESS] * 4
    assert (found[4].code, found[4].remark) == (
        ResponseCode.SYSTEM_ERROR,
        f"a body is no JSON at byte {len(LONG) - 1}: found 'the end', expected ',' or '}}'",
    )


def test_a_long_body_for_which_there_is_no_room_is_refused(serve, dial, caplog):
    server, codec = serve(all_queued_bytes=len(LONG) - 1), Codec()
    end = dial(server)
    end.sendall(bytes_of(codec, BEAT, beat_of("c", "T")))
    found = answers(codec, end, 2)
    assert (found[0].code, found[1].code) == (ResponseCode.SYSTEM_BUSY, ResponseCode.SUCCESS)
    assert found[0].remark == "[OVERLOAD]system busy, start flow control for a while"
    assert "a long body is not read" in caplog.text


def test_a_server_stops_while_long_bodies_wait(serve, dial, join):
    server = serve(stop_ms=1)
    assert ask(join(server), send_to("T")).code is ResponseCode.SUCCESS
    for _ in range(20):
        dial(server).sendall(bytes_of(Codec(), BEAT) * 20)
    server.close()
    assert "seglog-bodies" not in {thread.name for thread in threading.enumerate()}


def test_one_that_has_waited_for_too_long_is_refused_unread():
    now_s, told = 0.0, []
    codec, tasks = Codec(long_bytes=1), []
    inbox = Inbox(tasks.append)
    bodies = LongBodies(inbox, ServerLimits(other_wait_ms=5_000), lambda: now_s)
    held = threading.Event()
    bodies.put(Held(held), unread_of(codec), told.append)
    bodies.put(codec, unread_of(codec), told.append)
    now_s = 5.0
    held.set()
    wait_until(lambda: not bodies.is_busy)
    bodies.close()
    for task in tasks:
        task()
    assert isinstance(told[1], Response)
    assert told[1].code is ResponseCode.SYSTEM_BUSY
    assert "period in queue: 5000ms" in str(told[1].remark)


class Held(Codec):
    """Reads once it may."""

    def __init__(self, may_read: threading.Event) -> None:
        super().__init__()
        self._may_read = may_read

    @override
    def read(self, unread):
        self._may_read.wait()
        return super().read(unread)

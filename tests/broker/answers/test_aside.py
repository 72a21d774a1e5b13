"""The line of requests that wait for the disk."""

from __future__ import annotations

import threading

from seglog.broker.answers.aside import Aside
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response
from seglog.remoting.peer import Peer
from seglog.storage.format.record import Host
from tests.support.machine.patience import wait_for_event, wait_for_result

HOST = Host(b"\x7f\x00\x00\x01", 1)
FIRST, SECOND = Peer("first", HOST), Peer("second", HOST)
ASKED = Request(RequestCode.HEART_BEAT, Header())
DONE = Response(ResponseCode.SUCCESS)


def test_what_waits_is_done_together_in_order_and_only_its_clients_follow():
    began, may_end, rounds = threading.Event(), threading.Event(), []

    def do(some):
        rounds.append([each.peer for each in some])
        began.set()
        wait_for_event(may_end, idle_s=20)
        for each in some:
            each.answer.resolve(DONE)

    aside = Aside(do)
    assert not aside.has(FIRST)
    answers = [aside.put(ASKED, FIRST)]
    wait_for_event(began, idle_s=20)
    answers += [aside.put(ASKED, peer) for peer in (SECOND, FIRST, SECOND)]
    assert aside.has(FIRST)
    assert aside.has(SECOND)
    assert not aside.has(Peer("third", HOST))
    may_end.set()
    assert {wait_for_result(answer) for answer in answers} == {DONE}
    aside.close()
    assert rounds == [[FIRST], [SECOND, FIRST, SECOND]]
    assert not aside.has(FIRST)
    assert not aside.has(SECOND)


def test_what_comes_after_the_end_is_refused_and_what_was_in_line_is_done():
    aside = Aside(lambda some: None)
    aside.close()
    late = aside.put(ASKED, FIRST)
    assert late.result().code is ResponseCode.SERVICE_NOT_AVAILABLE
    assert not aside.has(FIRST)


def test_what_fails_is_refused_and_the_line_goes_on(caplog):
    failing = Peer("failing", HOST)

    def do(some):
        for each in some:
            if each.peer is failing:
                raise KeyError("k")
            each.answer.resolve(DONE)

    aside = Aside(do)
    refused = wait_for_result(aside.put(ASKED, failing))
    assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_ERROR, "KeyError: 'k'")
    assert wait_for_result(aside.put(ASKED, FIRST)) == DONE
    aside.close()
    assert not aside.has(failing)
    assert "KeyError" in caplog.text

"""What a broker asks a client in the same process: it is answered, refused, or fails in time."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from seglog.client.links.local_channel import LocalChannel
from seglog.errors import AskLimitError, AskTimeoutError, ConnectionEndedError, NoPermissionError
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred
from seglog.remoting.later.asked import MOST_ASKED
from tests.support.brokers import open_broker
from tests.support.machine.patience import patience_s
from tests.support.machine.said import said

ASK = Request(307)


@pytest.fixture
def broker(tmp_path):
    with open_broker(tmp_path) as opened:
        yield opened


def test_finding_5_of_the_seam_a_client_imports_no_broker():
    modules = ["client.links.local_link", "client.routes", "producer.producer", "consumer.orderly"]
    code = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module("seglog." + name)
    assert "seglog.broker" not in sys.modules, name
"""
    subprocess.run((sys.executable, "-c", code), check=True, timeout=patience_s(30))


def test_finding_4_of_the_seam_an_answer_comes_at_once_or_by_a_deferred(broker):
    answer = Response(ResponseCode.SUCCESS, body=b"{}")
    assert LocalChannel("c", broker.timers, None, lambda _: answer).ask(ASK, 1_000).result() is answer
    later, seen = Deferred(), []

    def on_request(request):
        seen.append(request)
        return later

    asked = LocalChannel("c", broker.timers, None, on_request).ask(ASK, 1_000)
    assert (seen, asked.is_done) == ([ASK], False)
    later.resolve_by(lambda: answer)
    assert asked.result() is answer
    assert len(broker.timers) == 0


def test_a_client_that_knows_no_requests_refuses_them_as_javas_does(broker):
    refused = LocalChannel("c", broker.timers, None, None).ask(ASK, 1_000).result()
    assert refused.code is ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert refused.remark == " request type 307 not supported"


@pytest.mark.parametrize(
    ("error", "code", "remark", "is_logged"),
    [
        (NoPermissionError("not you"), ResponseCode.NO_PERMISSION, "not you", False),
        (KeyError("k"), ResponseCode.SYSTEM_ERROR, "KeyError: 'k'", True),
    ],
)
@pytest.mark.parametrize("is_later", [False, True])
def test_what_a_client_raises_is_a_refusal(broker, caplog, error, code, remark, is_logged, is_later):
    later = Deferred()

    def on_request(_):
        if is_later:
            return later
        raise error

    with caplog.at_level(logging.ERROR):
        asked = LocalChannel("c", broker.timers, None, on_request).ask(ASK, 1_000)
        if is_later:
            later.fail(error)
    refused = asked.result()
    assert (refused.code, refused.remark) == (code, remark)
    assert ("a client failed at a request of code 307" in caplog.text) == is_logged


def test_a_client_that_does_not_answer_in_time_is_not_waited_for(broker):
    later = Deferred()
    asked = LocalChannel("slow", broker.timers, None, lambda _: later).ask(ASK, 5_000)
    broker.advance("4999ms")
    assert not asked.is_done
    broker.advance("1ms")
    with pytest.raises(AskTimeoutError, match="request 307 to client slow got no answer within 5000 ms"):
        asked.result()
    assert later.is_done  # it was cancelled, so that the client may stop its work
    assert not later.resolve(Response(ResponseCode.SUCCESS))


def test_who_asked_may_cancel_and_the_client_hears_of_it(broker, caplog):
    later = Deferred()
    assert LocalChannel("c", broker.timers, None, lambda _: later).ask(ASK, 5_000).cancel()
    assert later.is_done
    assert said(caplog) == [], "the client has not failed"
    assert len(broker.timers) == 0


def test_a_link_that_is_closed_ends_what_it_was_asked(broker):
    channel = LocalChannel("c", broker.timers, None, lambda _: Deferred())
    asked = channel.ask(ASK, 5_000)
    channel.end()
    for one in (asked, channel.ask(ASK, 5_000)):
        with pytest.raises(ConnectionEndedError, match="closed its link"):
            one.result()
    assert len(broker.timers) == 0


def test_so_many_requests_may_wait_for_a_client_and_no_more(broker):
    channel = LocalChannel("c", broker.timers, None, lambda _: Deferred())
    asked = [channel.ask(ASK, 5_000) for _ in range(MOST_ASKED)]
    with pytest.raises(AskLimitError):
        channel.ask(ASK, 5_000).result()
    broker.advance("5s")
    assert all(one.is_done for one in asked)
    assert not channel.ask(ASK, 5_000).is_done

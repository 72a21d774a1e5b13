"""What the log says of requests that are refused: one line, for the owner of the machine."""

from __future__ import annotations

import logging

import pytest

from seglog.broker.settings import BrokerConfig
from seglog.broker.state.refusals import Refusals
from seglog.clock import VirtualClock
from seglog.errors import FullError, InvalidArgumentError, StoreFailedError
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request
from tests.support.brokers import open_broker, send


def test_sends_that_a_full_disk_refuses_are_logged_once_a_minute(broker, caplog, monkeypatch):
    def no_space(*_args, **_named):
        raise FullError("the disk is full")

    monkeypatch.setattr(broker.topics, "create_for_send", no_space)
    for _ in range(3):
        assert send(broker, "T").code is ResponseCode.SERVICE_NOT_AVAILABLE
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "requests are refused: the disk is full"
    ]


@pytest.mark.parametrize("error", [FullError("x"), StoreFailedError("x")])
def test_what_the_machine_causes_is_logged_and_what_a_client_causes_is_not(caplog, error):
    refusals = Refusals()
    assert refusals.of(10, InvalidArgumentError("no such thing")).code is ResponseCode.INVALID_PARAMETER
    assert caplog.records == []
    assert refusals.of(10, error).remark == "x"
    assert len(caplog.records) == 1


def test_a_slip_of_ours_is_one_line_and_its_place_is_there_at_debug(caplog):
    with caplog.at_level(logging.DEBUG):
        answer = Refusals().of(10, KeyError("slip"))
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "KeyError: 'slip'")
    levels = [(record.levelno, bool(record.exc_info)) for record in caplog.records]
    assert levels == [(logging.ERROR, False), (logging.DEBUG, True)]


def test_a_code_that_is_not_known_is_not_said_to_be_none_of_the_release(tmp_path, caplog):
    config = BrokerConfig(compatible_with="5.5.1")
    with open_broker(tmp_path / "s", VirtualClock(), config) as broker:
        answer = broker.dispatch(Request(99_999))
    assert answer.code is ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    (record,) = caplog.records
    assert record.getMessage() == (
        "requests of code 99999 (unknown code) are refused: the requests that are known here are those of"
        " RocketMQ 5.4.0"
    )

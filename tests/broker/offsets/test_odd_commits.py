"""What clients may commit, a check does not call damage."""

from __future__ import annotations

import pytest

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import GetMaxOffsetHeader, UpdateConsumerOffsetHeader
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from tests.support.brokers import open_broker


@pytest.mark.parametrize("queue_id", [-1, -(1 << 31), 99])
def test_a_commit_of_a_queue_that_cannot_be_is_taken_as_rocketmq_takes_it_and_no_damage(tmp_path, queue_id):
    broker: Broker = open_broker(tmp_path / "s", VirtualClock())
    with broker:
        Producer(broker).send("T", b"x")
        broker.answer(Request(RequestCode.HEART_BEAT, body=HeartbeatBody("c", (), (ConsumerData("g"),))))
        commit = UpdateConsumerOffsetHeader("g", "T", queue_id, 0)
        assert (
            broker.dispatch(Request(RequestCode.UPDATE_CONSUMER_OFFSET, commit)).code is ResponseCode.SUCCESS
        )
        asked = Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0))
        assert broker.dispatch(asked).code is ResponseCode.SUCCESS
    assert [
        finding.code for finding in check_store(tmp_path / "s").findings if finding.code == "config-shape"
    ] == []

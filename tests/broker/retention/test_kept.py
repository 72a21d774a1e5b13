"""A broker without a retention time keeps every message, also on a full disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

import pytest

from seglog import Producer
from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.errors import RemoteProtocolError
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from tests.broker.retention.conftest import Disk
from tests.support.brokers import ask

COUNT = 60


def fill(broker: Broker, count: int = COUNT) -> None:
    with Producer(broker) as producer:
        for _ in range(count):
            producer.send("T", bytes(500), queue_id=0)


@pytest.mark.parametrize("percent", [10, 80, 88, 99])
def test_a_broker_in_the_process_deletes_nothing_of_its_own_accord(
    open_broker: Callable[..., Broker], clock: VirtualClock, disk: Disk, percent: int
):
    broker = open_broker(retention_hours=None)
    fill(broker)
    disk.percent = percent
    broker.advance("4d")
    assert (broker.store.min_phy_offset, broker.store.min_offset("T", 0)) == (0, 0)
    assert broker.store.max_offset("T", 0) == COUNT


def test_at_a_full_disk_it_refuses_sends_until_there_is_room(
    open_broker: Callable[..., Broker], clock: VirtualClock, disk: Disk
):
    broker = open_broker(retention_hours=None)
    fill(broker)
    disk.percent = 95
    broker.advance("1m")
    with pytest.raises(RemoteProtocolError, match="disk is full"), Producer(broker) as producer:
        producer.send("T", b"x", queue_id=0)
    disk.percent = 10
    broker.advance("1m")
    fill(broker, 1)
    assert (broker.store.min_offset("T", 0), broker.store.max_offset("T", 0)) == (0, COUNT + 1)


def test_a_request_to_delete_what_is_expired_finds_nothing(open_broker: Callable[..., Broker]):
    broker = open_broker(retention_hours=None)
    fill(broker)
    ask(broker, RequestCode.DELETE_EXPIRED_COMMITLOG)
    broker.advance("10d")
    assert broker.store.min_phy_offset == 0


def test_a_request_gives_it_a_retention_time_and_tools_are_told_of_one_without_end(
    open_broker: Callable[..., Broker],
):
    broker = open_broker(retention_hours=None)
    fill(broker)
    told = bytes(cast(bytes, broker.dispatch(Request(RequestCode.GET_BROKER_CONFIG)).body)).decode()
    assert "fileReservedTime=2147483647" in told
    broker.advance("3d")
    assert broker.store.min_phy_offset == 0
    ask(broker, RequestCode.UPDATE_BROKER_CONFIG, body=b"fileReservedTime=24")
    broker.advance("1d")
    assert broker.store.min_phy_offset > 0


def test_messages_that_no_group_has_read_are_named_when_they_go(
    open_broker: Callable[..., Broker], caplog: pytest.LogCaptureFixture
):
    broker = open_broker()
    fill(broker)
    caplog.set_level(logging.WARNING, "seglog.broker")
    broker.advance("4d")
    assert broker.store.min_offset("T", 0) > 0
    assert "messages that no group has read: " in caplog.text
    assert " of topic T" in caplog.text

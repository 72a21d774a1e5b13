"""What is committed of a queue at which nothing was done, and what once more to a broker that has lost it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from seglog import LitePullConsumer, MessageQueue, Producer
from seglog.broker.offsets.offset_history_query import OFFSET_HISTORY
from seglog.broker.settings import BrokerConfig
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.client.links.events import Connected, Lost
from seglog.consumer.listener import ConsumeFrom
from seglog.errors import CannotConnectError, CommitError
from seglog.remoting.codes import RequestCode
from seglog.testing import VirtualBroker
from tests.support.listening import BrokerServer
from tests.support.machine.patience import looks
from tests.support.recording import RecordingLink

FIRST = MessageQueue("T", "broker-a", 0)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        for number in range(5):
            opened.producer().send("T", b"%d" % number, queue_id=0)
        yield opened


def committed(broker: VirtualBroker) -> int | None:
    return broker.offsets.query("g", "T", 0)


def lose(client: Client, broker: VirtualBroker, *, keeps: int | None = None) -> None:
    """Has a broker end and come back without the offsets of its last seconds, as its client sees it."""
    address = client.routes.address_of("broker-a") or ""
    broker.offsets.delete("g")
    if keeps is not None:
        broker.offsets.commit("g", "T", 0, keeps)
    client.on_event(Lost(address, "it was killed"))
    client.on_event(Connected(address))


@pytest.mark.parametrize("keeps", [None, 2])
def test_what_a_broker_has_lost_is_committed_once_more_when_it_is_back(broker, keeps):
    client = make_client(broker.link())
    with LitePullConsumer(client, "g", "T", auto_commit=False) as consumer:
        assert len(consumer.poll()) == 5
        consumer.commit()
        lose(client, broker, keeps=keeps)
        assert committed(broker) == keeps
        consumer.commit()
        assert committed(broker) == 5
        assert consumer.lag()[FIRST] == 0
        lose(client, broker, keeps=keeps)
        broker.advance("10s")
        assert committed(broker) == 5, "by a commit that is due by time"
        lose(client, broker, keeps=keeps)
    assert committed(broker) == 5, "by the end of the consumer"
    client.close()


def test_a_commit_while_the_broker_is_away_is_an_error_and_not_done(broker):
    link = RecordingLink(broker, "c1")
    client = make_client(link)
    with LitePullConsumer(client, "g", "T", auto_commit=False) as consumer:
        consumer.poll()
        consumer.commit()
        client.on_event(Lost(client.routes.address_of("broker-a") or "", "it was killed"))
        link.cut = {RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET}
        with pytest.raises(CommitError, match="not committed everywhere"):
            consumer.commit()
        link.cut = set()
        consumer.commit()
    client.close()


def test_what_another_member_has_committed_since_is_left_when_a_broker_is_back(broker):
    client = make_client(broker.link())
    with LitePullConsumer(client, "g", "T", auto_commit=False) as consumer:
        consumer.poll(count=2)
        consumer.commit()
        lose(client, broker, keeps=4)
        consumer.commit()
        broker.advance("10s")
        assert committed(broker) == 4
    assert committed(broker) == 4
    client.close()


@pytest.mark.parametrize("auto_commit", [True, False])
@pytest.mark.parametrize("kept", [None, 1])
def test_a_member_that_has_polled_nothing_of_a_queue_moves_no_offset_of_another(broker, kept, auto_commit):
    if kept is not None:
        broker.offsets.commit("g", "T", 0, kept)
    client = make_client(broker.link())
    consumer = LitePullConsumer(
        client, "g", "T", auto_commit=auto_commit, consume_from=ConsumeFrom.FIRST, commit_interval_ms=60_000
    )
    consumer.start()
    broker.advance("1s")
    assert consumer.position(FIRST) == (kept or 0)
    broker.offsets.commit("g", "T", 0, 4)  # of the member that has it by now
    consumer.commit()
    assert committed(broker) == 4
    lose(client, broker, keeps=3)
    consumer.commit()
    broker.advance("2m")
    consumer.close()
    assert committed(broker) == 3
    client.close()


def test_where_a_group_begins_is_committed_though_nothing_has_come(broker):
    with LitePullConsumer(broker.link(), "g", "T", consume_from=ConsumeFrom.FIRST) as consumer:
        consumer.start()
        broker.advance("20s")
        assert consumer.committed(FIRST) == 0


def test_a_seek_back_is_committed_and_once_more_to_a_broker_that_has_lost_it(broker):
    broker.offsets.commit("g", "T", 0, 5)
    client = make_client(broker.link())
    with LitePullConsumer(client, "g", "T", auto_commit=False) as consumer:
        consumer.start()
        broker.advance("1s")
        consumer.seek(FIRST, 1)
        consumer.commit()
        assert committed(broker) == 1
        lose(client, broker, keeps=5)
        consumer.commit()
        assert committed(broker) == 1
    client.close()


def answer_of(ask: Callable[[], int | None]) -> int | None:
    """Asks until there is a connection: a client that found the port closed waits before it tries again."""
    for _ in looks("an answer of the broker that is back"):
        with suppress(CannotConnectError):
            return ask()
    raise AssertionError("looks() ends by an error only")


def test_a_broker_behind_a_port_that_comes_back_without_offsets_gets_them_again(tmp_path: Path):
    path, config = tmp_path / "s", BrokerConfig()
    with BrokerServer(path, 0, config) as server:
        port, address = server.port, server.address
        with Producer(address) as producer:
            for number in range(3):
                producer.send("T", b"%d" % number, queue_id=0)
        consumer = LitePullConsumer(
            address, "g", "T", auto_commit=False, consume_from=ConsumeFrom.FIRST, commit_interval_ms=60_000
        )
        while not consumer.poll(5.0):
            continue
        consumer.commit()
        assert consumer.committed(FIRST) == 3
    for kept in (path / "config").glob("consumerOffset.json*"):
        kept.unlink()
    shutil.rmtree(path / OFFSET_HISTORY)  # the broker would restore them from it
    with BrokerServer(path, port, config), consumer:
        assert answer_of(lambda: consumer.committed(FIRST)) is None
        consumer.commit()
        assert consumer.committed(FIRST) == 3


def test_the_position_of_a_queue_that_was_just_assigned_is_where_the_group_goes_on(broker):
    broker.offsets.commit("g", "T", 0, 3)
    link = RecordingLink(broker, "c1")
    with LitePullConsumer(link, "g", auto_commit=False) as consumer:
        link.cut = {RequestCode.QUERY_CONSUMER_OFFSET}
        consumer.assign([FIRST])
        link.cut = set()
        assert consumer.position(FIRST) == 3
        broker.offsets.commit("g", "T", 0, 4)
        broker.advance("2s")  # its pulls rest after what failed
        assert [message.queue_offset for message in consumer.poll()] == [3, 4]

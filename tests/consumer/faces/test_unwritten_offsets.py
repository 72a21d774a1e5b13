"""A close raises if the disk refuses the last offsets, and has left the group all the same."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seglog import (
    AsyncLitePullConsumer,
    AsyncOrderlyConsumer,
    AsyncPushConsumer,
    Broker,
    ConsumeFrom,
    Durability,
    LitePullConsumer,
    MessageModel,
    OrderlyConsumer,
    Producer,
    PushConsumer,
    make_client,
)
from seglog.errors import FullError, SeglogError
from tests.support.crash.failing_files import NEEDS_SPACE, FailingFiles, Fault
from tests.support.faces import driven
from tests.support.machine.patience import patience_s

COUNT = 10
LISTENING = [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer]
POLLED = [LitePullConsumer, AsyncLitePullConsumer]


class FullDisk:
    """A disk that has no space once it is full."""

    def __init__(self) -> None:
        self.fault = Fault(error=errno.ENOSPC, sticky=True, names=NEEDS_SPACE)

    def fill(self) -> None:
        self.fault.at, self.fault.count = 1, 0

    def clear(self) -> None:
        self.fault.at = 0


@pytest.fixture
def disk() -> FullDisk:
    return FullDisk()


@pytest.fixture
def broker(tmp_path: Path, disk: FullDisk) -> Iterator[Broker]:
    opened = Broker.open(
        tmp_path / "s", small=True, durability=Durability.SYNC, files=FailingFiles(disk.fault)
    )
    with Producer(opened) as producer:
        for number in range(COUNT):
            producer.send("T", b"%d" % number, queue_id=0)
    yield opened
    disk.clear()
    opened.close()


def consumed(kind: Any, consumer: Any) -> None:
    if kind in POLLED:
        polled = 0
        while polled < COUNT:
            polled += len(consumer.poll(patience_s(60)))
        consumer.poll(0)  # so they are done
    else:
        assert consumer.run_until_idle(timeout_s=patience_s(60)) == COUNT


@pytest.mark.parametrize("kind", [*LISTENING, *POLLED])
def test_a_close_raises_what_the_disk_refuses_and_has_left_the_group(
    broker: Broker, disk: FullDisk, kind: Any
):
    listener = () if kind in POLLED else (lambda _message: None,)
    with driven(kind, broker, "g", "T", *listener, consume_from=ConsumeFrom.FIRST) as consumer:
        consumed(kind, consumer)
        broker.offsets.commit("h", "T", 0, 1)  # of a listener's consumer run_until_idle() has committed all
        disk.fill()
        with pytest.raises(FullError):
            consumer.close()
        assert broker.clients.consumers("g") is None
        consumer.close()  # which does nothing
    disk.clear()
    broker.settle().wait()
    assert broker.offsets.query("g", "T", 0) == COUNT


def test_a_block_that_ends_raises_it_too_and_an_error_of_the_block_is_kept(broker: Broker, disk: FullDisk):
    def block() -> None:
        with LitePullConsumer(broker, "g", "T", consume_from=ConsumeFrom.FIRST) as consumer:
            consumed(LitePullConsumer, consumer)
            disk.fill()
            raise ValueError("of the application")

    with pytest.raises(FullError) as error:
        block()
    assert isinstance(error.value.__context__, ValueError)


def test_a_client_that_closes_its_consumers_raises_it(broker: Broker, disk: FullDisk):
    client = make_client(broker)
    consumer = LitePullConsumer(client, "g", "T", consume_from=ConsumeFrom.FIRST)
    consumed(LitePullConsumer, consumer)
    disk.fill()
    with pytest.raises(FullError):
        client.close()
    client.close()


def test_what_a_broadcasting_consumer_cannot_write_is_raised(broker: Broker, tmp_path: Path):
    folder = tmp_path / "offsets"
    consumer = LitePullConsumer(
        broker,
        "g",
        "T",
        message_model=MessageModel.BROADCASTING,
        consume_from=ConsumeFrom.FIRST,
        offset_folder=folder,
    )
    consumed(LitePullConsumer, consumer)
    path = consumer._member.offset_path
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / f"{path.name}.tmp").mkdir()  # so it cannot be written
    with pytest.raises(SeglogError, match=r"offsets\.json"):
        consumer.close()


def test_a_close_after_that_of_the_broker_writes_nothing_into_its_store(broker: Broker, disk: FullDisk):
    consumer = LitePullConsumer(broker, "g", "T", consume_from=ConsumeFrom.FIRST)
    consumed(LitePullConsumer, consumer)
    broker.offsets.commit("g", "T", 0, 3)
    disk.fill()
    with pytest.raises(FullError):
        broker.close()
    broker.close()  # it is closed, and said so
    disk.fault.fired.clear()
    consumer.close()
    assert not disk.fault.fired

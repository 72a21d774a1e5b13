"""Consumers that broadcast: each consumes all queues, and goes on by a file on its machine."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.broker.tables import TopicConfig
from seglog.client.connect import make_client
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.offsets.local_offset_store import MOST_BYTES
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.errors import ConfigError, FileKindError, InvalidArgumentError
from seglog.remoting.bodies import LockBatchBody
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.heartbeat import MessageModel
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import RealFiles
from seglog.testing import ServedBroker
from tests.support.consumers import Send
from tests.support.recording import RecordingLink

ABOVE_64_BITS = b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:9223372036854775808}}'
BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


@pytest.fixture
def broadcast(tmp_path: Path) -> dict[str, Any]:
    return {
        "consume_from": ConsumeFrom.FIRST,
        "message_model": MessageModel.BROADCASTING,
        "offset_folder": tmp_path / "offsets",
    }


def bodies(seen: list[Any]) -> list[bytes]:
    return sorted(bytes(message.body) for message in seen)


@BOTH
def test_each_member_consumes_all_queues(broker: Broker, send: Send, kind: Any, broadcast: dict[str, Any]):
    for queue_id in range(4):
        send(2, queue_id=queue_id)
    everything = sorted([b"0", b"1"] * 4)
    first: list[Any] = []
    second: list[Any] = []
    with make_client(broker, instance_name="one") as one, make_client(broker, instance_name="two") as two:
        places = ((one, first), (two, second))
        members = [kind(client, "g", "T", seen.append, **broadcast) for client, seen in places]
        for member in members:
            member.run_until_idle()
            assert len(member.queues) == 4
        assert bodies(first) == bodies(second) == everything
        assert broker.offsets.query("g", "T", 0) is None, "the broker is told no offset"


@BOTH
def test_s4_07_offsets_are_in_a_file_on_the_machine_and_a_restart_goes_on(
    broker: Broker, send: Send, kind: Any, tmp_path: Path, broadcast: dict[str, Any]
):
    send(3)
    seen: list[Any] = []
    with kind(broker, "g", "T", seen.append, **broadcast) as consumer:
        consumer.run_until_idle()
        assert consumer.client_id == "127.0.0.1@DEFAULT"
    file = tmp_path / "offsets" / "127.0.0.1@DEFAULT" / "g" / "offsets.json"
    assert b'"queueId":0,\n\t\t\t"topic":"T"\n\t\t}:3' in file.read_bytes()
    send(2)
    seen.clear()
    with kind(broker, "g", "T", seen.append, **broadcast) as consumer:
        consumer.run_until_idle()
    assert bodies(seen) == [b"0", b"1"]
    assert b"}:3" in file.with_name("offsets.json.bak").read_bytes()
    assert b"}:5" in file.read_bytes()


def test_s4_07_a_damaged_file_is_what_its_backup_says(
    broker: Broker, send: Send, tmp_path: Path, broadcast: dict[str, Any]
):
    seen: list[Any] = []
    for _ in range(2):
        send(1)
        with PushConsumer(broker, "g", "T", seen.append, **broadcast) as consumer:
            consumer.run_until_idle()
    file = tmp_path / "offsets" / "127.0.0.1@DEFAULT" / "g" / "offsets.json"
    file.write_bytes(b"{half")
    with PushConsumer(broker, "g", "T", seen.append, **broadcast) as consumer:
        consumer.run_until_idle()
    assert [message.queue_offset for message in seen] == [0, 1, 1]


def test_s4_07_without_a_whole_file_it_does_not_start_and_says_why(
    broker: Broker, send: Send, tmp_path: Path, broadcast: dict[str, Any]
):
    send(1)
    folder = tmp_path / "offsets" / "127.0.0.1@DEFAULT" / "g"
    folder.mkdir(parents=True)
    (folder / "offsets.json").write_bytes(b"{half")
    (folder / "offsets.json.bak").write_bytes(b"{half")
    seen: list[Any] = []
    with PushConsumer(broker, "g", "T", seen.append, **broadcast) as consumer:
        with pytest.raises(ConfigError, match=r"offsets\.json nor its backup can be read") as caught:
            consumer.start()
        broker.advance("3s")
        assert "move both away to start with an empty table" in caught.value.help
        assert (seen, consumer.queues) == ([], ())
        assert (folder / "offsets.json").read_bytes() == b"{half"
        for file in folder.iterdir():
            file.unlink()
        consumer.start()
        broker.advance("3s")
    assert [message.queue_offset for message in seen] == [0]


@pytest.mark.parametrize(
    ("kind", "put"),
    [
        (FileKindError, os.mkfifo),
        (FileKindError, lambda path: path.symlink_to("/dev/zero")),
        (ConfigError, Path.mkdir),
        (ConfigError, lambda path: path.write_bytes(b" " * (MOST_BYTES + 1))),
        (ConfigError, lambda path: path.write_bytes(ABOVE_64_BITS)),
    ],
    ids=["a pipe", "an endless device", "a folder", "a long file", "an offset that no queue has"],
)
@pytest.mark.parametrize("name", ["offsets.json", "offsets.json.bak"])
def test_what_is_no_file_of_offsets_ends_a_start_and_keeps_no_other_client_waiting(
    tmp_path: Path, broadcast: dict[str, Any], name: str, kind: type[Exception], put: Any
):
    with ServedBroker.at(tmp_path / "served") as server, make_client(server.address) as client:
        server.producer().send("T", b"x")
        folder = tmp_path / "offsets" / client.client_id / "g"
        folder.mkdir(parents=True)
        put(folder / name)
        seen: list[Any] = []
        with PushConsumer(client, "g", "T", seen.append, **broadcast) as consumer:
            with pytest.raises(kind, match=r"offsets\.json"):
                consumer.start()
            assert server.producer("other").send("T", b"y").queue.topic == "T"
    assert seen == []


def test_the_file_is_read_once_however_many_queues_there_are(
    broker: Broker, send: Send, broadcast: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    read: list[str] = []
    read_file = RealFiles.read_file

    def note(files: RealFiles, path: Path) -> bytes:
        read.append(path.name)
        return read_file(files, path)

    monkeypatch.setattr(RealFiles, "read_file", note)
    broker.topics.put(TopicConfig("T", 64, 64))
    for queue_id in range(64):
        send(1, queue_id=queue_id)
    seen: list[Any] = []
    for told in (64, 0):
        seen.clear()
        read.clear()
        with PushConsumer(broker, "g", "T", seen.append, **broadcast) as consumer:
            consumer.run_until_idle()
            assert len(consumer.queues) == 64
        assert len(seen) == told
    assert read == ["offsets.json"]


def test_s4_07_other_queues_in_the_file_stay(
    broker: Broker, send: Send, tmp_path: Path, broadcast: dict[str, Any]
):
    send(1, topic="A")
    send(1, topic="B")
    for topic in ("A", "B"):
        with PushConsumer(broker, "g", topic, lambda _: None, **broadcast) as consumer:
            consumer.run_until_idle()
    text = (tmp_path / "offsets" / "127.0.0.1@DEFAULT" / "g" / "offsets.json").read_text()
    assert '"topic":"A"' in text
    assert '"topic":"B"' in text


def test_s4_12_offsets_are_written_while_it_consumes(
    broker: Broker, send: Send, tmp_path: Path, broadcast: dict[str, Any]
):
    send(2)
    with PushConsumer(broker, "g", "T", lambda _: None, **broadcast) as consumer:
        consumer.start()
        broker.advance("10s")
        file = tmp_path / "offsets" / "127.0.0.1@DEFAULT" / "g" / "offsets.json"
        assert b"}:2" in file.read_bytes()


def test_a_client_whose_name_is_no_folder_is_refused(broker: Broker, broadcast: dict[str, Any]):
    with (
        make_client(broker, client_id="../../etc") as client,
        pytest.raises(InvalidArgumentError, match="a name for a folder"),
    ):
        PushConsumer(client, "g", "T", print, **broadcast)


def test_a_folder_that_is_none_is_refused(broker: Broker, broadcast: dict[str, Any]):
    with pytest.raises(InvalidArgumentError, match="offset_folder"):
        PushConsumer(broker, "g", "T", print, **{**broadcast, "offset_folder": 3})


def test_s4_06_a_client_that_broadcasts_subscribes_to_no_retry_topic(
    broker: Broker, send: Send, broadcast: dict[str, Any]
):
    send(1)
    link = RecordingLink(broker)
    with PushConsumer(link, "g", "T", lambda _: None, **broadcast) as consumer:
        consumer.run_until_idle()
        group = broker.clients.consumers("g")
        assert group is not None
        assert group.message_model is MessageModel.BROADCASTING
        assert set(group.subscriptions) == {"T"}
    with PushConsumer(broker, "h", "T", lambda _: None) as consumer:
        consumer.run_until_idle()
        group = broker.clients.consumers("h")
        assert group is not None
        assert set(group.subscriptions) == {"T", "%RETRY%h"}


def test_s4_30_a_message_that_fails_is_dropped_with_a_warning(
    broker: Broker, send: Send, broadcast: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    send(3)
    seen: list[int] = []

    def listener(message: Any) -> Consume | None:
        seen.append(message.queue_offset)
        return Consume.RECONSUME_LATER if message.queue_offset == 1 else None

    link = RecordingLink(broker)
    with caplog.at_level(logging.WARNING), PushConsumer(link, "g", "T", listener, **broadcast) as consumer:
        consumer.run_until_idle()
        broker.advance("3h")
        assert consumer.counts.failed == 1
    assert seen == [0, 1, 2]
    assert "dropped, since group g broadcasts: " in caplog.text
    assert link.moments(RequestCode.CONSUMER_SEND_MSG_BACK) == []


def test_s2_15_in_order_a_client_that_broadcasts_needs_no_lock(
    broker: Broker, send: Send, broadcast: dict[str, Any]
):
    send(3)
    link = RecordingLink(broker)
    seen: list[int] = []

    def listener(message: Any) -> Consume | None:
        seen.append(message.queue_offset)
        again = message.queue_offset == 1 and seen.count(1) < 3
        return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT if again else None

    other = LockBatchBody("g", "other", frozenset([MessageQueue("T", "broker-a", 0)]))
    broker.dispatch(Request(RequestCode.LOCK_BATCH_MQ, body=other))
    with OrderlyConsumer(link, "g", "T", listener, **broadcast) as consumer:
        consumer.start()
        broker.advance("10s")
    assert seen == [0, 1, 1, 1, 2], "what fails in order suspends its queue all the same"
    assert link.moments(RequestCode.LOCK_BATCH_MQ) == link.moments(RequestCode.UNLOCK_BATCH_MQ) == []

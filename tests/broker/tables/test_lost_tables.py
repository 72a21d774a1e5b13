"""A table that is gone is not believed where the store proves what it held: opening restores it as repair."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import ConsumeFrom, LitePullConsumer, Producer
from seglog.broker.broker import Broker
from seglog.broker.offsets.offset_history_query import OFFSET_HISTORY
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables import TopicConfig
from seglog.clock import SystemClock
from seglog.doctor.repair.repair import repair_store
from seglog.errors import ConfigError
from seglog.storage.files import RealFiles
from tests.support.brokers import open_broker

GONE: dict[str, Callable[[Path], object]] = {
    "gone": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "blank": lambda file: file.write_bytes(b" \n"),
}
DAMAGED = {"cut": b"{", "another": b"[1]", "no table": b'{"offsetTable": 7}'}
LOSSES = pytest.mark.parametrize("lose", GONE.values(), ids=GONE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store whose group has done 8 of 12 messages; its topics are plain, of batches and compacted."""
    path = tmp_path / "store"
    with open_broker(path) as broker, Producer(broker) as producer:
        broker.topics.put(TopicConfig("B", 1, 1, attributes={"queue.type": "BatchCQ"}))
        producer.send_batch("B", [b"1", b"2"], queue_id=0)
        for number in range(12):
            producer.send("T", b"%d" % number, queue_id=number % 4)
        broker.groups.find_all(("g", "other"))
        for number in range(4):
            broker.offsets.commit("g", "T", number, 2)
        broker.offsets.commit("other", "T", 1, 3)
        broker.offsets.commit("deleted", "T", 1, 3)
        broker.offsets.delete("deleted")
    return path


def lose_table(path: Path, name: str, lose: Callable[[Path], object]) -> None:
    file = path / "config" / name
    file.with_name(f"{name}.bak").unlink(missing_ok=True)
    lose(file)


@LOSSES
def test_offsets_that_are_gone_are_restored_from_their_history_by_opening_as_by_repair(
    path: Path, lose: Callable[[Path], object], caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    lose_table(path, "consumerOffset.json", lose)
    shutil.copytree(path, tmp_path / "repaired")
    caplog.set_level(logging.WARNING, "seglog.broker")
    with open_broker(path) as broker:
        restored = broker.offsets.all()
    assert restored == {**{("g", "T", number): 2 for number in range(4)}, ("other", "T", 1): 3}
    assert "5 offsets of 2 groups restored from the history of offsets" in caplog.text
    caplog.clear()
    with open_broker(path) as broker:
        assert broker.offsets.all() == restored, "they were saved"
    assert caplog.text == ""
    repair_store(RealFiles(), tmp_path / "repaired", SystemClock(), lambda _plan: True)
    with open_broker(tmp_path / "repaired") as broker:
        assert broker.offsets.all() == restored


@LOSSES
@pytest.mark.parametrize("consume_from", [ConsumeFrom.FIRST, ConsumeFrom.LAST])
def test_a_group_whose_offsets_are_gone_skips_nothing_and_does_nothing_twice(
    path: Path, lose: Callable[[Path], object], consume_from: ConsumeFrom
):
    lose_table(path, "consumerOffset.json", lose)
    with (
        open_broker(path) as broker,
        LitePullConsumer(broker, "g", "T", consume_from=consume_from) as consumer,
    ):
        seen: list[int] = []
        while len(seen) < 4:
            seen += [int(message.body) for message in consumer.poll()]
    assert sorted(seen) == [8, 9, 10, 11]


@LOSSES
def test_topics_that_are_gone_keep_their_kind_and_the_number_of_their_queues_by_opening_as_by_repair(
    path: Path, lose: Callable[[Path], object], tmp_path: Path
):
    lose_table(path, "topics.json", lose)
    shutil.copytree(path, tmp_path / "repaired")
    repair_store(RealFiles(), tmp_path / "repaired", SystemClock(), lambda _plan: True)
    for again in (path, path, tmp_path / "repaired"):
        with open_broker(again) as broker:
            plain, batch = broker.topics.get("T"), broker.topics.get("B")
            assert plain is not None
            assert batch is not None
            assert (plain.read_queue_nums, plain.attributes) == (4, {})
            assert (batch.read_queue_nums, batch.attributes) == (1, {"queue.type": "BatchCQ"})


@LOSSES
def test_groups_whose_table_is_gone_may_consume_where_their_offsets_name_them(
    path: Path, lose: Callable[[Path], object], caplog: pytest.LogCaptureFixture
):
    lose_table(path, "subscriptionGroup.json", lose)
    caplog.set_level(logging.INFO, "seglog.broker")
    strict = BrokerConfig(auto_create_groups=False)
    for _time in range(2):
        with open_broker(path, config=strict) as broker:
            assert broker.groups.find("g") is not None
            assert broker.groups.find("other") is not None
            assert broker.groups.find("deleted") is None
            assert broker.groups.find("new") is None
    assert caplog.text.count("2 groups that have offsets got the usual settings") == 1


def test_a_group_that_was_deleted_stays_deleted_where_its_offsets_are_left(path: Path):
    with open_broker(path) as broker:
        broker.groups.delete("g")
    with open_broker(path, config=BrokerConfig(auto_create_groups=False)) as broker:
        assert broker.groups.find("g") is None
        assert broker.groups.find("other") is not None


@LOSSES
@pytest.mark.parametrize("is_served", [False, True], ids=["new", "of RocketMQ"])
def test_offsets_that_a_rocketmq_had_saved_and_no_history_has_are_missed(
    path: Path, lose: Callable[[Path], object], is_served: bool, caplog: pytest.LogCaptureFixture
):
    shutil.rmtree(path / OFFSET_HISTORY)
    lose_table(path, "consumerOffset.json", lose)
    if is_served:
        (path / "config" / "consumerOrderInfo.json").write_text("{}")
    caplog.set_level(logging.WARNING, "seglog.broker")
    with open_broker(path) as broker:
        assert broker.offsets.all() == {}
    assert ("where 2 groups of the store stood is not known" in caplog.text) is is_served


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_offsets_that_cannot_be_read_are_refused_with_the_command_that_restores_them(
    path: Path, damage: bytes
):
    lose_table(path, "consumerOffset.json", lambda file: file.write_bytes(damage))
    with pytest.raises(ConfigError) as refused:
        Broker.open(path)
    assert "`seglog repair STORE`" in refused.value.help
    repair_store(RealFiles(), path, SystemClock(), lambda _plan: True)
    with open_broker(path) as broker:
        assert broker.offsets.query("g", "T", 0) == 2

"""What ``repr`` shows of the objects that a user meets: short, with their place, and also after their end."""

from __future__ import annotations

import shutil

import pytest

import seglog
from seglog import (
    Broker,
    Listener,
    LitePullConsumer,
    MessageStore,
    OrderlyConsumer,
    Producer,
    PushConsumer,
    Server,
)
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import SystemClock
from seglog.doctor.check.check import check_store
from seglog.doctor.check.verify import verify_store
from seglog.doctor.repair.repair import plan_repair
from seglog.storage.files.files import RealFiles
from tests.support.material.stores import SMALL, new_clock

MOST_CHARACTERS = 300
NAMES = [name for name in seglog.__all__ if name != "__version__"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s"


def test_a_store_shows_its_place_and_whether_it_is_open(path):
    with MessageStore.open(path, **SMALL) as store:
        assert repr(store) == f"<MessageStore {path}>"
        with MessageStore.open(path, read_only=True) as reader:
            assert repr(reader) == f"<MessageStore {path} read-only>"
    assert repr(store) == f"<MessageStore {path} closed>"


def test_what_a_store_gives_is_short_and_stays_so_when_store_and_files_are_gone(path):
    with MessageStore.open(path, clock=new_clock(), **SMALL) as store:
        put = store.put("T", b"x" * 2000, tags="A", keys="k")
        found = store.get("T", 0, 0)
        made = put, found, found.messages[0], store.query("T", "k")[0], store.queue("T", 0), store.recovery
    shutil.rmtree(path)
    shown = list(map(repr, made))
    assert max(map(len, shown)) < MOST_CHARACTERS
    assert shown[2] == shown[3] == f"<Message T/0/0 tags='A' body={b'x' * 64!r} and 1936 more bytes>"
    assert shown[4] == "<QueueView T/0 from 0 to 1>"
    assert "queue_offset=0" in shown[0]
    assert "records=<1>" in shown[1]


def test_a_message_whose_properties_are_damaged_is_shown_all_the_same(path):
    with MessageStore.open(path, **SMALL) as store:
        store.append("T", 0, b"x", properties=b"TAGS\x01\xff\xfe\x02\x01\x02broken", tags_code=0)
        assert repr(store.get("T", 0, 0).messages[0]).startswith("<Message T/0/0 tags=")


def test_the_objects_of_a_broker_show_what_they_are_and_when_they_were_closed(path):
    with Broker.open(path, config=BrokerConfig(address="127.0.0.1:1"), **SMALL) as broker:
        with Server(broker, listener := Listener(port=0)) as server:
            assert repr(listener) == f"<Listener at {listener.address}>"
            assert repr(server) == f"<Server at {listener.address}>"
        assert repr(server) == f"<Server at {listener.address} closed>"
        with Producer(broker, "p") as producer:
            sent = producer.send("T", b"x")
            assert repr(producer).startswith("<Producer p of client ")
        assert len(repr(sent)) < MOST_CHARACTERS
        for kind in PushConsumer, OrderlyConsumer, LitePullConsumer:
            with kind(broker, "g", "T", *([] if kind is LitePullConsumer else [print])) as consumer:
                assert repr(consumer).startswith(f"<{kind.__name__} g of client ")
            assert repr(consumer).endswith(" closed>")
        tables = broker.topics, broker.groups, broker.offsets
        kinds = [repr(table).partition(" of ")[0] for table in tables]
        assert kinds == ["<TopicTable", "<GroupTable", "<ConsumerOffsets"]
        assert repr(broker).endswith(f"over {path}>")
    assert repr(broker).endswith(f"over {path} closed>")


def test_what_check_verify_and_repair_return_is_a_line(path):
    with MessageStore.open(path, clock=new_clock(), **SMALL) as store:
        store.put_batch("T", [b"x" * 100] * 9)
    report, plan = check_store(path), plan_repair(RealFiles(), path, SystemClock())
    assert repr(report) == f"<CheckReport of {path}: clean, {len(report.findings)} findings>"
    assert repr(plan) == f"<Plan of {path}: {len(plan.actions)} actions, {plan.saved} messages saved>"
    assert repr(verify_store(path)).startswith("<VerifyReport of ")


def test_every_public_class_shows_more_than_its_address_in_memory():
    classes = [each for each in map(seglog.__getattr__, NAMES) if isinstance(each, type)]
    assert len(classes) > 25
    plain = {each.__name__ for each in classes if vars(object)["__repr__"] == each.__repr__}
    assert plain == {"Clock"}, "it is a protocol"

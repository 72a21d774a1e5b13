"""Public calls of brokers and clients refuse what they cannot work with, and name the argument."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import fields
from typing import Any

import pytest

from seglog import (
    Broker,
    Durability,
    LitePullConsumer,
    LocalLink,
    MessageStore,
    NewMessage,
    OrderlyConsumer,
    Producer,
    PushConsumer,
)
from seglog.broker.settings.config import BrokerConfig, GuardPolicy
from seglog.client.connect import make_client
from seglog.client.home import VirtualHome
from seglog.client.links.addresses import parse_address
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.settings import ConsumerOptions, ConsumerSettings, LiteOptions
from seglog.errors import InvalidArgumentError
from seglog.remoting.subscription import Subscription
from seglog.testing import VirtualBroker
from tests.support.machine.fast_paths import fast_paths_of
from tests.support.machine.kernels import BOTH
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock
from tests.support.rows import every_row
from tests.support.wrong_arguments import (
    NO_BATCHES,
    NO_BODIES,
    NO_CLOCKS,
    NO_COUNTS,
    NO_DURABILITY,
    NO_FILES,
    NO_FLAGS,
    NO_FOLDERS,
    NO_INTEGERS,
    NO_KEYS,
    NO_PROPERTIES,
    NO_TAGS,
    NO_TEXTS,
    NO_TIMES,
    WORDS,
    refused,
    refuses_every_value,
)

CONFIG = {
    "compatible_with": ("5.4", "", "4.9.8", 5, None),
    "retention_policy": ("REFUSE", "", 5, None, GuardPolicy.PARK),
    "broker_name": NO_TEXTS,
    "address": NO_TEXTS,
    "auto_create_topics": NO_FLAGS,
    "max_message_size_bytes": NO_COUNTS,
    "persist_interval_ms": NO_COUNTS,
    "hot_bytes": NO_COUNTS,
    "retention_delete_hours": ("4", 4, (24,), (-1,), ("4",), (True,)),
}
BROKER = {
    "path": (5, None),
    "config": ("refuse", {"broker_name": "b"}),
    "background": NO_FLAGS,
    "forget_locks": NO_FLAGS,
    "create": NO_FLAGS,
    "durability": NO_DURABILITY,
    "segment_size_bytes": (*NO_COUNTS, 0),
    "queue_file_size_bytes": (*NO_COUNTS, 0),
    "record_crc": NO_FLAGS,
    "small": NO_FLAGS,
    "follow": NO_FOLDERS,
    "clock": NO_CLOCKS,
    "liveness_clock": NO_CLOCKS,
    "before": (5, "refuse", Broker, asyncio.sleep),
    "files": NO_FILES,
}
PRODUCER = {
    "group": (*NO_TEXTS, ""),
    "new_topic_queue_nums": (*NO_COUNTS, 0),
    "first_turn": NO_COUNTS,
    "clock": NO_CLOCKS,
    "ids": (5, "id", VirtualClock()),
    "trace": (*NO_FLAGS, None),
    "encode": (5, "json", b"json", Durability.SYNC),
}
SEND = {
    "topic": NO_TEXTS,
    "body": (*NO_BODIES, None),
    "tags": NO_TAGS,
    "keys": NO_KEYS,
    "properties": NO_PROPERTIES,
    "flag": (*NO_INTEGERS, 2**31),
    "queue_id": (*NO_INTEGERS, -1, 99),
    "sharding_key": NO_TEXTS,
    "wait_for_disk": NO_FLAGS,
    "delay_level": (*NO_COUNTS, 2**31),
    "ttl_ms": NO_COUNTS,
    "timeout_ms": (*NO_TIMES, 0, -1, math.inf, 1e30, 2**31),
}
SEND_BATCH = {
    name: SEND[name] for name in ("topic", "queue_id", "sharding_key", "wait_for_disk", "timeout_ms")
}
SEND_BATCH["messages"] = NO_BATCHES
OF_MESSAGES = {"tags": NO_TAGS, "keys": NO_KEYS, "properties": NO_PROPERTIES}
CONSUMER = {
    "group": (*NO_TEXTS, ""),
    "subscription": (
        *(5, None, b"T", {5: "*"}, {"T": 5}, {"T": "||"}, {"T": "\ud800"}, {"T": "A || b\x01"}),
        *({"T": "\x02"}, {"T": Subscription.by_sql("a = '\udfff'")}, {"\ud800": "*"}),
    ),
    "listener": (5, None, "seen"),
    "decode": (5, "json", b"json", asyncio.sleep),
    "consume_from": ("first", "", 5, None, Durability.SYNC),
    "consume_timestamp": (5, "", "2017", "20171301000000", b"20170101000000", Durability.SYNC),
    "message_model": ("broadcast", "", 5, None, Durability.SYNC),
    "offset_folder": (5, b"folder", ["folder"], Durability.SYNC),
    "pull_count": (*NO_COUNTS, 0),
    "pull_bytes": (*NO_COUNTS, 0),
    "suspend_ms": (*NO_TIMES, -1),
    "max_reconsume_times": (*(each for each in NO_COUNTS if each != -1), -2),
    "threads": (*NO_COUNTS, 0, 1_001),
    "max_span": (*NO_COUNTS, 0, 65_536),
    "max_cached": (*NO_COUNTS, 0, 65_536),
    "max_cached_bytes": (*NO_COUNTS, (1 << 20) - 1, (1 << 30) + 1),
    "pull_interval_ms": (*NO_COUNTS, 65_536),
    "strategy": (5, "AVG", None),
    "batch_size": (*NO_COUNTS, 0, 1_025),
    "consume_timeout_ms": (*NO_COUNTS, 0),
    "offset_illegal": ("", "DROP", 5, None),
    "max_cached_topic": (*NO_COUNTS, 0, 6_553_501),
    "max_cached_topic_bytes": (*NO_COUNTS, (1 << 20) - 1),
    "commit_interval_ms": (*NO_COUNTS, 999),
    "trace": (*NO_FLAGS, None),
}
LITE = {name: CONSUMER[name] for name in ("group", *LiteOptions.__annotations__) if name in CONSUMER} | {
    "subscription": tuple(each for each in CONSUMER["subscription"] if each is not None),
    "auto_commit": (*NO_FLAGS, None),
    "max_cached_all": (*NO_COUNTS, 0),
}
NO_TARGETS = (5, None, b"127.0.0.1:9876", object(), ["127.0.0.1:9876"], Broker, LocalLink)
NO_NAMES = (*NO_TEXTS, "", " ", "\ud800", "a\udfff")
MAKE_CLIENT = {
    "target": NO_TARGETS,
    "home": (5, "home", VirtualClock(), VirtualHome),
    "in_loop": (*NO_FLAGS, None),
    "client_id": NO_NAMES,
    "instance_name": NO_NAMES,
    "unit_name": (*NO_TEXTS, "\ud800"),
    "keeps_its_name": (*NO_FLAGS, None),
    "principal": NO_TEXTS,
}
LINK = {"broker": (5, None, "127.0.0.1:9876", Broker), "client_id": NO_NAMES, "principal": NO_TEXTS}
CLIENT_WORDS = WORDS | {"queue_id": "queue_id|no queue", "subscription": "subscription|no tag|topic"}


@pytest.fixture(params=BOTH, scope="module")
def store(request, tmp_path_factory):
    with fast_paths_of(request.param):
        folder = tmp_path_factory.mktemp("store")
        with MessageStore.open(folder / "s", clock=new_clock(), **SMALL, **SMALL_INDEX) as opened:
            opened.put("T", b"first", tags="TagA", keys="k")
            opened.put("T", b"second")  # by the fast path
            yield opened


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with VirtualBroker.at(tmp_path_factory.mktemp("broker") / "s") as opened:
        opened.producer().send("T", b"first")
        yield opened


def refused_by_client(name):
    return refused(name, CLIENT_WORDS)


def test_settings_of_a_broker_name_the_one_that_they_refuse():
    refuses_every_value(CONFIG, lambda name, wrong: BrokerConfig(**{name: wrong}))


def test_opening_a_broker_names_the_argument_that_it_refuses(tmp_path):
    def open_broker(name: str, wrong: Any) -> None:
        try:
            Broker.open(**{"path": tmp_path / "s", name: wrong}).close()
        finally:
            assert list(tmp_path.iterdir()) == []

    refuses_every_value(BROKER, open_broker)


@pytest.mark.parametrize("by", [-1, math.nan, 1.5, True, None, "soon", "-1s", b"1s"])
def test_time_moves_by_durations_only(broker, by):
    with pytest.raises(InvalidArgumentError, match=r"^by=|duration"):
        broker.advance(by)


@pytest.mark.parametrize(("call", "table"), [("send", SEND), ("send_batch", SEND_BATCH)])
def test_a_producer_names_the_argument_that_it_refuses(broker, call, table):
    end = broker.store.max_phy_offset
    send = getattr(broker.producer(), call)
    right = {"topic": "T", "body": b"x"} if call == "send" else {"topic": "T", "messages": [b"x"]}

    def try_to_send(name: str, wrong: Any) -> None:
        try:
            send(**right | {name: wrong})
        finally:
            assert broker.store.max_phy_offset == end

    refuses_every_value(table, try_to_send, refused_by_client)


def test_making_a_producer_names_the_argument_that_it_refuses(broker):
    refuses_every_value(
        PRODUCER, lambda name, wrong: Producer(broker.link(), **{name: wrong}), refused_by_client
    )


@pytest.mark.parametrize(
    ("make", "taken", "table"), [(make_client, "target", MAKE_CLIENT), (LocalLink, "broker", LINK)]
)
def test_making_a_client_or_its_link_names_the_argument_that_it_refuses(broker, make, taken, table):
    refuses_every_value(table, lambda name, wrong: make(**{taken: broker, name: wrong}))


@pytest.mark.parametrize("names", [{"client_id": "c"}, {"principal": "p"}, {"instance_name": "a"}])
def test_a_client_of_a_link_takes_no_name_that_it_could_not_give_to_the_link(broker, names):
    with pytest.raises(InvalidArgumentError, match=r"one id already|principal="):
        make_client(broker.link(), **names)


NO_ADDRESSES = (
    *("kafka://127.0.0.1:9092", "http://a:1;b:2", "a:1,b:2", "a", "a:", "a:0", "a:65536", ":1", "[]:1"),
    *("a b:1", "u@a:1", "a:1/x", "a:b:1", "a:\u0661", "a:" + "9" * 5000, "x" * 256 + ":1", "", ";", "\0:1"),
)


@pytest.mark.parametrize("kind", [Producer, PushConsumer])
def test_what_is_no_address_is_refused_at_once_and_not_repeated_whole(kind):
    with every_row() as row:
        for target in NO_ADDRESSES:
            with row(repr(target)[:40]):
                with pytest.raises(InvalidArgumentError, match=r"address|name server") as refusal:
                    kind(target, *(() if kind is Producer else ("G", "T", print)))
                assert len(str(refusal.value)) < 120
                assert "127.0.0.1:9876" in refusal.value.help


@pytest.mark.parametrize(
    "address", ["a:1", "a-b.c_d:65535", "127.0.0.1:9876", "[::1]:1", "::1:1", "[fe80::1%eth0]:1", "münchen:1"]
)
def test_what_a_host_may_be_called_is_an_address(address):
    host, port = parse_address(address)
    assert address in (f"{host}:{port}", f"[{host}]:{port}")


def test_addresses_in_a_list_are_answered_with_how_they_are_written():
    addresses: Any = ["one:9876", "other:9876"]
    with pytest.raises(InvalidArgumentError) as refusal:
        make_client(addresses)
    assert '"one:9876;other:9876"' in refusal.value.help


def test_making_a_consumer_names_the_argument_that_it_refuses(broker):
    right: dict[str, Any] = {"group": "G", "subscription": "T", "listener": print}
    refuses_every_value(
        CONSUMER,
        lambda name, wrong: OrderlyConsumer(LocalLink(broker), **right | {name: wrong}),
        refused_by_client,
    )


def test_s4_04_making_a_consumer_that_is_polled_names_the_argument_that_it_refuses(broker):
    right = {"group": "G", "subscription": "T"}
    refuses_every_value(
        LITE,
        lambda name, wrong: LitePullConsumer(LocalLink(broker), **right | {name: wrong}),
        refused_by_client,
    )


@pytest.mark.parametrize("call", ["put_batch", "send_batch"])
def test_a_batch_names_what_it_refuses_of_a_message(store, broker, call):
    made = broker.producer().send_batch if call == "send_batch" else store.put_batch
    ends = broker.store.max_phy_offset, store.max_phy_offset

    def try_a_batch(name: str, wrong: Any) -> None:
        try:
            made("T", [b"x", NewMessage(b"y", **{name: wrong})])
        finally:
            assert (broker.store.max_phy_offset, store.max_phy_offset) == ends

    refuses_every_value(OF_MESSAGES, try_a_batch)


def test_the_tables_have_every_argument_of_clients_and_brokers():
    taken: dict[str, tuple[Callable[..., object], AbstractSet[str]]] = {
        "producer": (Producer, PRODUCER.keys() | {"target"}),
        "send": (Producer.send, SEND.keys() | {"self"}),
        "send_batch": (Producer.send_batch, SEND_BATCH.keys() | {"self"}),
        "client": (make_client, MAKE_CLIENT.keys()),
        "link": (LocalLink, LINK.keys() | {"on_notice", "on_request"}),
        "open": (Broker.open, BROKER.keys()),
    }
    for name, (call, expected) in taken.items():
        assert set(inspect.signature(call).parameters) == expected, name
    options = ConsumerOptions.__annotations__.keys()
    assert options | {"group", "subscription", "listener", "decode"} == CONSUMER.keys()
    lite = LiteOptions.__annotations__.keys()
    assert lite | {"group", "subscription"} == LITE.keys()
    settings = {field.name for field in fields(ConsumerSettings)}
    assert options | lite | {"group", "subscriptions", "decode"} == settings


def test_a_broker_takes_the_texts_of_enumerations_as_the_store_does(tmp_path):
    durability: Any = "sync"
    consume_from: Any = "CONSUME_FROM_FIRST_OFFSET"
    with Broker.open(tmp_path / "s", durability=durability, background=False, clock=VirtualClock()) as broker:
        sent = Producer(LocalLink(broker)).send("T", b"x")
        assert sent.durability is Durability.SYNC
        seen = []
        consumer = OrderlyConsumer(LocalLink(broker), "G", "T", seen.append, consume_from=consume_from)
        with consumer:
            assert consumer.run_until_idle() == 1


@pytest.mark.parametrize(
    ("answer", "done"),
    [("SUCCESS", 1), (None, 1), (Consume.SUCCESS, 1), ("success", 0), ("SUSPEND_CURRENT_QUEUE_A_MOMENT", 0)],
)
def test_a_listener_may_say_what_became_of_a_message_as_text(tmp_path, answer, done):
    with VirtualBroker.at(tmp_path / "s") as broker:
        broker.producer().send("T", b"x")
        with broker.consumer("G", "T", lambda _message: answer) as consumer:
            assert consumer.run_until_idle() == done
            assert consumer.counts.failed == 1 - done


NO_ANSWERS = (True, False, 0, "success", [], Durability.SYNC)


@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
def test_an_answer_that_does_not_say_what_became_of_a_message_brings_it_again_and_is_logged_once(
    tmp_path, caplog, kind
):
    with VirtualBroker.at(tmp_path / "s") as broker, every_row() as row:
        for number, answer in enumerate(NO_ANSWERS):
            for is_async in (False, True):
                with row(repr(answer), is_async):
                    caplog.clear()
                    brings_it_again(broker, caplog, kind, f"T{number}{is_async}", answer, is_async=is_async)


def brings_it_again(broker, caplog, kind, topic, answer, *, is_async):
    answers = [answer, None]

    def plain(_message):
        return answers.pop(0)

    async def awaited(_message):
        return answers.pop(0)

    broker.producer().send(topic, b"x")
    listener = awaited if is_async else plain
    with kind(broker, topic, topic, listener, consume_from=ConsumeFrom.FIRST) as consumer:
        consumer.start()
        broker.advance(5_000 if kind is PushConsumer else 500)
        assert (consumer.counts.failed, answers) == (1, [None])
        (said,) = [one for one in caplog.records if "listener" in one.getMessage()]
        assert "SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT, RECONSUME_LATER" in str(said.exc_info[1])
        broker.advance(20_000)
        assert answers == []
        assert consumer.run_until_idle() == 0
        assert broker.offsets.query(topic, topic, 0) == 1

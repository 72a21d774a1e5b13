"""What a consumer waits for in silence, or was not given, is said: once, with what to do."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from seglog import SeglogError, Subscription
from seglog.broker.broker import Broker
from seglog.broker.settings import BrokerConfig
from seglog.client.links.local_link import LocalLink
from seglog.consumer.hands.failures import MOST_KEPT, Failures
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.lite import LitePullConsumer
from seglog.consumer.options import OF_JAVA, OF_KAFKA
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.consumer.shares.words import in_words
from seglog.errors import InvalidArgumentError, RemoteProtocolError
from seglog.producer.producer import Producer
from seglog.remoting.message_queue import MessageQueue
from tests.support.faces import is_awaited
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until
from tests.support.rows import each_row

KINDS = [PushConsumer, OrderlyConsumer]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "seglog")
    return caplog


def said(log: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [each.getMessage() for each in log.records if words in each.getMessage()]


def ignore(_message: object) -> None:
    """Consumes."""


@pytest.mark.parametrize("kind", KINDS)
def test_finding_13_a_topic_that_does_not_exist_is_named_once(
    broker: Broker, log: pytest.LogCaptureFixture, kind: Any
):
    with kind(broker, "g", {"orders": "*", "odrers": "*"}, ignore) as consumer:
        Producer(broker).send("orders", b"x")
        consumer.start()
        broker.advance("5m")
        found = said(log, "does not exist")
        assert len(found) == 1
        assert "topic odrers does not exist: group g" in found[0]
        Producer(broker).send("odrers", b"x")
        broker.advance("1m")
        assert consumer.counts.delivered == 2


@pytest.mark.parametrize("kind", [*KINDS, AsyncPushConsumer, AsyncOrderlyConsumer])
def test_finding_13_a_block_in_which_a_consumer_was_not_started_says_so(
    broker: Broker, log: pytest.LogCaptureFixture, kind: Any
):
    async def scene() -> None:
        async with kind(broker, "g", "T", ignore):
            assert not log.records

    if is_awaited(kind):
        asyncio.run(scene())
    else:
        with kind(broker, "g", "T", ignore):
            assert not log.records
    assert said(log, f"the {kind.__name__} of group g was not started") == [log.messages[0]]


def test_a_block_that_starts_closes_or_fails_says_nothing(broker: Broker, log: pytest.LogCaptureFixture):
    Producer(broker).send("T", b"x")
    with PushConsumer(broker, "g", "T", ignore) as consumer:
        consumer.start()
    with PushConsumer(broker, "g", "T", ignore) as consumer:
        consumer.close()
    with pytest.raises(ZeroDivisionError), PushConsumer(broker, "g", "T", ignore):
        _ = 1 // 0
    assert log.messages == []


def test_finding_5_the_heir_of_a_consumer_that_was_killed_says_what_it_waits_for(
    broker: Broker, log: pytest.LogCaptureFixture
):
    producer = Producer(broker)
    producer.send("T", b"x", queue_id=2)
    killed = LocalLink(broker, "killed")
    OrderlyConsumer(killed, "g", "T", ignore).start()
    broker.advance("1m")
    killed.close()
    producer.send("T", b"y", queue_id=2)
    seen: list[bytes] = []
    with OrderlyConsumer(broker, "g", "T", lambda message: seen.append(bytes(message.body))) as heir:
        heir.start()
        broker.advance("4s")
        assert said(log, "has the lock") == []
        broker.advance("60s")
        assert seen == [b"y"]
        found = [each for each in said(log, "has the lock") if "of T at" in each]
        assert len(found) == 1
        assert "group g waits for queue 0, 1, 2, 3 of T at broker-a" in found[0]
        assert "the group has no other member" in found[0]
        assert "for another 55 s at most" in found[0]


def test_finding_11_sql_for_a_topic_that_is_not_there_yet_is_checked(tmp_path: Path):
    wanted = {"later": Subscription.by_sql("price >")}
    with Broker.open(tmp_path / "a", config=BrokerConfig(enable_property_filter=True)) as broker:
        with pytest.raises(RemoteProtocolError, match="refuses SQL92 'price >' of later"):
            PushConsumer(broker, "g", wanted, ignore).start()
        with PushConsumer(broker, "h", {"later": Subscription.by_sql("price > 5")}, ignore) as good:
            good.start()


@pytest.mark.parametrize(
    ("value", "member"), [("earliest", "ConsumeFrom.FIRST"), ("latest", "ConsumeFrom.LAST")]
)
def test_finding_15_where_kafka_begins_is_translated(broker: Broker, value: Any, member: str):
    with pytest.raises(InvalidArgumentError, match=r"ConsumeFrom\.LAST or ConsumeFrom\.FIRST") as wrong:
        PushConsumer(broker, "g", "T", ignore, consume_from=value)
    assert member in wrong.value.help
    assert PushConsumer(broker, "g", "T", ignore, consume_from=ConsumeFrom.FIRST).group == "g"


def test_where_to_begin_may_be_named_as_its_member(broker: Broker):
    named: Any = "FIRST"
    Producer(broker).send("T", b"x")
    with PushConsumer(broker, "g", "T", ignore, consume_from=named) as consumer:
        assert consumer.run_until_idle() == 1


@each_row("kind", [PushConsumer, LitePullConsumer])
@each_row("elsewhere, here", [*OF_JAVA.items(), *OF_KAFKA.items()])
def test_settings_of_java_and_of_kafka_python_are_translated(
    broker: Broker, kind: Any, elsewhere: str, here: str
):
    has_it = here in signature(kind).parameters
    advice = f"; did you mean '{here}'?" if has_it else r"\. Settings"
    with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) has no setting '{elsewhere}'{advice}"):
        kind(broker, "g", "T", **{elsewhere: "earliest"})


def test_each_setting_that_is_named_otherwise_elsewhere_is_one_of_a_consumer():
    known = signature(PushConsumer).parameters.keys() | signature(LitePullConsumer).parameters.keys()
    assert {*OF_JAVA.values(), *OF_KAFKA.values()} <= known


def test_a_failure_that_came_once_before_is_said_so(broker: Broker, caplog: pytest.LogCaptureFixture):
    def fail(_message: object) -> None:
        raise ValueError("no such customer")

    Producer(broker).send("T", b"x")
    with PushConsumer(broker, "g", "T", fail) as consumer:
        consumer.start()
        broker.advance("15s")
    assert ", as once before: ValueError" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_finding_15_an_argument_that_is_missing_is_named_with_the_class_that_was_called(
    broker: Broker, kind: Any
):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\): missing a required argument: 'group'"):
        kind(broker)
    with pytest.raises(TypeError, match="did you mean 'threads'"):
        kind(broker, "g", "T", ignore, thread=3)
    with pytest.raises(SeglogError, match="listener="):
        kind(broker, "g", "T", "no listener")


@pytest.mark.parametrize("kind", KINDS)
def test_finding_8_what_a_member_takes_and_gives_up_is_said_once(
    broker: Broker, caplog: pytest.LogCaptureFixture, kind: Any
):
    caplog.set_level(logging.INFO, "seglog.consumer")
    Producer(broker).send("T", b"x")
    with kind(broker, "g", "T", ignore) as first:
        first.start()
        broker.advance("1m")
        assert [each for each in caplog.messages if "of T at" in each] == [
            "group g takes queue 0, 1, 2, 3 of T at broker-a"
        ]
        caplog.clear()
        with kind(broker, "g", "T", ignore) as second:
            second.start()
            broker.advance("2m")
            mine, others = [
                ", ".join(str(queue.queue_id) for queue in member.queues if queue.topic == "T")
                for member in (first, second)
            ]
            changes = [each for each in caplog.messages if "of T at" in each]
            assert sorted(changes) == [
                f"group g gives up queue {others} of T at broker-a: another member's share",
                f"group g takes queue {others} of T at broker-a",
            ]
            caplog.clear()
        broker.advance("2m")
        end, heir = [each for each in caplog.messages if "of T at" in each]
        assert f"queue {others} of T at broker-a" in end  # who has the retry topic goes by the client ids
        assert end.endswith(": this member is closed")
        assert heir == f"group g takes queue {others} of T at broker-a"
        assert mine
        caplog.clear()
    (end,) = caplog.messages
    assert end.startswith(
        "group g gives up queue 0 of %RETRY%g at broker-a; queue 0, 1, 2, 3 of T at broker-a"
    )


def test_finding_8_of_very_many_queues_the_first_are_named():
    queues = [MessageQueue("T", "b", number) for number in range(1_000)]
    assert in_words(queues[:2]) == "queue 0, 1 of T at b"
    assert in_words(queues) == f"queue {', '.join(map(str, range(16)))} of T at b; and 984 more"


@pytest.mark.parametrize(("kind", "said_times"), [(OrderlyConsumer, 9), (PushConsumer, 4)])
def test_finding_4_a_message_that_fails_alike_each_time_has_one_traceback(
    broker: Broker, caplog: pytest.LogCaptureFixture, kind: Any, said_times: int
):
    caplog.set_level(logging.DEBUG, "seglog.consumer")

    def fail(_message: object) -> None:
        raise ValueError("no such customer")

    Producer(broker).send("T", b"x")
    with kind(broker, "g", "T", fail) as consumer:
        consumer.start()
        broker.advance("299s" if kind is OrderlyConsumer else "20m")
        failed = consumer.counts.failed
    records = [each for each in caplog.records if each.getMessage().startswith("the listener failed at ")]
    warnings = [each for each in records if each.levelno == logging.WARNING]
    assert len(records) == failed >= 2 ** (said_times - 1)
    assert len(warnings) == said_times
    assert [each.exc_info is not None for each in warnings] == [True] + [False] * (said_times - 1)
    assert all(each.exc_info for each in records if each.levelno == logging.DEBUG)
    assert (
        warnings[-1]
        .getMessage()
        .endswith(f", as {2 ** (said_times - 1) - 1} times before: ValueError: no such customer")
    )


def test_finding_4_another_error_or_another_message_is_new():
    failures = Failures()
    one, other = ValueError("x"), KeyError("x")
    assert [failures.count("m", error) for error in (one, one, one, other, one)] == [1, 2, 3, 1, 1]
    assert [failures.count(str(number), one) for number in range(MOST_KEPT)] == [1] * MOST_KEPT
    assert failures.count("m", one) == 1


def test_finding_14_locks_that_a_broker_cannot_take_back_are_named_once_with_their_end(
    tmp_path: Path, log: pytest.LogCaptureFixture
):
    server = BrokerServer(tmp_path / "s")
    try:
        with Producer(server.address) as producer:
            producer.send("T", b"x")
        consumer = OrderlyConsumer(server.address, "g", "T", ignore)
        consumer.start()
        wait_until(lambda: len(consumer.queues) == 5, idle_s=30)
    finally:
        server.close()
    consumer.close()
    (kept,) = said(log, "could not give back")
    assert (
        "group g could not give back the locks of queue 0 of %RETRY%g at broker-a; queue 0, 1, 2, 3 of T at"
        in kept
    )
    assert re.search(r"; other members get them in \d+ s at most$", kept)
    assert "tried again" not in kept


@pytest.mark.parametrize("kind", [*KINDS, AsyncPushConsumer, AsyncOrderlyConsumer])
def test_finding_12_the_help_of_each_kind_describes_every_argument(kind: Any):
    text = str(inspect.getdoc(kind))
    for name in ("target", "group", "subscription", "listener", "consume_from", "max_reconsume_times"):
        assert re.search(rf"^    {name}: \w", text, re.MULTILINE), name
    assert "arguments are those of" not in text
    assert "to get it again" in text


def test_finding_12_each_member_of_an_answer_and_of_a_beginning_is_described():
    for kind in (Consume, ConsumeFrom):
        for member in kind:
            assert f"    {member.name}: " in str(kind.__doc__)


def test_finding_11_a_comma_between_addresses_is_answered_with_a_semicolon():
    given = "broker-one.example.com:9876,broker-two.example.com:9876"
    with pytest.raises(InvalidArgumentError) as wrong:
        Producer(given)
    assert str(wrong.value) == f'{given!r} is no address: expected host:port, with ";" between several'

"""A method that another client has is answered with the one that does the same here."""

from __future__ import annotations

import asyncio
import inspect
import re

import pytest

from seglog import (
    AsyncLitePullConsumer,
    AsyncOrderlyConsumer,
    AsyncProducer,
    AsyncPushConsumer,
    LitePullConsumer,
    OrderlyConsumer,
    Producer,
    PushConsumer,
)
from seglog.other_names import OF_LISTENING, OF_POLLING, OF_PRODUCERS, snake_case
from tests.support.faces import driven

LISTENING = (PushConsumer, OrderlyConsumer, AsyncPushConsumer, AsyncOrderlyConsumer)
POLLING = (LitePullConsumer, AsyncLitePullConsumer)
PRODUCERS = (Producer, AsyncProducer)
TABLES = (
    *((kind, OF_PRODUCERS) for kind in PRODUCERS),
    *((kind, OF_LISTENING) for kind in LISTENING),
    *((kind, OF_POLLING) for kind in POLLING),
)
KINDS = pytest.mark.parametrize(("kind", "table"), TABLES, ids=[kind.__name__ for kind, _ in TABLES])


@pytest.fixture
def made(real_broker, kind):
    """An object of a class, at a broker in this process."""
    given = () if kind in PRODUCERS else ("g",)
    listener = () if kind not in LISTENING else ("T", lambda _message: None)
    with driven(kind, real_broker, *given, *listener) as one:
        yield one.made


@pytest.fixture
def real_broker(tmp_path):
    from seglog import Broker

    with Broker.open(tmp_path / "s", small=True) as opened:
        yield opened


@KINDS
def test_each_name_of_another_client_is_answered_with_what_is_here(made, kind, table):
    for name, here in table.items():
        with pytest.raises(AttributeError) as refused:
            getattr(made, name)
        wanted = f"{kind.__name__!r} object has no attribute {name!r}; here: {here}"
        assert str(refused.value) == wanted


@KINDS
def test_what_is_said_to_be_here_is(kind, table):
    """A method that advice names exists, and no name of the table does."""
    for name, here in table.items():
        assert not hasattr(kind, name), name
        for said in re.findall(r"(\w+)\.?(\w*)\(", here):
            of, method = said if said[1] else (kind.__name__, said[0])
            assert hasattr(globals().get(of, kind), method), (name, here)
        for argument in re.findall(r"^the argument (\w+)", here):
            assert argument in inspect.signature(kind).parameters, (name, here)


@KINDS
@pytest.mark.parametrize("name", ["nothing", "setNothing", "__getstate_of__", "_private", "Sent"])
def test_any_other_name_is_refused_as_by_an_object_without_advice(made, kind, table, name):
    with pytest.raises(AttributeError) as refused:
        getattr(made, name)
    assert str(refused.value) == f"{kind.__name__!r} object has no attribute {name!r}"
    assert getattr(made, name, 7) == 7
    assert not hasattr(made, name)


@pytest.mark.parametrize(
    ("kind", "name", "here"),
    [
        (Producer, "sendBatch", "send_batch()"),
        (AsyncProducer, "sendBatch", "send_batch()"),
        (PushConsumer, "runUntilIdle", "run_until_idle()"),
        (LitePullConsumer, "queuesOf", "queues_of()"),
        (PushConsumer, "setConsumeFromWhere", "the argument consume_from"),
        (PushConsumer, "setConsumeThreadMax", "the argument threads"),
        (AsyncOrderlyConsumer, "setMaxReconsumeTimes", "the argument max_reconsume_times"),
        (PushConsumer, "set_message_model", "the argument message_model"),
    ],
)
def test_a_method_or_a_setter_in_camel_case_is_answered_with_the_name_here(made, kind, name, here):
    with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}; here: {here}")):
        getattr(made, name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sendOneway", "send_oneway"), ("getMQ", "get_mq"), ("poll", "poll"), ("setV2Flag", "set_v2_flag")],
)
def test_names_of_java_become_those_of_python(name, expected):
    assert snake_case(name) == expected


def test_an_awaited_producer_says_the_same_in_a_task(real_broker):
    async def ask():
        async with AsyncProducer(real_broker) as producer:
            return getattr(producer, "flush")  # noqa: B009 - a type checker refuses it

    with pytest.raises(AttributeError, match="nothing to flush"):
        asyncio.run(ask())

"""A method that another client has is answered with the one that does the same here."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from typing_extensions import override

from seglog import (
    AsyncLitePullConsumer,
    AsyncOrderlyConsumer,
    AsyncProducer,
    AsyncPushConsumer,
    Broker,
    LitePullConsumer,
    MessageQueue,
    OrderlyConsumer,
    Producer,
    PushConsumer,
)
from seglog.errors import InvalidArgumentError
from seglog.other_names import (
    OF_LISTENER_CALLS,
    OF_LISTENING,
    OF_NEW_PRODUCERS,
    OF_OPENINGS,
    OF_POLL_CALLS,
    OF_POLLING,
    OF_PRODUCERS,
    OF_SENDS,
    snake_case,
)
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


@pytest.fixture
def producer(real_broker, kind):
    with driven(kind, real_broker) as one:
        yield one


@pytest.mark.parametrize("kind", PRODUCERS)
@pytest.mark.parametrize(("call", "argument"), [(call, name) for call, of in OF_SENDS.items() for name in of])
def test_an_argument_of_another_producers_call_is_answered_with_the_one_here(producer, kind, call, argument):
    said = OF_SENDS[call][argument]
    with pytest.raises(TypeError, match=rf"{call}\(\) got an unexpected .*{argument!r}; here: ") as refused:
        getattr(producer, call)("T", b"x", **{argument: 1})
    assert str(refused.value).endswith(said)
    assert stored(producer) == 0


def stored(producer) -> int:
    return sum(queue.max_offset for queue in producer.made._client.link._broker.store.queues())


@pytest.mark.parametrize("kind", PRODUCERS)
def test_an_argument_that_no_other_has_and_an_error_of_the_call_itself_are_as_they_were(producer, kind):
    with pytest.raises(TypeError, match=r"send\(\) got an unexpected keyword argument 'nothing'$"):
        producer.send("T", b"x", nothing=1)

    class Keys(list[str]):
        @override
        def __iter__(self) -> Iterator[str]:
            raise TypeError("an unexpected keyword argument 'key'")

    with pytest.raises(TypeError) as refused:
        producer.send("T", b"x", keys=Keys(["a"]))
    assert "here:" not in str(refused.value)


CALLS = [
    *((kind, OF_LISTENER_CALLS) for kind in LISTENING),
    *((kind, OF_POLL_CALLS) for kind in POLLING),
]


@pytest.mark.parametrize(("kind", "table"), CALLS, ids=[kind.__name__ for kind, _ in CALLS])
def test_so_is_one_of_another_consumers_call(real_broker, kind, table):
    listener = () if kind not in LISTENING else ("T", lambda _message: None)
    with driven(kind, real_broker, "g", *listener) as consumer:
        for call, arguments in table.items():
            for name, here in arguments.items():
                named = {name: 1} if name else {}
                given = () if name else ({},)
                with pytest.raises(TypeError) as refused:
                    getattr(consumer, call)(*given, **named)
                assert str(refused.value).endswith(f"; here: {here}"), (call, name)


@pytest.mark.parametrize("kind", [*LISTENING, *POLLING, *PRODUCERS])
def test_an_argument_that_is_said_to_be_here_is(kind):
    calls = OF_SENDS if kind in PRODUCERS else OF_POLL_CALLS if kind in POLLING else OF_LISTENER_CALLS
    for call, arguments in calls.items():
        own = inspect.signature(getattr(kind, call)).parameters
        assert not own.keys() & arguments.keys()
        for here in arguments.values():
            first = re.match(r"\w+", here)
            assert first is not None
            assert first[0] in own or first[0] in ("no", "what"), (call, here)


@pytest.mark.parametrize("kind", PRODUCERS)
@pytest.mark.parametrize("name", OF_NEW_PRODUCERS)
def test_a_setting_of_another_producer_is_answered_too(kind, name):
    with pytest.raises(TypeError) as refused:
        kind("127.0.0.1:1", **{name: 1})
    wanted = f"{kind.__name__}(): got an unexpected keyword argument {name!r}; here: {OF_NEW_PRODUCERS[name]}"
    assert str(refused.value) == wanted


@pytest.mark.parametrize("name", OF_OPENINGS)
def test_so_is_one_of_another_broker(tmp_path, name):
    settings: Any = {name: 1}
    with pytest.raises(TypeError) as refused:
        Broker.open(tmp_path / "s", **settings)
    assert str(refused.value).endswith(f"'{name}'; here: {OF_OPENINGS[name]}")


@pytest.mark.parametrize("kind", [*LISTENING, *POLLING, *PRODUCERS])
def test_a_statement_of_the_other_face_is_answered_with_both_ways(real_broker, kind):
    given = () if kind in PRODUCERS else ("g",)
    other = (
        kind.__name__.removeprefix("Async") if kind.__name__.startswith("Async") else f"Async{kind.__name__}"
    )
    assert other in globals()

    async def block(one) -> None:
        if other.startswith("Async"):
            async with one:
                pass
        else:
            with one:
                pass

    async def scene(one) -> None:
        with pytest.raises(TypeError) as refused:
            await block(one)
        said, here = ("async with", "with") if other.startswith("Async") else ("with", "async with")
        assert str(refused.value) == (
            f"{kind.__name__!r} object is not for {said}; here: {here}, or {said} with {other}"
        )

    with driven(kind, real_broker, *given) as one:
        asyncio.run(scene(one.made))


def test_so_is_a_loop(real_broker):
    async def scene() -> None:
        async with AsyncLitePullConsumer(real_broker, "g", "T") as consumer:
            awaited: Any = consumer
            with pytest.raises(TypeError, match="not for for; here: async for"):
                for _message in awaited:
                    pass

    asyncio.run(scene())


@pytest.mark.parametrize("kind", [*LISTENING, *POLLING, *PRODUCERS])
def test_the_help_of_a_constructor_says_where_its_arguments_are_explained(kind):
    assert "the help of its class" in kind.__init__.__doc__


@pytest.mark.parametrize("kind", [*POLLING])
def test_several_topics_and_a_single_queue_are_answered_with_the_form(real_broker, kind):
    with driven(kind, real_broker, "g") as consumer:
        with pytest.raises(InvalidArgumentError) as refused:
            consumer.subscribe(["T", "U"])
        assert "call it once for each" in refused.value.help
        with pytest.raises(InvalidArgumentError) as refused:
            consumer.assign(MessageQueue("T", "broker-a", 0))
        assert "[queue]" in refused.value.help

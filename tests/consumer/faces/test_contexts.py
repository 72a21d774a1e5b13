"""A listener says which context it takes; one that takes that of the other kind is refused at once.

What a type checker refuses is marked here, and mypy fails where it does not any more.
"""

from __future__ import annotations
import __future__

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Optional, Union, assert_type

import pytest

import seglog
from seglog import (
    AsyncOrderlyConsumer,
    AsyncPushConsumer,
    ConsumeConcurrentlyContext,
    ConsumeOrderlyContext,
    DecodedMessage,
    Message,
    OrderlyConsumer,
    PushConsumer,
)
from seglog.consumer.contexts import Context
from seglog.errors import InvalidArgumentError
from seglog.testing import VirtualBroker
from tests.support.faces import driven
from tests.support.rows import each_row

InOrder = ConsumeOrderlyContext
SideBySide = ConsumeConcurrentlyContext
KINDS = {
    ConsumeOrderlyContext: (OrderlyConsumer, AsyncOrderlyConsumer),
    ConsumeConcurrentlyContext: (PushConsumer, AsyncPushConsumer),
}
"""Who gives which."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        opened.producer().send("T", b"1", queue_id=0)
        yield opened


class Listening:
    """Listeners that are no plain functions."""

    def __call__(self, message: Message, context: ConsumeOrderlyContext) -> None:
        context.suspend_ms = 50

    def method(self, message: Message, context: ConsumeOrderlyContext) -> None:
        context.suspend_ms = 50

    @classmethod
    def of_the_class(cls, message: Message, context: ConsumeOrderlyContext) -> None:
        context.suspend_ms = 50

    @staticmethod
    def of_none(message: Message, context: ConsumeOrderlyContext) -> None:
        context.suspend_ms = 50


def in_order(message: Message, context: ConsumeOrderlyContext) -> None:
    context.suspend_ms = 50


def side_by_side(message: Message, context: ConsumeConcurrentlyContext) -> None:
    context.delay_level = 1


def either(message: Message, context: ConsumeConcurrentlyContext | ConsumeOrderlyContext) -> None:
    assert context.queue.topic == message.topic


async def awaited(message: Message, context: ConsumeOrderlyContext) -> None:
    context.suspend_ms = 50


def of_a_shop(shop: str, message: Message, context: ConsumeOrderlyContext, *, rate: float = 1) -> None:
    assert shop == "shop"
    context.suspend_ms = 50


def noted(listener: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(listener)
    def wrapper(*args: Any, **options: Any) -> None:
        listener(*args, **options)

    return wrapper


FORMS: dict[str, Callable[..., object]] = {
    "function": in_order,
    "async function": awaited,
    "object": Listening(),
    "method": Listening().method,
    "method of the class": Listening.of_the_class,
    "static method": Listening.of_none,
    "partial": functools.partial(of_a_shop, "shop"),
    "partial with an option": functools.partial(of_a_shop, "shop", rate=2),
    "decorated": noted(in_order),
    "decorated twice": noted(noted(functools.partial(of_a_shop, "shop"))),
}


_NUMBERS = count()


def new_group() -> str:
    """Returns the name of a group that begins at the first message."""
    return f"g{next(_NUMBERS)}"


def refusals(broker: VirtualBroker, kind: Any, listener: Any) -> list[InvalidArgumentError]:
    """Returns how both ways to give a consumer a listener refuse one; none of them changes anything."""
    link, group = broker.link(), new_group()
    with pytest.raises(InvalidArgumentError) as by_argument, driven(kind, link, group, "T", listener):
        pass
    with driven(kind, link, group) as consumer:  # it is still free
        with pytest.raises(InvalidArgumentError) as by_decorator:
            consumer.made.on("T")(listener)
        consumer.made.on("T")(either)  # so is the topic
        assert consumer.run_until_idle() == 1
    return [by_argument.value, by_decorator.value]


@pytest.mark.parametrize("kind", KINDS[ConsumeConcurrentlyContext])
@each_row("form", FORMS)
def test_a_listener_of_any_form_that_takes_the_other_context_is_refused_and_told_who_gives_it(
    broker: VirtualBroker, kind: Any, form: str
):
    for error in refusals(broker, kind, FORMS[form]):
        assert str(error).startswith("listener=")
        assert "expected a function that takes a message and a ConsumeConcurrentlyContext" in str(error)
        assert error.help == (
            "this one takes a ConsumeOrderlyContext, which listeners of an OrderlyConsumer are given"
        )


@pytest.mark.parametrize("kind", KINDS[ConsumeOrderlyContext])
def test_in_order_the_context_of_messages_side_by_side_is_refused(broker: VirtualBroker, kind: Any):
    for error in refusals(broker, kind, side_by_side):
        assert "expected a function that takes a message and a ConsumeOrderlyContext" in str(error)
        assert error.help == (
            "this one takes a ConsumeConcurrentlyContext, which listeners of a PushConsumer are given"
        )


@pytest.mark.parametrize("kind", KINDS[ConsumeOrderlyContext])
@each_row("form", FORMS)
def test_who_gives_it_takes_a_listener_of_any_form(broker: VirtualBroker, kind: Any, form: str):
    with driven(kind, broker.link(), new_group(), "T", FORMS[form]) as consumer:
        assert consumer.run_until_idle() == 1
        assert consumer.counts.failed == 0


def annotated(text: str, *, is_text: bool, loaded: dict[str, object]) -> Any:
    """Returns a listener whose second parameter has an annotation, in a module that has loaded some names."""
    flags = __future__.annotations.compiler_flag if is_text else 0
    source = f"def listen(message, context: {text}): context.queue"
    names = dict(loaded)
    exec(compile(source, "listeners.py", "exec", flags, dont_inherit=True), names)
    return names["listen"]


LOADED: dict[str, object] = {
    "seglog": seglog,
    "ConsumeOrderlyContext": ConsumeOrderlyContext,
    "ConsumeConcurrentlyContext": ConsumeConcurrentlyContext,
    "InOrder": InOrder,
    "Mine": type("ConsumeOrderlyContext", (), {}),
    "Annotated": Annotated,
    "Any": Any,
    "Optional": Optional,
    "Union": Union,
}
ONLY_IN_ORDER = [
    "ConsumeOrderlyContext",
    "seglog.ConsumeOrderlyContext",
    "ConsumeOrderlyContext | None",
    "Optional[ConsumeOrderlyContext]",
    "Union[None, seglog.ConsumeOrderlyContext]",
    "'ConsumeOrderlyContext'",
    "'seglog.ConsumeOrderlyContext | None'",
    "Optional['ConsumeOrderlyContext']",
]
KNOWN_ONLY_WHERE_LOADED = ["InOrder", "Annotated[ConsumeOrderlyContext, 'x']"]
NOT_ONLY_IN_ORDER = [
    "ConsumeOrderlyContext | ConsumeConcurrentlyContext",
    "Union[ConsumeConcurrentlyContext, ConsumeOrderlyContext]",
    "'ConsumeOrderlyContext | ConsumeConcurrentlyContext'",
    "ConsumeConcurrentlyContext",
    "ConsumeOrderlyContext | Any",
    "Mine",
    "Any",
    "object",
    "None",
    "[]",
    "'what comes with it'",
    "''",
]


@each_row("text", [*ONLY_IN_ORDER, *KNOWN_ONLY_WHERE_LOADED])
@each_row("is_text", [False, True])
def test_an_annotation_is_known_however_it_is_written(broker: VirtualBroker, text: str, is_text: bool):
    listener = annotated(text, is_text=is_text, loaded=LOADED)
    with pytest.raises(InvalidArgumentError, match="ConsumeConcurrentlyContext"):
        PushConsumer(broker.link(), new_group(), "T", listener)


@each_row("text", ONLY_IN_ORDER)
def test_so_is_one_that_only_a_type_checker_loads(broker: VirtualBroker, text: str):
    listener = annotated(text, is_text=True, loaded={})
    with pytest.raises(InvalidArgumentError, match="ConsumeConcurrentlyContext"):
        PushConsumer(broker.link(), new_group(), "T", listener)


@each_row("text", NOT_ONLY_IN_ORDER)
@each_row("is_text", [False, True])
def test_what_may_be_another_is_taken(broker: VirtualBroker, text: str, is_text: bool):
    listener = annotated(text, is_text=is_text, loaded=LOADED)
    with PushConsumer(broker.link(), new_group(), "T", listener) as consumer:
        assert consumer.run_until_idle() == 1


@each_row("text", [*KNOWN_ONLY_WHERE_LOADED, *NOT_ONLY_IN_ORDER, "no.such.name", "'3 +'"])
def test_so_is_what_is_not_known(broker: VirtualBroker, text: str):
    listener = annotated(text, is_text=True, loaded={})
    with PushConsumer(broker.link(), new_group(), "T", listener) as consumer:
        assert consumer.run_until_idle() == 1


def test_a_parameter_that_is_not_given_a_context_says_nothing_of_one(broker: VirtualBroker):
    def with_default(message: Message, context: ConsumeOrderlyContext | None = None) -> None:
        assert context is None

    def with_option(message: Message, *, context: ConsumeOrderlyContext | None = None) -> None:
        assert context is None

    def with_rest(message: Message, *contexts: ConsumeOrderlyContext) -> None:
        assert contexts == ()

    listeners: list[Any] = [with_default, with_option, with_rest]
    for number, listener in enumerate(listeners):
        with PushConsumer(broker.link(), f"g{number}", "T", listener) as consumer:
            assert consumer.run_until_idle() == 1
            assert consumer.counts.failed == 0


def test_a_type_checker_knows_the_context_of_each_kind(broker: VirtualBroker):
    with OrderlyConsumer(broker.link(), "in-order", "T", in_order) as orderly:
        assert_type(orderly, OrderlyConsumer[Message])
    with PushConsumer(broker.link(), "side-by-side", "T", side_by_side) as push:
        assert_type(push, PushConsumer[Message])
    with OrderlyConsumer(broker.link(), "g", "T", either) as one:
        assert one.run_until_idle() == 1
    with PushConsumer(broker.link(), "other", "T", either) as other:
        assert other.run_until_idle() == 1
    with pytest.raises(InvalidArgumentError):
        OrderlyConsumer(broker.link(), "g", "T", side_by_side)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidArgumentError):
        PushConsumer(broker.link(), "g", "T", in_order)  # type: ignore[arg-type]  # likewise
    with pytest.raises(InvalidArgumentError):
        PushConsumer(broker.link(), "g", "T", awaited)  # type: ignore[arg-type]  # likewise


def test_a_type_checker_knows_it_where_a_listener_is_registered_for_a_topic(broker: VirtualBroker):
    with (
        OrderlyConsumer(broker.link(), "in-order", decode=int) as orderly,
        PushConsumer(broker.link(), "side-by-side", batch_size=8) as push,
    ):

        @orderly.on("T")
        def steps(step: DecodedMessage[int], context: ConsumeOrderlyContext) -> None:
            assert_type(step.value, int)
            context.auto_commit = True

        @push.on("T")
        async def all_of(messages: tuple[Message, ...], context: ConsumeConcurrentlyContext) -> None:
            context.ack_index = len(messages) - 1

        @push.on("other")
        def any_of(messages: tuple[Message, ...], context: Context) -> None:
            assert context.queue.topic == "other"

        assert_type(push.on("third")(print_all), Callable[[tuple[Message, ...]], None])
        with pytest.raises(InvalidArgumentError):
            orderly.on("other")(side_by_side)  # type: ignore[arg-type]  # that is the point
        with pytest.raises(InvalidArgumentError):
            push.on("fourth")(in_order)  # type: ignore[arg-type]  # likewise
        assert (orderly.run_until_idle(), push.run_until_idle()) == (1, 1)


def print_all(messages: tuple[Message, ...]) -> None:
    print(len(messages))


def test_a_type_checker_knows_it_of_the_awaited_faces(broker: VirtualBroker):
    async def make() -> None:
        async with (
            AsyncOrderlyConsumer(broker.link(), "in-order", "T", awaited) as orderly,
            AsyncPushConsumer(broker.link(), "side-by-side", "T", side_by_side) as push,
            AsyncPushConsumer(broker.link(), "by-topic", decode=int) as by_topic,
        ):
            assert_type(orderly, AsyncOrderlyConsumer[Message])
            assert_type(push, AsyncPushConsumer[Message])
            assert_type(by_topic, AsyncPushConsumer[DecodedMessage[int]])
            with pytest.raises(InvalidArgumentError):
                AsyncPushConsumer(broker.link(), "g", "T", awaited)  # type: ignore[arg-type]  # that is the point
            with pytest.raises(InvalidArgumentError):
                AsyncOrderlyConsumer(broker.link(), "g", "T", side_by_side)  # type: ignore[arg-type]  # likewise
            with pytest.raises(InvalidArgumentError):
                by_topic.on("T")(awaited)  # type: ignore[arg-type]  # likewise
            done: Awaitable[int] = orderly.run_until_idle()
            assert (await done, await push.run_until_idle()) == (1, 1)

    asyncio.run(make())

"""Methods and arguments of RocketMQ's Java client and of Kafka's clients, and what does the same here.

An attribute or an argument that does not exist is answered with that. A type checker does not see this: for
it such a name is an error.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, ParamSpec, TypeVar, cast

from typing_extensions import override

P = ParamSpec("P")
R = TypeVar("R")

_TARGET: Final = "give the address of a name server as the first argument"
_CLOSE: Final = "close(), or a with statement"
_COMMIT: Final = "commit()"
_OF_ALL: Final = {
    "setNamesrvAddr": _TARGET,
    "set_namesrv_addr": _TARGET,
    "set_name_server_address": _TARGET,
    "bootstrap_connected": _TARGET,
    "shutdown": _CLOSE,
    "disconnect": _CLOSE,
    "stop": _CLOSE,
    "list_topics": "`seglog topic ls ADDRESS`",
}
_QUEUES: Final = "queues(topic)"
_NO_TRANSACTIONS: Final = "transactions are not served here"
OF_PRODUCERS: Final[Mapping[str, str]] = {
    **_OF_ALL,
    "start": "nothing to start: a producer sends from the first send() on",
    "sendOneway": "send(..., wait_for_disk=False), which is answered",
    "sendOneWay": "send(..., wait_for_disk=False), which is answered",
    "send_oneway": "send(..., wait_for_disk=False), which is answered",
    "put": "send()",
    "publish": "send()",
    "sendAsync": "AsyncProducer.send()",
    "send_async": "AsyncProducer.send()",
    "send_sync": "send(), which returns once the broker has the message",
    "send_orderly": "send(..., sharding_key=...)",
    "produce": "send()",
    "send_and_wait": "send(), which returns once the broker has the message",
    "flush": "nothing to flush: send() returns once the broker has the message",
    "poll": "nothing to poll: send() returns, or raises, the result",
    "fetchPublishMessageQueues": _QUEUES,
    "partitions_for": _QUEUES,
    "sendMessageInTransaction": _NO_TRANSACTIONS,
    "init_transactions": _NO_TRANSACTIONS,
    "begin_transaction": _NO_TRANSACTIONS,
    "commit_transaction": _NO_TRANSACTIONS,
    "abort_transaction": _NO_TRANSACTIONS,
    "setProducerGroup": "the argument group",
    "setSendMsgTimeout": "send(..., timeout_ms=...)",
}
"""What to say of methods of other producers."""
_TIMEOUT: Final = "timeout_ms, of the whole call"
_DELAY: Final = "delay_level, from 1 for 1s to 18 for 2h"
_OF_SENDS: Final = {
    "partition": "queue_id",
    "timeout": _TIMEOUT,
    "timeout_s": _TIMEOUT,
    "callback": "what send() returns; with AsyncProducer many sends are under way at a time",
    "on_delivery": "what send() returns; with AsyncProducer many sends are under way at a time",
}
OF_SENDS: Final[Mapping[str, Mapping[str, str]]] = {
    "send": {
        **_OF_SENDS,
        "value": "body",
        "message": "body",
        "key": "keys, to find the message by, or sharding_key, to keep an order",
        "headers": "properties",
        "tag": "tags",
        "delay": _DELAY,
        "countdown": _DELAY,
        "delay_time_level": _DELAY,
    },
    "send_batch": {
        **_OF_SENDS,
        "key": "sharding_key, of all of them; NewMessage has keys",
        "headers": "messages: NewMessage has properties",
    },
}
"""What to say of arguments of other producers' calls."""
OF_NEW_PRODUCERS: Final[Mapping[str, str]] = {
    "bootstrap_servers": "target, the first argument",
    "namesrv_addr": "target, the first argument",
    "producer_group": "group",
    "acks": "Broker.open(..., durability=Durability.SYNC): then a send returns once it is on the disk",
    "linger_ms": "send_batch(), or many sends at a time of an AsyncProducer",
    "batch_size": "send_batch(), or many sends at a time of an AsyncProducer",
    "value_serializer": "encode",
    "key_serializer": "keys and sharding_key of send(), which are texts",
    "client_id": "make_client(target, client_id=...), to be given as target",
    "retries": "nothing to set: a send that may pass is tried twice more",
    "request_timeout_ms": "send(..., timeout_ms=...)",
    "send_msg_timeout": "send(..., timeout_ms=...)",
}
"""What to say of settings of other producers."""
_DURABILITY: Final = "durability: Durability.SYNC or Durability.ASYNC"
OF_OPENINGS: Final[Mapping[str, str]] = {
    "flush_disk_type": _DURABILITY,
    "flushDiskType": _DURABILITY,
    "sync": _DURABILITY,
    "store_path": "path, the first argument",
    "store_path_root_dir": "path, the first argument",
    "broker_name": "config=BrokerConfig(broker_name=...)",
    "read_only": "MessageStore.open(path, read_only=True), without a broker",
}
"""What to say of settings of other brokers."""
_SUBSCRIBE: Final = "subscribe(topic, tags), once for each topic"
_OF_CONSUMERS: Final = {
    **_OF_ALL,
    "subscribe_topics": _SUBSCRIBE,
    "subscribeTopics": _SUBSCRIBE,
    "commitSync": _COMMIT,
    "commitAsync": _COMMIT,
    "commit_sync": _COMMIT,
    "commit_async": _COMMIT,
    "setConsumerGroup": "the argument group",
}
_LISTENER: Final = "the argument listener, or @consumer.on(topic)"
_POLLED: Final = "LitePullConsumer has it"
OF_LISTENING: Final[Mapping[str, str]] = {
    **_OF_CONSUMERS,
    "registerMessageListener": _LISTENER,
    "register_message_listener": _LISTENER,
    "setMessageListener": _LISTENER,
    "poll": "LitePullConsumer.poll()",
    "consume": "LitePullConsumer.poll()",
    "getmany": "LitePullConsumer.poll()",
    "getone": "LitePullConsumer.poll(count=1)",
    "pause": "suspend(); of some queues alone LitePullConsumer.pause()",
    "seek": _POLLED,
    "assign": _POLLED,
    "assignment": _POLLED,
}
"""What to say of methods of other consumers, with listeners."""
_OFFSETS: Final = (
    "no offsets: it commits what was polled by now; seek(queue, offset) sets another place first"
)
_IN_SECONDS: Final = "timeout_s, in seconds"
_OF_CLOSES: Final = {"timeout": _IN_SECONDS, "timeout_ms": _IN_SECONDS}
_OF_SUBSCRIBES: Final = {
    "topics": "topic: one call for each topic",
    "tags": "wanted",
    "expression": "wanted",
    "sub_expression": "wanted",
    "pattern": "topic: one call for each topic",
}
OF_LISTENER_CALLS: Final[Mapping[str, Mapping[str, str]]] = {
    "subscribe": _OF_SUBSCRIBES,
    "close": _OF_CLOSES,
    "run_until_idle": _OF_CLOSES,
}
"""What to say of arguments of other consumers' calls, with listeners."""
OF_POLL_CALLS: Final[Mapping[str, Mapping[str, str]]] = {
    "poll": {**_OF_CLOSES, "max_records": "count", "num_messages": "count"},
    "commit": dict.fromkeys(("", "offsets", "offset", "message", "asynchronous"), _OFFSETS),
    "seek": {"partition": "queue", "offset": "place"},
    "subscribe": _OF_SUBSCRIBES,
    "close": _OF_CLOSES,
}
"""The same of consumers that are polled; under "" for an argument without a name."""
_BEGIN: Final = 'seek(queue, "begin")'
_END: Final = 'seek(queue, "end")'
_QUEUES_OF: Final = "queues_of(topic)"
OF_POLLING: Final[Mapping[str, str]] = {
    **_OF_CONSUMERS,
    "consume": "poll()",
    "getmany": "poll()",
    "getone": "poll(count=1)",
    "seekToBegin": _BEGIN,
    "seek_to_beginning": _BEGIN,
    "seekToEnd": _END,
    "seek_to_end": _END,
    "offsetForTimestamp": "seek(queue, a datetime)",
    "offsets_for_times": "seek(queue, a datetime)",
    "beginning_offsets": f"{_BEGIN}, which returns the oldest offset",
    "end_offsets": f"lag(), the number of messages left, or {_END}, which returns the offset",
    "highwater": "lag(), the number of messages left",
    "get_watermark_offsets": "lag(), the number of messages left",
    "store_offsets": "nothing to store: commit() commits what was polled",
    "subscription": "assignment, the queues that it has",
    "partitions": _QUEUES_OF,
    "fetchMessageQueues": _QUEUES_OF,
    "partitions_for_topic": _QUEUES_OF,
    "registerMessageListener": "PushConsumer takes a listener",
    "register_message_listener": "PushConsumer takes a listener",
    "suspend": "pause(queues)",
}
"""What to say of methods of other consumers, which are polled."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake_case(name: str) -> str:
    """Returns a name of Java as Python writes it: ``runUntilIdle`` becomes ``run_until_idle``."""
    return _HUMP.sub("_", name).lower()


class NamesElsewhere:
    """An object that answers a method of another client with the one that it has.

    Attributes:
        _elsewhere: What to say, by the name of the method.
        _settings_elsewhere: Names of its own settings, by those of other clients.
        _arguments_elsewhere: What to say of arguments of calls of other clients, by call and argument.
    """

    __slots__ = ()
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    _settings_elsewhere: ClassVar[Mapping[str, str]] = {}
    _arguments_elsewhere: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    @override
    def __init_subclass__(cls) -> None:
        """Has calls answer arguments that others have with those here."""
        super().__init_subclass__()
        for name, elsewhere in cls._arguments_elsewhere.items():
            if name in vars(cls):
                setattr(cls, name, advising(elsewhere)(vars(cls)[name]))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Refuses an attribute that does not exist, and names the one that is meant.

            Raises:
                AttributeError: Always.
            """
            kind = type(self)
            here = _meant(kind, name)
            advice = "" if here is None else f"; here: {here}"
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}{advice}")


def _meant(kind: type[NamesElsewhere], name: str) -> str | None:
    """Returns what to say of a name; None if it is like none."""
    if name.startswith("_"):
        return None
    if name in kind._elsewhere:
        return kind._elsewhere[name]
    snake = snake_case(name)
    if snake != name and callable(getattr(kind, snake, None)):
        return f"{snake}()"
    setting = snake.removeprefix("set_")
    setting = kind._settings_elsewhere.get(setting, setting)
    made = getattr(kind, "__signature__", None)
    if snake.startswith("set_") and made is not None and setting in made.parameters:
        return f"the argument {setting}"
    return None


def advising(elsewhere: Mapping[str, str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator of calls that answer arguments of other clients with those here.

    Args:
        elsewhere: What to say, by the name of the argument; under "" for one too many without a name.
    """

    def decorate(call: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(call):

            @wraps(call)
            async def awaited(*args: P.args, **named: P.kwargs) -> object:
                try:
                    steps = call(*args, **named)
                except TypeError as error:
                    _add_advice(error, named, elsewhere)
                    raise
                return await cast("Awaitable[object]", steps)

            return cast("Callable[P, R]", awaited)

        @wraps(call)
        def plain(*args: P.args, **named: P.kwargs) -> R:
            try:
                return call(*args, **named)
            except TypeError as error:
                _add_advice(error, named, elsewhere)
                raise

        return plain

    return decorate


def _add_advice(error: TypeError, named: Iterable[str], elsewhere: Mapping[str, str]) -> None:
    """Adds what is here to the error of a call that was not begun, for its arguments."""
    trace = error.__traceback__
    if trace is None or trace.tb_next is not None:  # the call was begun: it is an error of its own
        return
    error.args = (with_advice(str(error), named, elsewhere),)


def with_advice(text: str, named: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """Returns the text of an error about arguments, with what is here instead."""
    if "unexpected keyword" in text:
        said = next((elsewhere[name] for name in named if f"'{name}'" in text and name in elsewhere), None)
    else:
        said = elsewhere.get("") if "positional argument" in text else None
    return text if said is None else f"{text}; here: {said}"


class PlainFace:
    """A class whose statements are plain; those of event loops are answered with its other face."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker refuses them itself

        def __aenter__(self) -> NoReturn:
            """Refuses ``async with``."""
            _refuse_statement(self, "async with", "with")

        def __aexit__(self, *_: object) -> NoReturn:
            """Refuses ``async with``."""
            _refuse_statement(self, "async with", "with")

        def __aiter__(self) -> NoReturn:
            """Refuses ``async for``."""
            _refuse_statement(self, "async for", "for")


class LoopFace:
    """A class whose statements are awaited; plain ones are answered with those."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __enter__(self) -> NoReturn:
            """Refuses ``with``."""
            _refuse_statement(self, "with", "async with")

        def __exit__(self, *_: object) -> NoReturn:
            """Refuses ``with``."""
            _refuse_statement(self, "with", "async with")

        def __iter__(self) -> NoReturn:
            """Refuses ``for``."""
            _refuse_statement(self, "for", "async for")


def _refuse_statement(of: object, said: str, here: str) -> NoReturn:
    """Refuses a statement of the other face of a class.

    Raises:
        TypeError: Always.
    """
    name = type(of).__name__
    other = name.removeprefix("Async") if isinstance(of, LoopFace) else f"Async{name}"
    raise TypeError(f"{name!r} object is not for {said}; here: {here}, or {said} with {other}")

"""Methods that producers and consumers of RocketMQ's Java client and of Kafka's clients have, and those here.

An attribute that does not exist is answered with the call that does the same here. A type checker does not
see this: for it such a name is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

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
    "send_oneway": "send(..., wait_for_disk=False), which is answered",
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
    """

    __slots__ = ()
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    _settings_elsewhere: ClassVar[Mapping[str, str]] = {}

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

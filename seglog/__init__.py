"""seglog: a RocketMQ-style message log as an embedded library.

The public names load on first use, so that ``import seglog`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from seglog.broker.broker import Broker
    from seglog.broker.settings.config import BrokerConfig
    from seglog.client.client import Client
    from seglog.client.connect import make_client
    from seglog.client.home.stepping import sleep_ms
    from seglog.client.links.local_link import LocalLink
    from seglog.clock import Clock, SystemClock, VirtualClock
    from seglog.consumer.contexts import ConsumeConcurrentlyContext, ConsumeOrderlyContext
    from seglog.consumer.listener import Consume, ConsumeFrom
    from seglog.consumer.lite.lite_pull import AsyncLitePullConsumer, LitePullConsumer
    from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
    from seglog.consumer.payloads import DecodedMessage
    from seglog.consumer.push import AsyncPushConsumer, PushConsumer
    from seglog.errors import SeglogError
    from seglog.producer.producer import AsyncProducer, Producer
    from seglog.producer.send_result import BatchSendResult, SendResult
    from seglog.remoting.heartbeat import MessageModel
    from seglog.remoting.message_queue import MessageQueue
    from seglog.remoting.subscription import Subscription
    from seglog.server.async_server import AsyncServer
    from seglog.server.limits import ServerLimits
    from seglog.server.listening import Listener
    from seglog.server.server import Server
    from seglog.spark.source.scan import scan
    from seglog.storage.format.get_status import GetStatus
    from seglog.storage.format.record.message import Message
    from seglog.storage.format.record.tags import tags_code
    from seglog.storage.reads.get import GetResult
    from seglog.storage.store import MessageStore
    from seglog.storage.writes.flush import Durability
    from seglog.storage.writes.values import NewMessage, PutResult

__version__ = "0.1.0"

__all__ = [
    "AsyncLitePullConsumer",
    "AsyncOrderlyConsumer",
    "AsyncProducer",
    "AsyncPushConsumer",
    "AsyncServer",
    "BatchSendResult",
    "Broker",
    "BrokerConfig",
    "Client",
    "Clock",
    "Consume",
    "ConsumeConcurrentlyContext",
    "ConsumeFrom",
    "ConsumeOrderlyContext",
    "DecodedMessage",
    "Durability",
    "GetResult",
    "GetStatus",
    "Listener",
    "LitePullConsumer",
    "LocalLink",
    "Message",
    "MessageModel",
    "MessageQueue",
    "MessageStore",
    "NewMessage",
    "OrderlyConsumer",
    "Producer",
    "PushConsumer",
    "PutResult",
    "SeglogError",
    "SendResult",
    "Server",
    "ServerLimits",
    "Subscription",
    "SystemClock",
    "VirtualClock",
    "__version__",
    "make_client",
    "scan",
    "sleep_ms",
    "tags_code",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    __getattr__ = lazy_exports(
        __name__,
        {
            "Broker": "broker.broker",
            "BrokerConfig": "broker.settings.config",
            "Client": "client.client",
            "make_client": "client.connect",
            "scan": "spark.source.scan",
            "sleep_ms": "client.home.stepping",
            "Clock": "clock",
            "SystemClock": "clock",
            "VirtualClock": "clock",
            "SeglogError": "errors",
            "Consume": "consumer.listener",
            "ConsumeFrom": "consumer.listener",
            "ConsumeConcurrentlyContext": "consumer.contexts",
            "ConsumeOrderlyContext": "consumer.contexts",
            "DecodedMessage": "consumer.payloads",
            "Durability": "storage.writes.flush",
            "LocalLink": "client.links.local_link",
            "Message": "storage.format.record.message",
            "tags_code": "storage.format.record.tags",
            "GetResult": "storage.reads.get",
            "GetStatus": "storage.format.get_status",
            "MessageStore": "storage.store",
            "NewMessage": "storage.writes.values",
            "PutResult": "storage.writes.values",
            "AsyncLitePullConsumer": "consumer.lite.lite_pull",
            "LitePullConsumer": "consumer.lite.lite_pull",
            "AsyncOrderlyConsumer": "consumer.orderly",
            "OrderlyConsumer": "consumer.orderly",
            "AsyncProducer": "producer.producer",
            "Producer": "producer.producer",
            "BatchSendResult": "producer.send_result",
            "SendResult": "producer.send_result",
            "AsyncPushConsumer": "consumer.push",
            "PushConsumer": "consumer.push",
            "AsyncServer": "server.async_server",
            "Listener": "server.listening",
            "Server": "server.server",
            "ServerLimits": "server.limits",
            "MessageModel": "remoting.heartbeat",
            "MessageQueue": "remoting.message_queue",
            "Subscription": "remoting.subscription",
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)

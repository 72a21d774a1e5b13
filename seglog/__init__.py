"""seglog: a RocketMQ-style message log as an embedded library.

The public names load on first use, so that ``import seglog`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seglog.broker.broker import Broker
    from seglog.client.local_link import LocalLink
    from seglog.clock import Clock, SystemClock, VirtualClock
    from seglog.consumer.listener import Consume, ConsumeFrom
    from seglog.consumer.orderly import OrderlyConsumer
    from seglog.errors import SeglogError
    from seglog.producer.producer import Producer
    from seglog.storage.format.get_status import GetStatus
    from seglog.storage.format.record.message import Message
    from seglog.storage.reads.get import GetResult
    from seglog.storage.store import MessageStore
    from seglog.storage.writes.flush import Durability
    from seglog.storage.writes.values import NewMessage

__version__ = "0.1.0"

_HOMES: Final = {
    "Broker": "seglog.broker.broker",
    "Clock": "seglog.clock",
    "SystemClock": "seglog.clock",
    "VirtualClock": "seglog.clock",
    "SeglogError": "seglog.errors",
    "Consume": "seglog.consumer.listener",
    "ConsumeFrom": "seglog.consumer.listener",
    "Durability": "seglog.storage.writes.flush",
    "LocalLink": "seglog.client.local_link",
    "Message": "seglog.storage.format.record.message",
    "GetResult": "seglog.storage.reads.get",
    "GetStatus": "seglog.storage.format.get_status",
    "MessageStore": "seglog.storage.store",
    "NewMessage": "seglog.storage.writes.values",
    "OrderlyConsumer": "seglog.consumer.orderly",
    "Producer": "seglog.producer.producer",
}

__all__ = [
    "Broker",
    "Clock",
    "Consume",
    "ConsumeFrom",
    "Durability",
    "GetResult",
    "GetStatus",
    "LocalLink",
    "Message",
    "MessageStore",
    "NewMessage",
    "OrderlyConsumer",
    "Producer",
    "SeglogError",
    "SystemClock",
    "VirtualClock",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Imports a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'seglog' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

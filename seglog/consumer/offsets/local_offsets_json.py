"""The text of a client's own offset file, ``offsets.json``: byte for byte as RocketMQ 5.4.0 writes it.

    {"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:5}}

with each name on a line of its own, indented with tabs. The order of queues has no meaning: Java's is that of
its hash table, seglog's is sorted.

Source: ``OffsetSerializeWrapper.java``, with fastjson 1.2.83.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeGuard

from seglog.arguments import MAX_I64
from seglog.errors import CorruptError
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.config import ConfigValue, decode_config, encode_config

_TABLE: Final = "offsetTable"
_NONE: Final = -1


def encode_local_offsets(offsets: Mapping[MessageQueue, int]) -> bytes:
    """Returns the text of a file, in UTF-8.

    Args:
        offsets: The next queue offset of each queue.
    """
    entries = [
        _indented({"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic})
        + f":{offset}"
        for queue, offset in sorted(offsets.items())
    ]
    between = ",\n\t\t"
    return f'{{\n\t"{_TABLE}":{{\n\t\t{between.join(entries)}\n\t}}\n}}'.encode()


def decode_local_offsets(value: ConfigValue) -> dict[MessageQueue, int]:
    """Returns the next queue offset of each queue that has one.

    Java's client takes -1 for none (``RebalancePushImpl.java`` computePullFromWhere).

    Args:
        value: What :func:`~seglog.storage.format.config.decode_config` returns for the file.

    Raises:
        CorruptError: It is not a table of offsets.
    """
    table = value.get(_TABLE) if isinstance(value, Mapping) else None
    if not isinstance(table, Mapping):
        raise CorruptError("local-offsets", expected=f'an object with "{_TABLE}"', found=repr(value)[:80])
    found: dict[MessageQueue, int] = {}
    for key, offset in table.items():
        queue = decode_config(key) if isinstance(key, str) else key
        names = queue if isinstance(queue, Mapping) else {}
        topic, broker_name, queue_id = names.get("topic"), names.get("brokerName"), names.get("queueId")
        if not (isinstance(topic, str) and isinstance(broker_name, str)):
            raise _damage(key, offset)
        if offset == _NONE and _is_number(queue_id):
            continue
        if not (_is_number(queue_id) and _is_number(offset)):
            raise _damage(key, offset)
        found[MessageQueue(topic, broker_name, queue_id)] = offset
    return found


def _damage(key: object, offset: object) -> CorruptError:
    found = f"{key!r}: {offset!r}"[:200]
    return CorruptError("local-offsets", expected="a queue and its offset", found=found)


def _indented(names: Mapping[str | int, ConfigValue]) -> str:
    return encode_config(names).replace("\n", "\n\t\t")


def _is_number(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MAX_I64

r"""Lines of ``seglog dump --json``: what RocketMQ's own store serves, one JSON object a line.

Field names, their order and the forms of values are those that a dump program linked against RocketMQ
prints, so that two dumps can be compared as text: text is ASCII with every other UTF-16 unit as
``\uXXXX`` in lower-case hexadecimal (control characters too), properties are sorted as Java's
``TreeMap<String>`` sorts, hosts look like Java's ``InetSocketAddress.toString``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from typing import Final

from seglog.storage.format.record import TRANSACTION_MASK, Message
from seglog.storage.format.record import properties as props

_SHORT_ESCAPE: Final = re.compile(r'\\(?:["\\]|u[0-9a-f]{4}|([bfnrt]))')
_CONTROL_BY_LETTER: Final = {"b": "\\u0008", "t": "\\u0009", "n": "\\u000a", "f": "\\u000c", "r": "\\u000d"}


def java_order(text: str) -> bytes:
    """Returns the key by which Java's ``String.compareTo`` sorts: UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def json_text(text: str) -> str:
    r"""Returns ``text`` as a JSON string with ``\uXXXX`` for everything outside of printable ASCII."""
    encoded = encode_basestring_ascii(text)
    if "\\" in encoded:
        # Python writes \n; the compared form is \u000a.
        return _SHORT_ESCAPE.sub(_long_escape, encoded)
    return encoded


def store_line(min_phy_offset: int, max_phy_offset: int) -> str:
    """Returns the line about the log as a whole."""
    return f'{{"kind":"store","minPhyOffset":{min_phy_offset},"maxPhyOffset":{max_phy_offset}}}\n'


def queue_line(
    topic: str,
    queue_id: int,
    min_offset: int,
    max_offset: int,
    max_phy_offset: int,
    kind: str,
    min_position_bytes: int,
) -> str:
    """Returns the line about one queue.

    Args:
        topic: Topic of the queue.
        queue_id: Queue id.
        min_offset: Queue offset of its first message.
        max_offset: Queue offset of its next message.
        max_phy_offset: End of the record of its last message.
        kind: ``SimpleCQ`` or ``BatchCQ``.
        min_position_bytes: Position of its first message in the queue's files.
    """
    return (
        f'{{"kind":"queue","topic":{_cached(topic)},"queueId":{queue_id},"cqType":"{kind}",'
        f'"minOffset":{min_offset},"maxOffset":{max_offset},"cqMin":{min_offset},"cqMax":{max_offset},'
        f'"cqMinLogicOffset":{min_position_bytes},"cqMaxPhysicOffset":{max_phy_offset},'
        f'"messageTotalInQueue":{max_offset - min_offset}}}\n'
    )


def message_line(
    cq_topic: str, cq_queue_id: int, cq_offset: int, tags_code: int, message: Message, batch_size: int = 1
) -> str:
    """Returns the line about one unit of a queue and the message that it leads to.

    Args:
        cq_topic: Topic of the queue; for ``%LMQ%`` queues it differs from the message's topic.
        cq_queue_id: Queue id.
        cq_offset: Queue offset of the unit.
        tags_code: Tags code of the unit.
        message: The message that the unit leads to.
        batch_size: Number of messages of the unit.
    """
    body = message.body
    batch = f'"batchNum":{batch_size},' if batch_size > 1 else ""
    return (
        f'{{"kind":"msg","cqTopic":{_cached(cq_topic)},"cqQueueId":{cq_queue_id},"cqOffset":{cq_offset},'
        f'"cqPos":{message.phy_offset},"cqSize":{message.size_bytes},"tagsCode":{tags_code},{batch}'
        f'"topic":{_cached(message.topic)},"queueId":{message.queue_id},'
        f'"queueOffset":{message.queue_offset},"commitLogOffset":{message.phy_offset},'
        f'"storeSize":{message.size_bytes},"bodyCRC":{message.body_crc},"sysFlag":{message.sys_flag},'
        f'"flag":{message.flag},"bornTimestamp":{message.born_timestamp_ms},'
        f'"storeTimestamp":{message.store_timestamp_ms},"bornHost":"{message.born_host.java_text()}",'
        f'"storeHost":"{message.store_host.java_text()}","reconsumeTimes":{message.reconsume_times},'
        f'"preparedTransactionOffset":{message.prepared_transaction_offset},"bodyLen":{len(body)},'
        f'"bodySha256":"{sha256(body).hexdigest()}","properties":{_properties(message.properties)}}}\n'
    )


def record_line(magic: int, tags_code: int, message: Message) -> str:
    """Returns the line about one record of the log, whether or not a queue leads to it."""
    found = message.properties
    # Java starts with empty keys and sets them only if there are any properties.
    keys = found.get(props.KEYS) if message.properties_raw else ""
    return (
        f'{{"kind":"log","pos":{message.phy_offset},"size":{message.size_bytes},"magic":"{magic:08x}",'
        f'"ok":true,"msgSize":{message.size_bytes},"topic":{_cached(message.topic)},'
        f'"queueId":{message.queue_id},"cqOffset":{message.queue_offset},"tagsCode":{tags_code},'
        f'"sysFlag":{message.sys_flag},"txType":{(message.sys_flag & TRANSACTION_MASK) >> 2},'
        f'"keys":{_text_or_null(keys)},"uniqKey":{_text_or_null(found.get(props.UNIQ_KEY))}}}\n'
    )


def filler_line(phy_offset: int, size_bytes: int, magic: int) -> str:
    """Returns the line about the filler that ends a segment file."""
    return f'{{"kind":"log","pos":{phy_offset},"size":{size_bytes},"magic":"{magic:08x}"}}\n'


def walk_stop_line() -> str:
    """Returns the line that ends the walk over a log without any file."""
    return '{"kind":"walkStop","pos":-1,"why":"no data"}\n'


def hole_line(file: str, position_bytes: int, size_bytes: int, why: str) -> str:
    """Returns the line about bytes of the log that should be records and cannot be served."""
    return (
        f'{{"kind":"hole","file":{json_text(file)},"pos":{position_bytes},"size":{size_bytes},'
        f'"why":{json_text(why)}}}\n'
    )


def lost_line(topic: str, queue_id: int, queue_offset: int, count: int, kind: str) -> str:
    """Returns the line about lost or repairable messages of a queue; their offsets are not used again."""
    return (
        f'{{"kind":"{kind}","topic":{_cached(topic)},"queueId":{queue_id},"firstOffset":{queue_offset},'
        f'"count":{count}}}\n'
    )


def finding_line(fields: Mapping[str, object]) -> str:
    """Returns the line about a finding.

    Args:
        fields: The fields of ``info --json``.
    """
    return json.dumps({"kind": "finding", **fields}, separators=(",", ":")) + "\n"


def _properties(found: Mapping[str, str]) -> str:
    return "{" + ",".join([f"{_cached(name)}:{json_text(found[name])}" for name in _sorted(found)]) + "}"


def _sorted(found: Iterable[str]) -> list[str]:
    names = sorted(found)
    # Code points and UTF-16 units sort in the same way below the surrogates.
    return names if all(map(str.isascii, names)) else sorted(names, key=java_order)


def _text_or_null(text: str | None) -> str:
    return "null" if text is None else json_text(text)


def _long_escape(match: re.Match[str]) -> str:
    letter: str | None = match[1]
    return match[0] if letter is None else _CONTROL_BY_LETTER[letter]


_cached: Final = lru_cache(maxsize=65536)(json_text)
"""A cache for topics and names of properties, of which there are few."""

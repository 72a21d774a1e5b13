"""How RocketMQ serves the records of a store without record CRC whose damage nothing covers.

``bodyCRC`` covers the body alone. Magic, lengths, topic, place and queue offset have to agree with what is
around the record, so a repair puts them right or gives the record up. All else is served as its bytes stand,
and a record that names another queue is not in its own any more, nor one whose flags are of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.storage.format.layout import I32
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import HEAD_V4, decode_message, unit_tags_code
from seglog.storage.format.record.record import HOST_BITS
from seglog.storage.format.record.sys_flag import INNER_BATCH, takes_queue_offset
from tests.interop.judging.lines import Place, differences, message_line, place
from tests.interop.judging.questions import Line
from tests.support.damage.campaign import Subject

_AT: Final = HEAD_V4.offsets
_UNCOVERED: Final = (
    slice(_AT["flag"], _AT["queue_offset"]),
    slice(_AT["sys_flag"], _AT["body_bytes"]),
)
"""Bytes of a record's head that nothing covers, its queue apart."""
_FAMILIES_AT: Final = _AT["born_timestamp_ms"] - 1
"""The byte of the flags with the address families of the hosts."""
_MAGIC: Final = slice(_AT["magic"], _AT["body_crc"])
_QUEUE_ID: Final = slice(_AT["queue_id"], _AT["flag"])
_NUMBERS: Final = slice(_AT["queue_offset"], _AT["sys_flag"])
"""Queue offset and place, by which a record is found elsewhere."""
_BODY_CRC: Final = slice(_AT["body_crc"], _AT["queue_id"])
_FIELDS: Final = (
    "flag",
    "sysFlag",
    "bornTimestamp",
    "bornHost",
    "storeTimestamp",
    "storeHost",
    "reconsumeTimes",
    "preparedTransactionOffset",
    "properties",
)
"""What lines call these, and the properties."""
_OF_UNIT: Final = ("cqTopic", "cqQueueId", "cqOffset", "cqPos", "cqSize", "tagsCode")
"""What lines say of the unit that leads to a record."""
_MAX_PORT: Final = 0xFFFF
_REPLACED: Final = re.compile("\ufffd+")


@dataclass(frozen=True)
class Standing:
    """A record that a damage changed, as its bytes stand.

    Attributes:
        whole: Its line of the undamaged store.
        line: Its line in its own queue, if a repair puts right what can be.
        copies: The same for each copy of it at another place of the log, where a sector was written to.
        queue_id: The queue that it names now; None if its flags give it a place in none: of a transaction
            that has not ended, or of a batch.
    """

    whole: Line
    line: Line
    copies: tuple[Line, ...]
    queue_id: int | None

    @property
    def is_moved(self) -> bool:
        """Whether it is in its own queue no more, unless a repair puts that right."""
        return bool(self.queue_id != self.whole["queueId"])

    @property
    def elsewhere(self) -> list[Line]:
        """Its line in the queue that it names now, if that is another one."""
        if self.queue_id is None or not self.is_moved:
            return []
        of_record = {} if self.line["topic"] is None else {"queueId": self.queue_id}
        return [self.line | {"cqQueueId": self.queue_id} | of_record]

    def as_served(self, served: Line | None) -> Line:
        """Returns the form of the record that it is served in, and how its bytes stand if it is in none.

        A repair may have found its properties again. A unit has the tags of the record now, or of before.
        """
        forms = [self.whole, *(form for one in (self.line, *self.copies) for form in self._forms(one))]
        if served is not None:
            for form in forms:
                if not differences([_as_java_decodes(form, served)], [served]):
                    return _as_java_decodes(form, served)
        return self.line

    def _forms(self, one: Line) -> list[Line]:
        forms = [one]
        for name in ("tagsCode",) if one["topic"] is None else ("properties", "tagsCode"):
            forms += [form | {name: self.whole[name]} for form in forms]
        return forms


def _as_java_decodes(form: Line, served: Line) -> Line:
    """Returns a line with as many U+FFFD as a served one: Python puts fewer for some bytes, or more."""
    shown = served.get("properties")
    is_same = form["properties"] and shown and _in_one(form["properties"]) == _in_one(shown)
    return form | {"properties": shown} if is_same else form


def _in_one(properties: dict[str, str]) -> dict[str, str]:
    return {_REPLACED.sub("?", name): _REPLACED.sub("?", value) for name, value in properties.items()}


def standing_records(subject: Subject, damaged: Path, whole: Iterable[Line]) -> dict[Place, Standing]:
    """Returns the records that a damage changed where nothing covers them, by their places in the queues.

    Args:
        subject: The undamaged store, whose records have no record CRC.
        damaged: The damaged one, not yet repaired.
        whole: What RocketMQ serves of the undamaged one.
    """
    return {
        place(line): one for line in whole if line["kind"] == "msg" for one in _of(subject, damaged, line)
    }


def _of(subject: Subject, damaged: Path, line: Line) -> Iterator[Standing]:
    segment = subject.segment_size_bytes
    first = line["cqPos"] - line["cqPos"] % segment
    at, size = line["cqPos"] - first, line["cqSize"]
    was = _log_file(subject.root, first)[at : at + size]
    now = _log_file(damaged, first)[at : at + size]
    if was == now or len(was) != len(now):
        return
    mixed = _mixed(was, now)
    flags = decode_message(mixed).sys_flag
    has_place = takes_queue_offset(flags) and not flags & INNER_BATCH
    mixed[_QUEUE_ID] = now[_QUEUE_ID]
    mixed[_FAMILIES_AT] = now[_FAMILIES_AT] & HOST_BITS | mixed[_FAMILIES_AT] & ~HOST_BITS
    queue_id: int | None = line["queueId"]
    if mixed == now:  # nothing else is wrong with it: it is a record
        queue_id = I32.unpack_from(now, _AT["queue_id"])[0] if has_place else None
    copies = tuple(_stands(line, was, copy) for copy in _copies(damaged, was, line["cqPos"]))
    yield Standing(line, _stands(line, was, now), copies, queue_id)


def _copies(damaged: Path, was: bytes, phy_offset: int) -> Iterator[bytes]:
    """Yields what stands at other places of a damaged log behind the numbers of a record."""
    for path in sorted((damaged / COMMIT_LOG).iterdir()):
        content = path.read_bytes()
        at = content.find(was[_NUMBERS])
        while at >= 0:
            start = at - _NUMBERS.start
            copy = content[start : start + len(was)] if start >= 0 else b""
            is_record = len(copy) == len(was) and copy[_MAGIC] == was[_MAGIC]
            if is_record and int(path.name) + start != phy_offset:
                yield copy
            at = content.find(was[_NUMBERS], at + 1)


def _mixed(was: bytes, now: bytes) -> bytearray:
    """Returns a record with those of its present bytes that nothing covers."""
    original = decode_message(was)
    mixed = bytearray(was)
    properties = slice(len(was) - len(original.properties_raw), len(was))
    for part in (*_UNCOVERED, properties, *([] if original.body else [_BODY_CRC])):
        mixed[part] = now[part]
    # The length of a record shows what its flags say of its hosts.
    mixed[_FAMILIES_AT] = (now[_FAMILIES_AT] & ~HOST_BITS) | (was[_FAMILIES_AT] & HOST_BITS)
    return mixed


def _stands(line: Line, was: bytes, now: bytes) -> Line:
    """Returns the line of a record in its own queue as its present bytes stand."""
    mixed = _mixed(was, now)
    message = decode_message(mixed)
    stated = message_line(message)
    stands = line | {name: stated[name] for name in _FIELDS}
    tags_code = unit_tags_code(message.topic.encode(), message.properties_raw, message.store_timestamp_ms)
    stands |= {"tagsCode": tags_code, "bodyCRC": I32.unpack_from(mixed, _AT["body_crc"])[0]}
    if not all(0 <= host.port <= _MAX_PORT for host in (message.born_host, message.store_host)):
        # No client and no broker of RocketMQ decodes such a record.
        stands = {name: value if name in _OF_UNIT else None for name, value in stands.items()}
    return stands


def _log_file(root: Path, first: int) -> bytes:
    path = root / COMMIT_LOG / segment_file_name(first)
    return path.read_bytes() if path.is_file() else b""

"""Sends messages of a store again, each once, and keeps a receipt for each.

Receipts are lines of JSON below ``<store>/seglog/receipts``. Before some messages are put, a line announces
them, with the queue offset from which on they will be stored; afterwards a line records the result for each.
If a run is stopped in between, the next run finds its messages by a property with the id of the original, so
that none is sent twice.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from typing import Any, Final

from seglog.clock import Clock
from seglog.doctor.message.queue_messages import iter_from
from seglog.errors import CorruptError
from seglog.storage.format.config import decode_json_object
from seglog.storage.format.names import OURS
from seglog.storage.format.record import Host, tags_code
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.reads import MessageRow
from seglog.storage.store import MessageStore

RECEIPTS: Final = f"{OURS}/receipts"
RESENT_ID: Final = "SEGLOG_RESENT_ID"
"""Property of a message that was sent again: the key of its receipt."""
_AT_A_TIME: Final = 64
_KEPT_FLAGS: Final = flags.COMPRESSED | flags.COMPRESSION_MASK | flags.MULTI_TAGS
_DROPPED: Final = (props.INNER_MULTI_DISPATCH, props.INNER_MULTI_QUEUE_OFFSET, RESENT_ID)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message that must be sent again.

    Attributes:
        key: Identifies it among all messages of the same file of receipts.
        row: The message to store, without its place.
        old_id: Its message id.
        group: The group that it is for; empty for all groups.
    """

    key: str
    row: MessageRow
    old_id: str
    group: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of a listener for a message.

    Attributes:
        status: ``sent`` now; ``found``, sent by a run that was stopped; ``was-sent`` by an earlier run.
    """

    key: str
    status: str
    group: str
    old_id: str
    new_id: str
    topic: str
    queue_id: int
    queue_offset: int

    @property
    def is_new(self) -> bool:
        """Whether the message was sent by this run, or by one that left no receipt."""
        return self.status != "was-sent"

    def fields(self) -> dict[str, object]:
        """Returns the fields of the receipt for programs."""
        return {
            "kind": "receipt",
            "status": self.status,
            "group": self.group or None,
            "oldId": self.old_id,
            "newId": self.new_id,
            "topic": self.topic,
            "queueId": self.queue_id,
            "queueOffset": self.queue_offset,
        }


class ReceiptFile:
    """The receipts of one purpose.

    Attributes:
        done: Receipts by key.
        announced: Topic, queue and first queue offset by key, for messages without a receipt.

    Args:
        store: The store; with a store that was opened for reading receipts can only be read.
        name: Name of the purpose.
    """

    def __init__(self, store: MessageStore, name: str) -> None:
        self._files = store.files
        self._path = store.path / RECEIPTS / f"{name}.jsonl"
        self.done: dict[str, Receipt] = {}
        self.announced: dict[str, tuple[str, int, int]] = {}
        data = self._files.read_file(self._path) if self._files.exists(self._path) else b""
        self._end_bytes = data.rfind(b"\n") + 1  # half a line of a run that was killed may follow
        for number, line in enumerate(data[: self._end_bytes].splitlines(), 1):
            try:
                self._take(decode_json_object(line))
            except (CorruptError, TypeError, KeyError, ValueError) as error:
                raise CorruptError(
                    "receipt",
                    file=f"{RECEIPTS}/{name}.jsonl",
                    expected=f"a receipt in line {number}",
                    found=error,
                ) from error

    def announce(self, places: Mapping[str, tuple[str, int, int]]) -> None:
        """Records durably that messages will be put."""
        self._write([{"announced": key, "place": place} for key, place in places.items()])

    def add(self, receipts: Sequence[Receipt]) -> None:
        """Records durably the results for messages."""
        self._write([asdict(receipt) for receipt in receipts])

    def _take(self, line: dict[str, Any]) -> None:
        if "announced" in line:
            topic, queue_id, offset = line["place"]
            self.announced[str(line["announced"])] = str(topic), int(queue_id), int(offset)
        else:
            receipt = _receipt_of(line)
            self.done[receipt.key] = receipt
            self.announced.pop(receipt.key, None)

    def _write(self, lines: Sequence[dict[str, object]]) -> None:
        data = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
        is_new = not self._files.exists(self._path)
        if is_new:
            self._files.make_dirs(self._path.parent)
        handle = self._files.create(self._path, 0) if is_new else self._files.open(self._path, writable=True)
        with closing(handle):
            handle.set_size(self._end_bytes)
            handle.write_at(data, self._end_bytes)
            handle.sync()
        if is_new:
            self._files.sync_dir(self._path.parent)
        self._end_bytes += len(data)
        for line in lines:
            self._take(line)


def _receipt_of(line: dict[str, Any]) -> Receipt:
    """Returns the receipt of a line.

    Raises:
        TypeError: A field is missing, unknown or of another type.
    """
    for field in fields(Receipt):
        if type(line.get(field.name)).__name__ != field.type:  # annotations are strings here
            raise TypeError(f"{field.name} is {line.get(field.name)!r}")
    return Receipt(**line)


class Resender:
    """Sends messages again.

    Args:
        store: The store, open for writing.
        receipts: Receipts of earlier runs.
        clock: Gives the time of receipts, and the rate.
        rate: Most messages per second; 0 for no limit.
    """

    def __init__(self, store: MessageStore, receipts: ReceiptFile, clock: Clock, rate: int = 0) -> None:
        self._store = store
        self._receipts = receipts
        self._clock = clock
        self._rate = rate
        self._pause = threading.Condition()

    def send(self, parcels: Iterable[Parcel]) -> Iterator[Receipt]:
        """Sends messages without a receipt, and yields the receipt of each message.

        Raises:
            FullError: There is no space; messages that were sent before have their receipts.
            StoreError: A message was refused.
        """
        found = self._find_announced()
        at_a_time = min(_AT_A_TIME, self._rate) if self._rate else _AT_A_TIME
        source = iter(parcels)
        while some := list(islice(source, at_a_time)):
            begun_ms = self._clock.monotonic_ms()
            new = self._send(some, found)
            for parcel in some:
                if parcel.key in new:
                    yield new[parcel.key]
                else:
                    yield replace(self._receipts.done[parcel.key], status="was-sent")
            if self._rate and new:
                self._rest(begun_ms + 1000 * len(new) / self._rate)

    def _send(self, parcels: Sequence[Parcel], found: Mapping[str, tuple[str, int]]) -> dict[str, Receipt]:
        store, receipts = self._store, self._receipts
        wanted = {one.key: one for one in parcels if one.key not in receipts.done}
        made: dict[str, Receipt] = {}
        for key, one in wanted.items():
            if key in found:
                new_id, queue_offset = found[key]
                made[key] = _receipt(one, "found", new_id, queue_offset)
        missing = {key: one for key, one in wanted.items() if key not in made}
        if missing:
            queues = {key: (one.row.topic, one.row.queueId) for key, one in missing.items()}
            receipts.announce({key: (*queue, store.max_offset(*queue)) for key, queue in queues.items()})
        for key, one in missing.items():
            made[key] = self._put(one)
        if made:
            store.flush()
            receipts.add(list(made.values()))
        return made

    def _put(self, parcel: Parcel) -> Receipt:
        row = parcel.row
        named = {name: value for name, value in row.named.items() if name not in _DROPPED}
        put = self._store.append(
            row.topic,
            row.queueId,
            row.body,
            props.encode_properties({**named, RESENT_ID: parcel.key}),
            tags_code(named.get(props.TAGS, "")),
            sys_flag=row.sysFlag & _KEPT_FLAGS,
            flag=row.flag,
            born_timestamp_ms=row.bornTimestamp,
            born_host=Host.parse(row.bornHost),
            reconsume_times=row.reconsumeTimes,
        )
        return _receipt(parcel, "sent", put.message_id, put.queue_offset)

    def _find_announced(self) -> dict[str, tuple[str, int]]:
        """Returns id and place, by key, of messages that a run put before it was stopped."""
        starts: dict[tuple[str, int], int] = {}
        for topic, queue_id, first in self._receipts.announced.values():
            starts[topic, queue_id] = min(first, starts.get((topic, queue_id), first))
        return {
            message.properties[RESENT_ID]: (message.message_id, message.queue_offset)
            for (topic, queue_id), first in starts.items()
            for message in iter_from(self._store, topic, queue_id, first)
            if message.properties.get(RESENT_ID) in self._receipts.announced
        }

    def _rest(self, until_ms: float) -> None:
        with self._pause:
            while (left_ms := until_ms - self._clock.monotonic_ms()) > 0:
                self._clock.wait(self._pause, left_ms)


def _receipt(parcel: Parcel, status: str, new_id: str, queue_offset: int) -> Receipt:
    row = parcel.row
    return Receipt(
        parcel.key, status, parcel.group, parcel.old_id, new_id, row.topic, row.queueId, queue_offset
    )

"""Sends messages of a store again, each once, and keeps a receipt for each.

Receipts are lines of JSON below ``<store>/seglog/receipts``. Before some messages are put, the file says that
they are going to be, and from which queue offset on they will be found; afterwards it says what became of
each. A run that follows one that was stopped in between finds the messages by a property that names the one
they were made of, so that none is sent twice.
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
"""Of a message that was sent again: the key of its receipt."""
_AT_A_TIME: Final = 64
_KEPT_FLAGS: Final = flags.COMPRESSED | flags.COMPRESSION_MASK | flags.MULTI_TAGS
_DROPPED: Final = (props.INNER_MULTI_DISPATCH, props.INNER_MULTI_QUEUE_OFFSET, RESENT_ID)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message to be sent again.

    Attributes:
        key: Names it among all that the same file of receipts is for.
        row: The message as it is to be stored, but for its place.
        old_id: Its message id.
        group: The group that it is for; empty for all.
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
        """Whether there was none before."""
        return self.status != "was-sent"

    def fields(self) -> dict[str, object]:
        """Returns it for programs."""
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
        announced: Topic, queue and first queue offset by key, of messages without a receipt.

    Args:
        store: The store; a store that was opened for reading only reads them.
        name: What they are for.
    """

    def __init__(self, store: MessageStore, name: str) -> None:
        self._files = store.files
        self._path = store.path / RECEIPTS / f"{name}.jsonl"
        self.done: dict[str, Receipt] = {}
        self.announced: dict[str, tuple[str, int, int]] = {}
        data = self._files.read_file(self._path) if self._files.exists(self._path) else b""
        self._end_bytes = data.rfind(b"\n") + 1  # behind it is half a line of a run that was killed
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
        """Notes that messages are going to be put, durably."""
        self._write([{"announced": key, "place": place} for key, place in places.items()])

    def add(self, receipts: Sequence[Receipt]) -> None:
        """Notes what became of messages, durably."""
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
    """Returns a receipt as it was written.

    Raises:
        TypeError: A field is missing, unknown or of another type.
    """
    for field in fields(Receipt):
        if type(line.get(field.name)).__name__ != field.type:  # annotations are texts here
            raise TypeError(f"{field.name} is {line.get(field.name)!r}")
    return Receipt(**line)


class Resender:
    """Sends messages again.

    Args:
        store: The store, open for writing.
        receipts: What was sent before.
        clock: Theirs, for the rate.
        rate: Messages a second at most; 0 for as many as go.
    """

    def __init__(self, store: MessageStore, receipts: ReceiptFile, clock: Clock, rate: int = 0) -> None:
        self._store = store
        self._receipts = receipts
        self._clock = clock
        self._rate = rate
        self._pause = threading.Condition()

    def send(self, parcels: Iterable[Parcel]) -> Iterator[Receipt]:
        """Sends what has no receipt yet, and yields the receipt of each.

        Raises:
            FullError: There is no space; what was sent before has its receipt.
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
        """Returns id and place by key of messages that a run put before it was stopped."""
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

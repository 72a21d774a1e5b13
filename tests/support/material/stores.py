"""Small stores for tests, and everything that a store serves as plain values."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypedDict, Unpack

from seglog.clock import Clock, VirtualClock
from seglog.storage.files.files import Files
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.queue.compaction import CompactionSizes
from seglog.storage.format.record.message import Message
from seglog.storage.reads.reader import Reader
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.writer import Writer

SEGMENT_BYTES: Final = 4096
QUEUE_FILE_BYTES: Final = 200
UNITS_PER_FILE: Final = QUEUE_FILE_BYTES // 20


class Lengths(TypedDict):
    """The lengths of a store's files that ``MessageStore.open`` takes."""

    segment_size_bytes: int
    queue_file_size_bytes: int


class IndexLengths(TypedDict):
    """The length of a store's key-index files, as ``MessageStore.open`` takes it."""

    index_geometry: IndexGeometry


class AllLengths(Lengths, IndexLengths):
    """The lengths of all of a store's files."""


class SomeLengths(TypedDict, total=False):
    """Lengths for a store that may exist already, and then keeps its own."""

    segment_size_bytes: int
    queue_file_size_bytes: int


class OpenOptions(TypedDict, total=False):
    """What ``MessageStore.open`` takes by name."""

    create: bool
    read_only: bool
    segment_size_bytes: int
    queue_file_size_bytes: int
    index_geometry: IndexGeometry
    compaction_sizes: CompactionSizes
    durability: Durability
    record_crc: bool
    max_message_size_bytes: int
    flush_interval_ms: int
    recovery_step_bytes: int
    clock: Clock
    files: Files


class OpenStore(Protocol):
    """Opens the small store of that name."""

    def __call__(self, name: str = "store", **options: Unpack[OpenOptions]) -> MessageStore: ...


SMALL_INDEX: Final[IndexLengths] = {"index_geometry": IndexGeometry(50, 200)}
"""An index file has 420 MB by default: holes, but not in every copy of a store."""
SMALL: Final[Lengths] = {"segment_size_bytes": SEGMENT_BYTES, "queue_file_size_bytes": QUEUE_FILE_BYTES}

MakeStore: TypeAlias = Callable[[Path], Path]
"""Makes a store in a folder that does not exist, and returns the folder."""
Served = dict[tuple[str, int], list[Message]]


@dataclass(frozen=True)
class Written:
    """A message that was put: where, and what must come back."""

    topic: str
    queue_id: int
    queue_offset: int
    body: bytes
    tags: str | None


def writer_of(store: MessageStore) -> Writer:
    """Returns the writing side of a store that was not opened to read only."""
    assert isinstance(store._core, Writer)
    return store._core


def reader_of(store: MessageStore) -> Reader:
    """Returns the reading side of a store that was opened to read only."""
    assert isinstance(store._core, Reader)
    return store._core


def fill(
    store: MessageStore, count: int, *, topics: int = 2, queues: int = 2, body_bytes: int = 40
) -> list[Written]:
    """Puts ``count`` messages with tags in turn over topics and queues and returns them."""
    written: list[Written] = []
    for number in range(count):
        topic, queue_id = f"Topic{number % topics}", number // topics % queues
        body = b"%d:" % number + b"b" * body_bytes
        tags = (None, "TagA", "Aa", "BB")[number % 4]
        put = store.put(topic, body, queue_id=queue_id, tags=tags, keys=f"k{number}")
        written.append(Written(topic, queue_id, put.queue_offset, body, tags))
    return written


def served(store: MessageStore) -> Served:
    """Returns everything that the store gives to a reader who goes from minimum to maximum."""
    return {
        (queue.topic, queue.queue_id): read_all(store, queue.topic, queue.queue_id)
        for queue in store.queues()
    }


def read_all(store: MessageStore, topic: str, queue_id: int, wanted: str | None = None) -> list[Message]:
    """Reads one queue from its minimum on, as a consumer does, until nothing follows."""
    found: list[Message] = []
    at = store.min_offset(topic, queue_id)
    while True:
        result = store.get(topic, queue_id, at, filter=wanted)
        if result.status in {GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.NO_MESSAGE_IN_QUEUE}:
            return found
        assert result.next_offset > at, result
        found.extend(result)
        at = result.next_offset


def as_written(messages: Served) -> set[Written]:
    """Returns served messages as what was put."""
    return {
        Written(message.topic, message.queue_id, message.queue_offset, message.body, message.tags)
        for queue in messages.values()
        for message in queue
    }


def copy_store(root: Path, target: Path) -> Path:
    """Copies a store directory as it is on the disk: what a kill of its writer leaves."""
    shutil.copytree(root, target)
    return target


def new_clock() -> VirtualClock:
    """Returns a clock that stands at a moment after all golden stores were written."""
    return VirtualClock(1_800_000_000_000)

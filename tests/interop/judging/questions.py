"""Questions to the real store as values, and what it answers to a dump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from seglog.storage.reads.offset_by_time import Boundary

Line = dict[str, Any]
"""One answer: ``kind`` and what belongs to it; ``Any`` because it is JSON."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """File sizes that the real store must be told; the defaults are RocketMQ's."""

    segment_size_bytes: int = 1 << 30
    queue_file_size_bytes: int = 6_000_000
    index_slots: int = 5_000_000
    index_entries: int = 20_000_000


DEFAULT_GEOMETRY: Final = Geometry()
SMALL_GEOMETRY: Final = Geometry(64 << 10, 2_000, 500, 2_000)


@dataclass(frozen=True, slots=True)
class JavaHost:
    """An address and a port; a colon in the address makes it IPv6."""

    address: str = "127.0.0.1"
    port: int = 10911


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaMessages:
    """Messages for the real store to append to one queue, numbered from ``first``.

    Everything follows from these fields and the number: the tests know what must come back. Only single
    messages are compressed.
    """

    topic: str
    queue_id: int = 0
    count: int = 1
    first: int = 0
    batch: bool = False
    inner_batch: bool = False
    body_bytes: int = 32
    compressed: bool = False
    tags: str | None = None
    keys: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 1_700_000_000_000
    born_host: JavaHost = JavaHost()
    store_host: JavaHost = JavaHost()
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    def body(self, number: int) -> bytes:
        """Returns the body of message ``number``."""
        pattern = f"{self.topic}/{self.queue_id}/{number} ".encode()
        return (pattern * (self.body_bytes // len(pattern) + 1))[: self.body_bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Asks for messages from ``queue_offset`` on, those of ``key``, or the offset at ``timestamp_ms``.

    With ``decode`` messages are stated as a client decodes them, compressed bodies inflated; those of a key
    always are.
    """

    topic: str
    queue_id: int = 0
    queue_offset: int = 0
    max_count: int = 32
    decode: bool = False
    key: str | None = None
    timestamp_ms: int | None = None
    boundary: Boundary = "lower"


@dataclass(frozen=True, slots=True)
class Dump:
    """What the real store serves from a directory."""

    lines: list[Line]

    @property
    def refusal(self) -> str | None:
        """Why the store did not open, or None."""
        return next((line["error"] for line in self.of_kind("openFailed")), None)

    @property
    def store(self) -> Line:
        """The ``store`` line."""
        return self.of_kind("store")[0]

    def of_kind(self, kind: str) -> list[Line]:
        """Returns the lines of one kind, in order."""
        return [line for line in self.lines if line["kind"] == kind]


def question_of(op: str, probes: Sequence[Probe]) -> Line:
    """Returns what to look for, as the other side reads it."""
    return {"op": op, "probes": [camel_case(asdict(probe)) for probe in probes]}


def target_of(path: Path, geometry: Geometry, config: Mapping[str, object]) -> Line:
    """Returns where and how the other side opens a store.

    ``topics`` among the properties is no property: attributes by topic, as ``config/topics.json`` has.
    """
    config = dict(config)
    return {
        "topics": config.pop("topics", {}),
        "dir": str(path),
        "segmentBytes": geometry.segment_size_bytes,
        "queueBytes": geometry.queue_file_size_bytes,
        "config": index_sizes_of(geometry) | {name: java_text(value) for name, value in config.items()},
    }


def options_of(geometry: Geometry) -> list[str]:
    """Returns the lengths as options of a command line."""
    sizes = [
        "--segment-bytes",
        str(geometry.segment_size_bytes),
        "--queue-bytes",
        str(geometry.queue_file_size_bytes),
    ]
    for name, value in index_sizes_of(geometry).items():
        sizes += ["--set", f"{name}={value}"]
    return sizes


def index_sizes_of(geometry: Geometry) -> dict[str, str]:
    """Returns the properties that state the length of index files."""
    return {"maxHashSlotNum": str(geometry.index_slots), "maxIndexNum": str(geometry.index_entries)}


def java_text(value: object) -> str:
    """Returns a property as Java writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def camel_case(fields: dict[str, Any]) -> Line:
    """Renames snake_case keys, also in nested objects; what properties are called is left alone."""
    renamed: Line = {}
    for name, value in fields.items():
        head, *tail = name.split("_")
        nested = isinstance(value, dict) and name != "properties"
        renamed[head + "".join(word.title() for word in tail)] = camel_case(value) if nested else value
    return renamed

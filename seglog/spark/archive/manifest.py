"""Manifests of an archive: the rows that one run added of one store, as JSON that is checked when it is read.

A manifest names its store (:class:`StoreIdentity`) and, for each queue, the last record that was archived
(:class:`LastRecord`), by which a later run recognizes the store.
Manifests without a store have the first layout, which had one store and topics as names of folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, get_type_hints

from seglog.errors import InvalidArgumentError
from seglog.storage.format.names import MAX_QUEUE_ID

MAX_NUMBER: Final = (1 << 63) - 1
_LEAST_NUMBER: Final = -(1 << 63)
MAX_NAME_BYTES: Final = 64
"""Longest name of a store: escaped as Hive does, after ``store=``, it is still a legal folder name."""
HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
EXPIRED: Final = "expired"
LOST: Final = "lost"
UNREADABLE: Final = "unreadable"
SUPERSEDED: Final = "superseded"
REASONS: Final = {
    EXPIRED: "retention or a compaction took it before it was archived",
    LOST: "the store has no record for it",
    UNREADABLE: "a stretch of the log that holds no readable record",
    SUPERSEDED: "records whose queue offset another record has, as when a queue is deleted and begun again",
}
"""Why a message is not in the archive."""


class Interval(NamedTuple):
    """Queue offsets of one queue, ``first`` to ``end - 1``."""

    topic: str
    queue_id: int
    first: int
    end: int


class LastRecord(NamedTuple):
    """The record at the last queue offset of a queue that was archived.

    ``crc`` is the CRC of :mod:`seglog.spark.archive.record_crc`. Times and hosts are kept by a placeholder of
    a compaction and by an erased record. Times are in ms.
    """

    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    crc: int
    born_timestamp_ms: int
    store_timestamp_ms: int
    born_host: str
    store_host: str
    is_placeholder: bool


class Missing(NamedTuple):
    """Messages or bytes that a run did not find, with one of :data:`REASONS`.

    Either queue offsets ``first`` to ``end - 1`` of a queue; or a stretch of the log, ``phy_offset`` to
    ``phy_end``, with -1 for queue offsets that are not known.
    """

    topic: str
    queue_id: int
    first: int
    end: int
    why: str
    phy_offset: int = -1
    phy_end: int = -1


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """Identifies the store of a run.

    Attributes:
        name: Its name in the archive.
        segment_bytes: Length of its log files.
        first_phy_offset: Start of its log; -1 if there was no record at the start.
        first_crc: CRC of the record there.
    """

    name: str
    segment_bytes: int
    first_phy_offset: int
    first_crc: int


@dataclass(frozen=True, slots=True)
class Run:
    """The data that one run added.

    Attributes:
        number: Its number, from 1 on.
        made_ms: Time of the run, ms since 1970 UTC.
        files: Its files, relative to ``data``.
        intervals: The queue offsets in them.
        messages: Number of messages.
        size_bytes: Bytes of the records of messages and placeholders.
        store: The store; None in an archive of the first layout.
        last: The last record of each queue that grew.
        missing: Messages that it did not find, and that no earlier run listed.
        placeholders: Number of placeholders of a compaction; they are no messages.
    """

    number: int
    made_ms: int
    files: tuple[str, ...]
    intervals: tuple[Interval, ...]
    messages: int
    size_bytes: int
    store: StoreIdentity | None = None
    last: tuple[LastRecord, ...] = ()
    missing: tuple[Missing, ...] = ()
    placeholders: int = 0

    @property
    def name(self) -> str | None:
        """Name of the store in the archive; None in an archive of the first layout."""
        return self.store.name if self.store is not None else None


def check_store_name(name: str) -> str:
    """Returns a name if a store of an archive may have it: any printable text of up to 64 bytes.

    Raises:
        InvalidArgumentError: It may not have it.
    """
    is_plain = name.isprintable() and name.strip() == name and name not in ("", HIVE_NULL)
    if not is_plain or len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise InvalidArgumentError(
            f"a store cannot be called {name!r} in an archive",
            help=f"give --as a name of 1 to {MAX_NAME_BYTES} bytes without blanks at its ends",
        )
    return name


def run_fields(run: Run) -> dict[str, object]:
    """Returns a run as fields of its manifest."""
    return asdict(run)


def parse_run(fields: dict[str, Any]) -> Run:
    """Returns the run that a manifest describes.

    Raises:
        TypeError: A field is missing, of another type, or unknown.
        ValueError: A field has a value that is not allowed.
        KeyError: A field is missing.
    """
    store = fields.pop("store", None)
    run = Run(
        files=tuple(fields.pop("files")),
        intervals=tuple(_rows(fields.pop("intervals"), Interval)),
        last=tuple(_rows(fields.pop("last", []), LastRecord)),
        missing=tuple(_rows(fields.pop("missing", []), Missing)),
        store=None if store is None else _identity(store),
        **fields,
    )
    numbers = (run.number, run.made_ms, run.messages, run.size_bytes, run.placeholders)
    _check_numbers(numbers)
    if not all(isinstance(name, str) for name in run.files):
        raise TypeError("a file's name is none")
    if len(set(run.files)) < len(run.files):
        raise ValueError("a file twice")
    return run


def _identity(fields: object) -> StoreIdentity:
    if not isinstance(fields, dict):
        raise TypeError("a store is an object")
    store = StoreIdentity(**fields)
    if not isinstance(store.name, str):
        raise TypeError("a store's name is a text")
    try:
        check_store_name(store.name)
    except InvalidArgumentError as error:
        raise ValueError(str(error)) from error
    _check_numbers((store.segment_bytes, store.first_crc, store.first_phy_offset + 1))
    return store


def _rows(found: object, kind: Callable[..., Any]) -> Iterable[Any]:
    """Yields the rows of a list of a manifest, after their check."""
    if not isinstance(found, list):
        raise TypeError("it must be a list")
    check = _CHECKS[kind]
    types = list(get_type_hints(kind).values())
    for row in found:
        if not isinstance(row, list) or [type(value) for value in row] != types:
            raise TypeError(f"{row!r} is none of its rows")
        one = kind(*row)
        if not 0 <= one.queue_id <= MAX_QUEUE_ID and not (kind is Missing and one.queue_id == -1):
            raise ValueError(f"{one.queue_id} is no queue")
        check(one)
        yield one


def _check_interval(one: Interval) -> None:
    if not 0 <= one.first < one.end <= MAX_NUMBER:
        raise ValueError(f"{one.first} to {one.end} is no interval of a queue {one.queue_id}")


def _check_last(one: LastRecord) -> None:
    _check_numbers((one.queue_offset, one.phy_offset, one.crc))
    if not all(_LEAST_NUMBER <= value <= MAX_NUMBER for value in one[5:7]):
        raise ValueError("a time is none")


def _check_missing(one: Missing) -> None:
    of_queue = 0 <= one.first < one.end <= MAX_NUMBER
    of_log = (one.first, one.end) == (-1, -1) and 0 <= one.phy_offset < one.phy_end <= MAX_NUMBER
    if one.why not in REASONS or not (of_queue or of_log):
        raise ValueError(f"{one!r} is nothing that can be missing")


def _check_numbers(numbers: Iterable[object]) -> None:
    if not all(type(number) is int and 0 <= number <= MAX_NUMBER for number in numbers):
        raise ValueError("a number is none")


_CHECKS: Final[Mapping[object, Callable[[Any], None]]] = {
    Interval: _check_interval,
    LastRecord: _check_last,
    Missing: _check_missing,
}

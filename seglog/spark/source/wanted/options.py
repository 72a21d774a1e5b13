"""Options of the data source: the values of each, and its default.

Names are those of Spark's Kafka source if Kafka has the same concept. An unknown option is an
error, so that a typo does not read everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeAlias

from seglog.errors import InvalidArgumentError
from seglog.spark.source.wanted.paths import split_paths
from seglog.spark.source.wanted.selection import MOST, Selection, Span
from seglog.storage.splits import DEFAULT_SPLIT_BYTES, MIN_SPLIT_BYTES

MIN_BATCH_ROWS: Final = 8192
Place: TypeAlias = str | dict[tuple[str, int], int]
"""``earliest``, ``latest``, or a queue offset by topic and queue."""
AccessPath: TypeAlias = Literal["auto", "cq", "scan"]
Table: TypeAlias = Literal["messages", "queues", "offsets", "index"]
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a read; attributes are named like the options.

    Attributes:
        paths: Store directories, or their addresses: `path` is one, or several with commas between them;
            `paths` is a JSON list, which is needed for several stores in a stream, because its `load` takes
            no list. A store that is named twice is refused; a store that globs match twice is read once.
        topics: Topics to read, with commas between them; None for all. For a write `topic` is the
            topic of all rows, in place of their own.
        topic_pattern: A regular expression of Python that the whole name of a topic must match.
        queues: Queues to read, as ``{"topic": [0, 1]}``; only one of ``topic``, ``subscribe``,
            ``subscribePattern`` and ``assign`` can be given.
        broker_names: One for each store, one for all, or none; several stores may have the same, as a
            master and its slave do.
        fail_on_data_loss: Whether a stretch of the log that cannot be read ends the query.
        min_partitions: Least number of partitions, if there is enough to read.
        max_partition_bytes: Bytes of the log in a partition.
        batch_rows: Most messages in a batch of Arrow, 8192 or more; with bodies or records among the columns
            the messages of about 4 MiB of the log, if these are fewer.
        verify: Whether to compute checksums.
        columns: Columns by name if there is no schema, empty for the default ones.
        starting: Where to begin: at ``earliest``, for streams also at ``latest``, or at offsets by topic and
            queue; an offset past the end of its queue returns nothing until the queue reaches it. None if it
            was not given.
        ending: Where to end: after ``latest``, or before offsets by topic and queue.
        starting_ms: Store time of the first messages to read.
        ending_ms: Store time from which on messages are not read.
        starting_by_ms: Store time of the first messages to read from a queue, by topic and queue as JSON; a
            queue without a message that is late enough begins at its end, other queues are read completely.
        ending_by_ms: Store time from which on messages are not read, in the same way.
        max_offsets_per_trigger: Most messages in a batch of a stream; None for all.
        min_offsets_per_trigger: Number of messages that a batch of a stream waits for, but not with
            ``Trigger.AvailableNow``.
        max_trigger_delay_ms: Longest wait for them, such as ``90s`` or ``15m``.
        access_path: ``scan`` reads the log, ``cq`` the records that the consume queues lead to, ``auto`` the
            smaller.
        decompress: Whether bodies that zlib, lz4 or zstd compressed are inflated. A body that cannot be
            inflated, or would have more than 64 MiB, is returned as stored; ``sysFlag`` still marks it as
            compressed.
        include_placeholders: Whether there is a row for each placeholder, which a compaction leaves in place
            of a message that it dropped; its ``flag`` is 0x434D5054.
        inner_batches: Whether there is a row for each of the ``messages`` of an inner batch, each with place,
            ``size`` and ``record`` of the whole, or one row for the batch: ``records``.
        job_id: Identifies a job that writes, so that it is done once; letters, digits, ``-`` and ``_``.
        table: The table to read: ``messages``, ``queues``, ``offsets`` or ``index``.
    """

    paths: tuple[str, ...]
    topics: frozenset[str] | None = None
    topic_pattern: re.Pattern[str] | None = None
    queues: frozenset[tuple[str, int]] | None = None
    broker_names: tuple[str, ...] = ()
    fail_on_data_loss: bool = True
    min_partitions: int = 1
    max_partition_bytes: int = DEFAULT_SPLIT_BYTES
    batch_rows: int = 2 * MIN_BATCH_ROWS
    verify: bool = True
    columns: tuple[str, ...] = ()
    starting: Place | None = None
    ending: Place | None = None
    starting_ms: int | None = None
    ending_ms: int | None = None
    starting_by_ms: Mapping[tuple[str, int], int] = field(default_factory=dict)
    ending_by_ms: Mapping[tuple[str, int], int] = field(default_factory=dict)
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    access_path: AccessPath = "auto"
    decompress: bool = False
    include_placeholders: bool = False
    inner_batches: str = "messages"
    job_id: str | None = None
    table: Table = "messages"

    @property
    def selection(self) -> Selection:
        """The selected messages."""
        times = Span() if self.starting_ms is None else Span(first=self.starting_ms)
        if self.ending_ms is not None:
            times = times.and_to(self.ending_ms - 1)
        return Selection(
            topics=self.topics,
            topic_pattern=self.topic_pattern,
            queues=self.queues,
            store_times_ms=times,
            starting=self.starting if isinstance(self.starting, dict) else {},
            ending=self.ending if isinstance(self.ending, dict) else {},
        )

    def wants(self, topic: str, queue_id: int) -> bool:
        """Returns whether a queue is selected."""
        is_named = self.queues is None or (topic, queue_id) in self.queues
        return is_named and self.selection.has_topic(topic)

    def broker_name(self, store: int) -> str | None:
        """Returns the broker name of a store, by the index of its path."""
        if not self.broker_names:
            return None
        return self.broker_names[store if len(self.broker_names) > 1 else 0]


def parse_options(
    given: Mapping[str, str], *, expand: Callable[[tuple[str, ...]], tuple[str, ...]] = tuple
) -> Options:
    """Returns the options of a read.

    Args:
        given: Options by name, in letters of any case.
        expand: Replaces paths with globs by the matching paths; without it paths are used as written.

    Raises:
        InvalidArgumentError: An option is unknown, or has a value that is not allowed.
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name.lower() in _OF_SPARK:
            continue
        known = _KNOWN.get(name.lower())
        if known is None:
            raise _unknown(name)
        try:
            values[known[0]] = known[1](text)
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"option {_name(name)} is {text!r}: {error}") from error
    which = [name for name in given if name.lower() in _WHICH]
    if len(which) > 1:
        raise InvalidArgumentError(
            f"options {' and '.join(which)} both say which topics are wanted", help="give one of them"
        )
    if len(places := [name for name in given if name.lower() in _PLACES]) > 1:
        raise InvalidArgumentError(
            f"options {' and '.join(places)} both say which stores are read",
            help='give one of them: .load("/path/to/store") sets path; paths takes a JSON list',
        )
    if not values.get("paths"):
        raise InvalidArgumentError(
            "there is no path to a store", help='read one with .load("/path/to/store")'
        )
    options = Options(**values | {"paths": expand(values["paths"])})
    _check_wanted(options)
    if len(options.broker_names) not in (0, 1, len(options.paths)):
        raise InvalidArgumentError(
            f"option brokerName has {len(options.broker_names)} names for {len(options.paths)} stores"
        )
    return options


def _check_wanted(options: Options) -> None:
    """Refuses offsets and times of queues that are not selected: one of the two is a typo."""
    for name, queues in (
        ("startingOffsets", options.starting),
        ("endingOffsets", options.ending),
        ("startingOffsetsByTimestamp", options.starting_by_ms),
        ("endingOffsetsByTimestamp", options.ending_by_ms),
    ):
        for topic, queue_id in queues if isinstance(queues, Mapping) else ():
            if options.wants(topic, queue_id):
                continue
            raise InvalidArgumentError(
                f"option {name} names queue {topic}/{queue_id}, which other options say is not wanted",
                help="leave it out there, or name its topic (or queue) among those that are wanted",
            )


def _unknown(name: str) -> InvalidArgumentError:
    close = get_close_matches(name.lower(), _KNOWN, 1)
    meant = f"did you mean {_name(close[0])}? " if close else ""
    return InvalidArgumentError(
        f"seglog has no option {name!r}", help=f"{meant}options are {', '.join(NAMES)}"
    )


def _name(name: str) -> str:
    return next(known for known in NAMES if known.lower() == name.lower())


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _paths(text: str) -> tuple[str, ...]:
    """Parses one path, several with commas between them, or the JSON list that Spark makes of several."""
    if text.startswith("["):
        found = json.loads(text)
        if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
            raise ValueError("it must be a list of paths")
        return tuple(found)
    return split_paths(text)


def _topics(text: str) -> frozenset[str]:
    found = frozenset(_list(text))
    if not found:
        raise ValueError("it names no topic")
    return found


def _columns(text: str) -> tuple[str, ...]:
    found = _list(text)
    twice = next((name for at, name in enumerate(found) if name.lower() in map(str.lower, found[:at])), None)
    if twice is not None:
        raise ValueError(f"it names {twice} twice")
    return found


def _by_topic(text: str, like: str) -> dict[str, Any]:
    """Parses a JSON object; refuses a name that occurs twice, because only one value would count."""
    found = json.loads(text, object_pairs_hook=_once)
    if not isinstance(found, dict):
        raise ValueError(f"it must be like {like}")  # noqa: TRY004 - ValueErrors get the option's name
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        raise ValueError(f"it names {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def _by_queue(text: str, expected: str) -> Iterator[tuple[str, int, int]]:
    """Yields topic, queue and number from ``{"topic": {"0": 5}}``."""
    seen: set[tuple[str, int]] = set()
    for topic, queues in _by_topic(text, '{"topic": {"0": 5}}').items():
        for queue_id, number in (queues if isinstance(queues, dict) else {"": None}).items():
            if not queue_id.isdecimal() or type(number) is not int or abs(number) > MOST:
                raise ValueError(f"topic {topic} must have {expected} by queue")
            queue = topic, int(queue_id)
            if queue in seen:
                raise ValueError(f"it names queue {topic}/{queue[1]} twice")
            seen.add(queue)
            yield *queue, number


def _pattern(text: str) -> re.Pattern[str]:
    if not text:
        raise ValueError("no topic is called like that")
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from error


def _queues(text: str) -> frozenset[tuple[str, int]]:
    like = '{"topic": [0, 1]}'
    found = _by_topic(text, like)
    if not all(isinstance(numbers, list) for numbers in found.values()):
        raise ValueError(f"it must be like {like}")
    queues = [(topic, number) for topic, numbers in found.items() for number in numbers]
    if any(type(number) is not int or number < 0 for _topic, number in queues):
        raise ValueError("numbers of queues are 0 and more")
    if not queues:
        raise ValueError("it names no queue")
    return frozenset(queues)


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"


def _at_least(lowest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        digits = text.strip().lower().removesuffix("b")
        unit = digits[-1:] if digits[-1:] in _UNITS else ""
        number = digits.removesuffix(unit)
        if not number.isdecimal() or len(number) > _MAX_DIGITS:
            raise ValueError("it must be a number")
        found = int(number) * _UNITS[unit]
        if found < lowest:
            raise ValueError(f"it must be at least {lowest}")
        return found

    return parse


def _word(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"it must be {' or '.join(words)}")
        return text.lower()

    return parse


def _job_id(text: str) -> str:
    if not _JOB_ID.fullmatch(text):
        raise ValueError("it must be 1 to 64 letters, digits, - and _")
    return text


def _place(*words: str) -> Callable[[str], Place]:
    """Parses where to begin or end, as the Kafka source does; -2 is the start of a queue, -1 its end."""

    def parse(text: str) -> Place:
        if not text.lstrip().startswith("{"):
            return _word(*words)(text.strip())
        offsets: dict[tuple[str, int], int] = {}
        for topic, queue_id, offset in _by_queue(text, "an offset"):
            if offset < 0 and offset != _SPECIAL[words[0]]:
                raise ValueError(f"queue {topic}/{queue_id} cannot be at {offset}")
            if offset >= 0:
                offsets[topic, queue_id] = offset
        return offsets

    return parse


def _times(text: str) -> dict[tuple[str, int], int]:
    """Parses store times in milliseconds by topic and queue, as the Kafka source does."""
    found: dict[tuple[str, int], int] = {}
    for topic, queue_id, time_ms in _by_queue(text, "milliseconds"):
        if time_ms < 0:
            raise ValueError(f"topic {topic} must have milliseconds by queue")
        found[topic, queue_id] = time_ms
    return found


def _delay(text: str) -> int:
    match = _DELAY.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("it must be a number and ms, s, m or h, such as 15m")
    return int(match[1]) * _DELAY_UNITS_MS[match[2]]


_DELAY: Final = re.compile(r"(\d{1,9})\s*(ms|s|m|h)")
_DELAY_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_JOB_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SPECIAL: Final = {"earliest": -2, "latest": -1}
_MAX_DIGITS: Final = 18
NAMES: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "path": ("paths", _paths),
    "paths": ("paths", _paths),
    "topic": ("topics", _topics),
    "subscribe": ("topics", _topics),
    "subscribePattern": ("topic_pattern", _pattern),
    "assign": ("queues", _queues),
    "brokerName": ("broker_names", _list),
    "failOnDataLoss": ("fail_on_data_loss", _bool),
    "minPartitions": ("min_partitions", _at_least(1)),
    "maxPartitionBytes": ("max_partition_bytes", _at_least(MIN_SPLIT_BYTES)),
    "batchRows": ("batch_rows", _at_least(MIN_BATCH_ROWS)),
    "verify": ("verify", _bool),
    "columns": ("columns", _columns),
    "startingOffsets": ("starting", _place("earliest", "latest")),
    "endingOffsets": ("ending", _place("latest")),
    "startingTimestamp": ("starting_ms", _at_least(0)),
    "endingTimestamp": ("ending_ms", _at_least(0)),
    "startingOffsetsByTimestamp": ("starting_by_ms", _times),
    "endingOffsetsByTimestamp": ("ending_by_ms", _times),
    "maxOffsetsPerTrigger": ("max_offsets_per_trigger", _at_least(1)),
    "minOffsetsPerTrigger": ("min_offsets_per_trigger", _at_least(1)),
    "maxTriggerDelay": ("max_trigger_delay_ms", _delay),
    "accessPath": ("access_path", _word("auto", "cq", "scan")),
    "decompress": ("decompress", _bool),
    "includePlaceholders": ("include_placeholders", _bool),
    "innerBatches": ("inner_batches", _word("messages", "records")),
    "jobId": ("job_id", _job_id),
    "table": ("table", _word("messages", "queues", "offsets", "index")),
}
"""Each option as users write it, with its attribute of :class:`Options` and the parser of its text."""
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname"})
"""Options of Spark itself that it passes to the source of a stream."""
_PLACES: Final = frozenset({"path", "paths"})
_WHICH: Final = frozenset({"topic", "subscribe", "subscribepattern", "assign"})
_KNOWN: Final = {name.lower(): known for name, known in NAMES.items()}

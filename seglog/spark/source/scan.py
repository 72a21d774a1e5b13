"""``seglog.scan``: the messages of stores as columns of Arrow, for Polars, DuckDB and pandas. No JVM."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from seglog.arguments import as_flag, as_int, as_text, refusal
from seglog.errors import InvalidArgumentError, MissingDependencyError

if TYPE_CHECKING:
    from seglog.spark.source.scanned import Scan

_HELP: Final = "install it with `pip install 'seglog[arrow]'`"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def scan(
    *stores: str | os.PathLike[str],
    columns: Collection[str] | None = None,
    topic: str | Collection[str] | None = None,
    topic_pattern: str | None = None,
    queues: Mapping[str, Collection[int]] | None = None,
    begin: Mapping[tuple[str, int], int] | None = None,
    end: Mapping[tuple[str, int], int] | None = None,
    since: datetime | int | None = None,
    until: datetime | int | None = None,
    broker_names: Collection[str] = (),
    inflate: bool = False,
    verify: bool = True,
    skip_damage: bool = False,
) -> Scan:
    """Returns the messages of stores as a table that is read when it is used, in Arrow's columns.

    Reads only, and works beside a process that has a store open for writing: it reads the messages that are
    stored when the reading begins. Only requested columns are made, and only records that the arguments
    select are read: for named queues those that their consume queues lead to, if these are fewer.
    Columns are those of Spark's data source (docs/spark-source.md), with its types.

    Args:
        stores: Store directories, or their addresses (``s3://...``), one or more.
        columns: Names of columns, in the order of the table; None for the usual ones.
        topic: One topic or several; None for all.
        topic_pattern: A regular expression that the whole name of a topic must match.
        queues: Queue ids, by topic. Only one of this, ``topic`` and ``topic_pattern`` can be given.
        begin: First queue offset to read, by topic and queue id; other queues are read from their start.
        end: First queue offset not to read, in the same way.
        since: Store time of the first messages to read: a datetime, which is local time if it has no zone, or
            milliseconds since 1970.
        until: Store time from which on messages are not read.
        broker_names: The column ``brokerName``: one for each store, or one for all.
        inflate: Whether bodies that zlib, lz4 or zstd compressed are inflated, to 64 MiB at most.
        verify: Whether checksums are computed.
        skip_damage: Whether unreadable parts are left out with a warning in the log; otherwise they are an
            error.

    Raises:
        InvalidArgumentError: An argument has an invalid value; there is no such column; a store is named
            twice.
        MissingDependencyError: pyarrow is not installed.
    """
    try:
        from seglog.spark.source.scanned import Scan
    except ModuleNotFoundError as error:
        raise MissingDependencyError("seglog.scan needs the Python package pyarrow", help=_HELP) from error
    from seglog.spark.source.values.columns import named_columns, usual_columns
    from seglog.spark.source.wanted.identity import check_distinct
    from seglog.spark.source.wanted.options import Options

    paths = tuple(_path(store) for store in stores)
    if not paths:
        raise InvalidArgumentError(
            "there is no store to scan", help='name one: seglog.scan("/path/to/store")'
        )
    check_distinct(paths)
    if sum(given is not None for given in (topic, topic_pattern, queues)) > 1:
        raise InvalidArgumentError(
            "topic, topic_pattern and queues each say which queues are wanted", help="give one of them"
        )
    names = _names("broker_names", broker_names)
    if len(names) not in (0, 1, len(paths)):
        raise refusal("broker_names", broker_names, f"1 name or {len(paths)}, one for each store")
    options = Options(
        paths,
        topics=None if topic is None else frozenset(_names("topic", topic)),
        topic_pattern=None if topic_pattern is None else _pattern(topic_pattern),
        queues=None if queues is None else _queues(queues),
        broker_names=names,
        fail_on_data_loss=not as_flag("skip_damage", skip_damage),
        verify=as_flag("verify", verify),
        starting=_offsets("begin", begin),
        ending=_offsets("end", end),
        starting_ms=None if since is None else _time_ms("since", since),
        ending_ms=None if until is None else _time_ms("until", until),
        decompress=as_flag("inflate", inflate),
    )
    wanted = usual_columns() if columns is None else named_columns(_names("columns", columns))
    return Scan(options, wanted)


def _path(store: object) -> str:
    path = os.fspath(store) if isinstance(store, str | os.PathLike) else None
    if not isinstance(path, str) or not path:
        raise refusal("store", store, "the path or address of a store")
    return path


def _names(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Collection) or isinstance(value, bytes):
        raise refusal(name, value, "a text, or several")
    found = tuple(as_text(name, one) for one in value)
    if len(set(found)) < len(found):
        raise refusal(name, value, "each of them once")
    return found


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(as_text("topic_pattern", text))
    except re.error as error:
        raise refusal("topic_pattern", text, f"a regular expression ({error})") from error


def _queues(value: object) -> frozenset[tuple[str, int]]:
    expected = 'numbers by topic, such as {"orders": [0, 1]}'
    if not isinstance(value, Mapping) or not value:
        raise refusal("queues", value, expected)
    found = set()
    for topic, numbers in value.items():
        if not isinstance(numbers, Collection) or isinstance(numbers, str | bytes) or not numbers:
            raise refusal("queues", value, expected)
        found |= {(as_text("queues topic", topic), as_int("queues number", one, 0)) for one in numbers}
    return frozenset(found)


def _offsets(name: str, value: object) -> dict[tuple[str, int], int] | None:
    if value is None:
        return None
    expected = 'offsets by topic and number, such as {("orders", 0): 100}'
    if not isinstance(value, Mapping) or not all(isinstance(key, tuple) and len(key) == 2 for key in value):
        raise refusal(name, value, expected)
    return {
        (as_text(f"{name} topic", topic), as_int(f"{name} queue", queue_id, 0)): as_int(name, offset, 0)
        for (topic, queue_id), offset in value.items()
    }


def _time_ms(name: str, value: datetime | int) -> int:
    if not isinstance(value, datetime):
        return as_int(name, value)
    try:
        return (value.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise refusal(name, value, f"a time that has a place in UTC ({error})") from None

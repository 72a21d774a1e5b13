"""Spark's filters as parts of a selection: topic, queueId, queueOffset and storeTimestamp.

A filter is reported to Spark as done only where the selection says exactly the same; not of times, which
are null as timestamps where they are too far off.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, TypeVar

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from seglog.spark.source.wanted.selection import Selection, Span

_NEVER_NULL: Final = frozenset({"topic", "queueId", "queueOffset", "physicalOffset"})
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
T = TypeVar("T")
_MS: Final = dt.timedelta(milliseconds=1)


def push(selection: Selection, filters: Iterable[Filter]) -> tuple[Selection, list[Filter]]:
    """Returns the selection with the filters, and those that Spark has to apply all the same."""
    left: list[Filter] = []
    for one in filters:
        narrowed = _narrowed(selection, one)
        if narrowed is None or _name(one) == "storeTimestamp":
            left.append(one)
        selection = narrowed or selection
    return selection, left


def _narrowed(selection: Selection, one: Filter) -> Selection | None:
    name = _name(one)
    if isinstance(one, IsNotNull):
        return selection if name in _NEVER_NULL else None
    if name == "topic" and isinstance(one, EqualTo | In):
        topics = frozenset(str(value) for value in _values(one))
        return replace(selection, topics=_both(selection.topics, topics))
    if name == "queueId" and isinstance(one, EqualTo | In):
        queue_ids = frozenset(int(value) for value in _values(one))
        return replace(selection, queue_ids=_both(selection.queue_ids, queue_ids))
    if name == "queueOffset":
        span = _span(selection.queue_offsets, one)
        return None if span is None else replace(selection, queue_offsets=span)
    if name == "storeTimestamp":
        span = _span(selection.store_times_ms, one)
        return None if span is None else replace(selection, store_times_ms=span)
    return None


def _name(one: Filter) -> str | None:
    path: tuple[str, ...] = getattr(one, "attribute", ())
    return path[0] if len(path) == 1 else None


def _values(one: EqualTo | In) -> tuple[Any, ...]:
    return tuple(one.value) if isinstance(one, In) else (one.value,)


def _both(known: frozenset[T] | None, more: frozenset[T]) -> frozenset[T]:
    return more if known is None else known & more


def _span(known: Span, one: Filter) -> Span | None:
    if not isinstance(one, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        return None
    number, is_between = _number(one.value)
    if number is None:
        return None
    # No message is between two milliseconds.
    if isinstance(one, EqualTo):
        return known.and_from(number).and_to(number - is_between)
    if isinstance(one, GreaterThanOrEqual):
        return known.and_from(number + is_between)
    if isinstance(one, GreaterThan):
        return known.and_from(number + 1)
    return known.and_to(number - (not is_between and isinstance(one, LessThan)))


def _number(value: object) -> tuple[int | None, bool]:
    """Returns a value as a number of the column, rounded down, and whether it was."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        whole, rest = divmod(value - _EPOCH, _MS)
        return whole, bool(rest)
    return (value, False) if isinstance(value, int) and not isinstance(value, bool) else (None, False)

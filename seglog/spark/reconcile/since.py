"""Reads an earlier result that ``seglog spark reconcile`` wrote with --json or --output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.spark.reconcile.queue_verdicts import Earlier, QueueKey
from seglog.spark.session import require_packages

_KIND: Final = "queue-verdict"
"""The kind of the JSON lines with the progress of a group in a queue."""


def load_earlier(path: Path) -> dict[QueueKey, Earlier]:
    """Returns the facts of an earlier result about each group and queue.

    Args:
        path: A file of JSON lines, or the folder ``queues`` of an output, in Parquet or JSON.

    Raises:
        NotFoundError: There is nothing at ``path``.
        InvalidArgumentError: It is no such result.
        MissingDependencyError: It is in Parquet, and pyarrow is missing.
    """
    try:
        return dict(_earlier(_rows(path)))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InvalidArgumentError(
            f"{path} is no result of a reconciliation: {error}",
            help="give what --json printed, or the folder `queues` of --output",
        ) from error


def _earlier(rows: Iterable[Mapping[str, object]]) -> Iterator[tuple[QueueKey, Earlier]]:
    for row in rows:
        if row.get("kind", _KIND) != _KIND:  # rows of a table in Parquet or JSON have no kind
            continue
        offset = row.get("offset")
        queue_id, lag = row["queueId"], row["lag"]
        if not isinstance(queue_id, int) or not isinstance(lag, int) or not isinstance(offset, int | None):
            raise TypeError(f"numbers are wanted in {row}")
        key = QueueKey(str(row["store"]), str(row["group"]), str(row["topic"]), queue_id)
        yield key, Earlier(offset, lag)


def _rows(path: Path) -> Iterator[Mapping[str, object]]:
    if path.is_dir() and any(path.glob("*.parquet")):
        require_packages()
        import pyarrow.parquet as pq

        yield from pq.read_table(path).to_pylist()
        return
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)

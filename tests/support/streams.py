"""What Spark does with a stream, without Spark: plans a batch, reads it, remembers where it ended."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from seglog.spark.source.read.read_plan import read_piece
from seglog.spark.source.stream.stream_plan import StreamPlan
from seglog.spark.source.values.columns import named_columns
from seglog.spark.source.wanted.options import Options

COLUMNS = named_columns(["topic", "queueId", "queueOffset", "physicalOffset", "body"])


class Stream:
    """A stream of one or more stores, which can be killed at any moment.

    Attributes:
        options: What was asked for.
        at: Where the next batch starts, as the checkpoint has it.
    """

    def __init__(self, *paths: object, walked_bytes: int | None = None, **options: Any) -> None:
        self.options = Options(tuple(map(str, paths)), **({"max_partition_bytes": 9000} | options))
        self._walked_bytes = walked_bytes
        self.restart()
        self.at = self.plan.initial()

    def restart(self) -> None:
        """Forgets all but the checkpoint, as a driver that was killed does."""
        self.plan = StreamPlan(self.options)
        if self._walked_bytes is not None:
            self.plan.walked_bytes = self._walked_bytes

    def planned(self, max_messages: int | None = None) -> Any:
        """Returns where the next batch ends, as the checkpoint gives it back."""
        return json.loads(json.dumps(self.plan.advance(self.at, max_messages)))

    def done(self, end: Any) -> None:
        """Takes a batch for done."""
        self.plan.forget(end)
        self.at = end

    def batch(self, max_messages: int | None = None) -> list[dict[str, Any]]:
        """Plans a batch and returns its rows."""
        end = self.planned(max_messages)
        rows = self.rows(self.at, end)
        self.done(end)
        return rows

    def rows(self, start: Any, end: Any) -> list[dict[str, Any]]:
        """Returns the rows of a batch."""
        batches = [
            batch
            for piece in self.plan.pieces(start, end)
            for batch in read_piece(piece, self.options, self.plan.options.selection, COLUMNS)
        ]
        schema = pa.schema([(one.name, one.type) for one in COLUMNS])
        found: list[dict[str, Any]] = pa.Table.from_batches(batches, schema).to_pylist()
        return found

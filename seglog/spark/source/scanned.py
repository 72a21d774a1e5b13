"""A table of messages that is read when it is used: batch by batch, and only requested columns."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from typing_extensions import override

from seglog.errors import MissingDependencyError
from seglog.spark.source.read.batches import Constants, Messages, is_wide
from seglog.spark.source.read.read_plan import messages_of, plan_pieces
from seglog.spark.source.values.columns import Wanted, named_columns
from seglog.spark.source.wanted.options import Options

if TYPE_CHECKING:
    import polars as pl

_NARROWEST: Final = named_columns(["queueOffset"])
"""The column that is made when messages are only counted."""
_ROW: Final = "seglog row"
"""Name of an internal column, which no other column has."""


class Scan:
    """Messages of stores as an Arrow table; each use reads them again.

    Polars, DuckDB, pandas and other users of Arrow's stream interface accept it directly. With :meth:`lazy`,
    Polars can push down columns, a number of rows, and predicates.

    Args:
        options: The selection of messages, and how they are read.
        wanted: Columns.
    """

    def __init__(self, options: Options, wanted: Sequence[Wanted]) -> None:
        self._options = options
        self._wanted = tuple(wanted)

    @override
    def __repr__(self) -> str:
        columns = ", ".join(self.schema.names)
        return f"<Scan of {', '.join(self._options.paths)}: {columns}>"

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return pa.schema([(one.asked_as, one.type) for one in self._wanted])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yields the messages in the order of the log, store after store, some thousands at a time.

        Raises:
            StoreError: As for :meth:`reader`.
        """
        for messages, constants in self._messages(self._wanted):
            yield messages.batch(self._wanted, constants)

    def reader(self) -> pa.RecordBatchReader:
        """Returns the messages as a stream, which holds one batch at a time in memory.

        Raises:
            StoreError: There is no store, it is of another kind, or, while the stream is read, a part of it
                cannot be read.
        """
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns the stream for users of Arrow's PyCapsule interface.

        Args:
            requested_schema: The capsule of a schema to which the stream is cast.
        """
        return self.reader().__arrow_c_stream__(requested_schema)

    def table(self) -> pa.Table:
        """Returns all messages in memory.

        Raises:
            StoreError: As for :meth:`reader`.
        """
        return pa.Table.from_batches(self, self.schema)

    def count(self) -> int:
        """Returns the number of messages, without making their columns.

        Raises:
            StoreError: As for :meth:`reader`.
        """
        return sum(
            len(messages.rows) if messages.are_rows else messages.batch(_NARROWEST, constants).num_rows
            for messages, constants in self._messages(_NARROWEST)
        )

    def lazy(self) -> pl.LazyFrame:
        """Returns a lazy frame of Polars, which requests what its query needs.

        Columns that the query does not use are not made. The columns of a predicate are made first, and the
        others only for the messages that it selects. A query that ends after some rows ends the reading.

        Raises:
            MissingDependencyError: Polars is not installed.
        """
        try:
            import polars as pl
            from polars.io.plugins import register_io_source
        except ImportError as error:
            raise MissingDependencyError(
                "Scan.lazy needs the Python package polars", help="install it with `pip install polars`"
            ) from error

        def read(
            columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _batch: int | None
        ) -> Iterator[pl.DataFrame]:
            by_name = {one.asked_as: one for one in self._wanted}
            wanted = [by_name[name] for name in (by_name if columns is None else columns)]
            if predicate is None:
                return self._columns(wanted or _NARROWEST, most)
            asked = predicate.meta.root_names()
            first = [by_name[name] for name in by_name if name in asked] or list(_NARROWEST)
            return self._chosen(predicate, first, wanted, most)

        return register_io_source(read, schema=pl.DataFrame(self.schema.empty_table()).schema)

    def _columns(self, wanted: Sequence[Wanted], most: int | None) -> Iterator[pl.DataFrame]:
        """Yields frames of the columns, of the first messages or of all."""
        import polars as pl

        left = sys.maxsize if most is None else most
        for messages, constants in self._messages(wanted):
            frame = pl.DataFrame(messages.batch(wanted, constants)).head(left)
            yield frame
            left -= len(frame)
            if left <= 0:
                return

    def _chosen(
        self, predicate: pl.Expr, first: Sequence[Wanted], wanted: Sequence[Wanted], most: int | None
    ) -> Iterator[pl.DataFrame]:
        """Yields frames of the columns, of the messages for which a predicate is true.

        Args:
            predicate: A predicate on single messages.
            first: The columns that it needs.
            wanted: The columns of the frames.
            most: Most messages to test, including those for which it is false; None for all.
        """
        import polars as pl

        left = sys.maxsize if most is None else most
        names = [one.asked_as for one in wanted]
        rest = [one for one in wanted if one not in first]
        for messages, constants in self._messages([*first, *rest]):
            if messages.are_rows:
                narrow = pl.DataFrame(messages.batch(first, constants)).head(left).with_row_index(_ROW)
                count, found = len(narrow), narrow.filter(predicate)
                if len(found):
                    others = messages.only(found[_ROW].to_numpy()).batch(rest, constants)
                    yield found.drop(_ROW).hstack(pl.DataFrame(others)).select(names)
            else:  # a record is several messages, so no record can be left out
                whole = pl.DataFrame(messages.batch([*first, *rest], constants)).head(left)
                count = len(whole)
                yield whole.filter(predicate).select(names)
            left -= count
            if left <= 0:
                return

    def _messages(self, wanted: Sequence[Wanted]) -> Iterator[tuple[Messages, Constants]]:
        options = self._options
        for piece in plan_pieces(options):
            constants = Constants(options.broker_name(piece.store), options.paths[piece.store])
            with messages_of(piece, options, options.selection, is_wide=is_wide(wanted)) as read:
                for messages in read.found:
                    yield messages, constants

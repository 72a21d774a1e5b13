"""A table of messages that is read when it is used: batch by batch, and only what is asked of it."""

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
"""What is made where messages are counted."""
_ROW: Final = "seglog row"
"""No column has this name."""


class Scan:
    """Messages of stores as a table of Arrow; each use reads them anew.

    Polars, DuckDB, pandas and others that know Arrow's stream interface take it as it is. :meth:`lazy` gives
    Polars what it wants to push down: columns, a number of rows, and predicates.

    Args:
        options: Which messages, and how they are read.
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
        """Returns the messages as a stream, which holds a batch at a time in memory.

        Raises:
            StoreError: There is no store, it is of another kind, or, as the stream is read, a part of it
                cannot be read.
        """
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Gives the stream to who knows Arrow's PyCapsule interface.

        Args:
            requested_schema: The capsule of a schema that the stream is cast to.
        """
        return self.reader().__arrow_c_stream__(requested_schema)

    def table(self) -> pa.Table:
        """Returns all of it in memory.

        Raises:
            StoreError: As for :meth:`reader`.
        """
        return pa.Table.from_batches(self, self.schema)

    def count(self) -> int:
        """Returns how many messages there are; none of their columns is made.

        Raises:
            StoreError: As for :meth:`reader`.
        """
        return sum(
            len(messages.rows) if messages.are_rows else messages.batch(_NARROWEST, constants).num_rows
            for messages, constants in self._messages(_NARROWEST)
        )

    def lazy(self) -> pl.LazyFrame:
        """Returns a lazy frame of Polars, which asks for what its query needs.

        Columns that the query does not use are not made. Of a predicate the columns it needs are made first,
        and the others for the messages that it leaves. A query that ends after some rows ends the reading.

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
        """Yields frames of the columns, of the first messages or all."""
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
        """Yields frames of the columns, of the messages for which a predicate holds.

        Args:
            predicate: One that looks at one message at a time.
            first: The columns that it needs.
            wanted: Those of the frames.
            most: How many messages are looked at, those for which it does not hold too; None for all.
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
            else:  # a record is several messages: there is no row to leave out
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

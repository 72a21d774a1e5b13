"""The data source as PySpark knows it: ``spark.read.format("seglog")``."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import from_arrow_schema
from typing_extensions import override

from seglog.errors import InvalidArgumentError, MissingDependencyError
from seglog.spark.arrow_schemas import arrow_schema
from seglog.spark.packages import require_packages
from seglog.spark.remote_files import is_address
from seglog.spark.source.catalog import framed_schema, options_in, table_options, with_options
from seglog.spark.source.read.readers import MessageReader, TableReader
from seglog.spark.source.tables import SCHEMAS, check_table_schema
from seglog.spark.source.values.columns import named_columns, usual_columns, wanted_columns
from seglog.spark.source.wanted.options import Options, parse_options
from seglog.spark.source.wanted.paths import expand_paths
from seglog.spark.source.write.append_job import AppendJob
from seglog.spark.source.write.writer import MessageWriter
from seglog.spark.source.write.written_columns import written_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAME = "seglog"


class SeglogDataSource(DataSource):
    """Messages of RocketMQ stores as rows, and rows as messages.

    Args:
        options: See :mod:`seglog.spark.source.wanted.options`.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        require_packages()  # Spark has found this source by itself, maybe a Spark version that is too old
        self._of_table = table_options(options)
        self._given = options if self._of_table is None else self._of_table
        # A table of the catalog is read without options: they are in its schema.
        self._parsed = self._parse(self._given) if options else None

    @override
    @classmethod
    def name(cls) -> str:
        """``seglog``."""
        return NAME

    @override
    def schema(self) -> StructType:
        """Returns the columns of a read without a schema."""
        parsed = self._parsed or self._parse(self._given)
        wanted = named_columns(parsed.columns) if parsed.columns else usual_columns()
        asked = pa.schema([(one.asked_as, one.type) for one in wanted])
        found = from_arrow_schema(SCHEMAS.get(parsed.table, asked))
        return found if self._of_table is None else with_options(found, self._of_table)

    @override
    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns a reader of messages, or of another table."""
        framed = framed_schema(schema)
        schema = framed or schema
        gives_frames = framed is not None
        parsed = self._options_for(schema)
        if parsed.starting == "latest":
            raise InvalidArgumentError("startingOffsets latest is for streams: a batch would read nothing")
        asked = arrow_schema(schema)
        if parsed.table != "messages":
            names = check_table_schema(parsed.table, asked)
            return TableReader(parsed, names, gives_frames=gives_frames)
        return MessageReader(parsed, wanted_columns(asked), gives_frames=gives_frames)

    @override
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns a reader of new messages."""
        parsed = self._options_for(schema)
        if parsed.table != "messages":
            raise InvalidArgumentError(
                f"option table is {parsed.table}, which cannot be streamed: a stream is of messages",
                help=f"read {parsed.table} with spark.read, or leave the option out",
            )
        for name, value in (
            ("endingOffsets", parsed.ending),
            ("endingOffsetsByTimestamp", parsed.ending_by_ms),
        ):
            if value:
                raise InvalidArgumentError(
                    f"option {name} is for reads with spark.read: a stream has no end",
                    help="leave it out; with Trigger.AvailableNow it ends where the log ended when it began",
                )
        try:
            from seglog.spark.source.stream.stream_reader import MessageStreamReader
        except ImportError as error:
            raise MissingDependencyError(
                "reading a stream needs PySpark 4.2 or newer", help="pip install -U 'pyspark>=4.2,<5'"
            ) from error
        return MessageStreamReader(parsed, wanted_columns(arrow_schema(schema)))

    @override
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Returns a writer that appends messages to one store."""
        parsed, root, topic = self._target(schema, overwrite)
        return MessageWriter(AppendJob(root, parsed.job_id or uuid.uuid4().hex), topic)

    @override
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Returns a writer that appends each batch of a stream once."""
        parsed, root, topic = self._target(schema, overwrite)
        if parsed.job_id is not None:
            raise InvalidArgumentError(
                "option jobId is for jobs: a stream has the id of its query", help="leave jobId out"
            )
        try:
            from seglog.spark.source.write.stream_writer import MessageStreamWriter
        except ImportError as error:
            raise MissingDependencyError(
                "writing a stream needs a newer PySpark", help="pip install -U 'pyspark>=4.2,<5'"
            ) from error
        return MessageStreamWriter(root, topic)

    def _target(self, schema: StructType, overwrite: bool) -> tuple[Options, Path, str | None]:
        """Returns the options of a write, the store, and the topic for all rows."""
        if overwrite:
            raise InvalidArgumentError(
                "a log can only be appended to", help='write with .mode("append"), .outputMode("append")'
            )
        if self._parsed is None and not options_in(schema):
            raise InvalidArgumentError(
                "there is no path to a store",
                help='write with .write.format("seglog").mode("append").save("/path/to/store")',
            )
        parsed = self._options_for(schema)
        if len(parsed.paths) != 1:
            raise InvalidArgumentError("messages are written to one store at a time")
        if is_address(parsed.paths[0]):
            raise InvalidArgumentError(
                "a remote store can only be read", help="write to a local or mounted folder"
            )
        named = parsed.topics or frozenset()
        if len(named) > 1 or parsed.topic_pattern is not None or parsed.queues is not None:
            raise InvalidArgumentError("messages are written to one topic, or to that of a column")
        topic = next(iter(named), None)
        written_columns(arrow_schema(schema), has_topic=topic is not None)
        return parsed, Path(parsed.paths[0]).absolute(), topic

    def _options_for(self, schema: StructType) -> Options:
        return self._parsed or self._parse(options_in(schema))

    def _parse(self, given: Mapping[str, str]) -> Options:
        return parse_options(given, expand=expand_paths)

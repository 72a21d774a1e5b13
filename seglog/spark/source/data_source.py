"""The data source as PySpark knows it: ``spark.read.format("seglog")``."""

from __future__ import annotations

import uuid
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from typing_extensions import override

from seglog.errors import InvalidArgumentError, MissingDependencyError
from seglog.spark.remote_files import is_address
from seglog.spark.source.read.readers import TableReader, message_reader
from seglog.spark.source.tables import SCHEMAS, check_table_schema
from seglog.spark.source.values.columns import named_columns, spark_columns, usual_columns, wanted_columns
from seglog.spark.source.wanted.options import parse_options
from seglog.spark.source.write.append_job import AppendJob
from seglog.spark.source.write.staging import check_written_schema
from seglog.spark.source.write.writer import MessageWriter

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
        self._parsed = parse_options(options)

    @override
    @classmethod
    def name(cls) -> str:
        """``seglog``."""
        return NAME

    @override
    def schema(self) -> StructType | str:
        """Returns the columns of a read that gives no schema."""
        if self._parsed.table != "messages":
            return from_arrow_schema(SCHEMAS[self._parsed.table])
        names = self._parsed.columns
        return spark_columns(named_columns(names) if names else usual_columns())

    @override
    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns a reader of messages, or of another table."""
        if self._parsed.starting == "latest":
            raise InvalidArgumentError("startingOffsets latest is for streams: a batch would read nothing")
        asked = to_arrow_schema(schema, timezone="UTC")
        if self._parsed.table != "messages":
            return TableReader(self._parsed, check_table_schema(self._parsed.table, asked))
        return message_reader(self._parsed, wanted_columns(asked))

    @override
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns a reader of messages as they come."""
        if self._parsed.table != "messages" or self._parsed.ending is not None:
            raise InvalidArgumentError("a stream has messages and no end: options table and endingOffsets")
        try:
            from seglog.spark.source.stream.stream_reader import MessageStreamReader
        except ImportError as error:
            raise MissingDependencyError(
                "reading a stream needs PySpark 4.2 or newer", help="pip install -U 'pyspark>=4.2,<5'"
            ) from error
        return MessageStreamReader(self._parsed, wanted_columns(to_arrow_schema(schema, timezone="UTC")))

    @override
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Returns a writer that appends messages to one store."""
        if overwrite:
            raise InvalidArgumentError("a log can only be appended to", help='write with .mode("append")')
        if len(self._parsed.paths) != 1:
            raise InvalidArgumentError("messages are written to one store at a time")
        if is_address(self._parsed.paths[0]):
            raise InvalidArgumentError(
                "a remote store can only be read", help="write to a local or mounted folder"
            )
        check_written_schema(to_arrow_schema(schema, timezone="UTC"))
        job_id = self._parsed.job_id or uuid.uuid4().hex
        return MessageWriter(AppendJob(Path(self._parsed.paths[0]).absolute(), job_id))

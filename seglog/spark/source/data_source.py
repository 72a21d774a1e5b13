"""The data source as PySpark knows it: ``spark.read.format("seglog")``."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import to_arrow_schema
from typing_extensions import override

from seglog.spark.source.columns import named_columns, spark_columns, usual_columns, wanted_columns
from seglog.spark.source.options import parse_options
from seglog.spark.source.readers import MessageReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAME = "seglog"


class SeglogDataSource(DataSource):
    """Messages of RocketMQ stores as rows.

    Args:
        options: See :mod:`seglog.spark.source.options`.
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
    def schema(self) -> str:
        """Returns the columns of a read that gives no schema."""
        names = self._parsed.columns
        return spark_columns(named_columns(names) if names else usual_columns())

    @override
    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns a reader of messages."""
        return MessageReader(self._parsed, wanted_columns(to_arrow_schema(schema, timezone="UTC")))

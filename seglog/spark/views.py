"""Views of stores for SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from seglog.spark import register
from seglog.spark.source.wanted.identity import check_distinct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS: Final = ("messages", "queues", "offsets", "index")
KAFKA: Final = "kafka"
_KAFKA_COLUMNS: Final = (
    "CAST(keys AS BINARY) AS key",
    "body AS value",
    "topic",
    "queueId AS partition",
    "queueOffset AS offset",
    "bornTimestamp AS timestamp",
    "0 AS timestampType",  # CreateTime: the client's clock, as with Kafka by default
    "transform(map_entries(properties), e -> struct(e.key, CAST(e.value AS BINARY) AS value)) AS headers",
)


def make_views(spark: SparkSession, paths: Sequence[str]) -> None:
    """Registers the data source and a view for each of its tables: :data:`VIEWS`.

    The view :data:`KAFKA` has messages in the columns of Spark's Kafka source, bodies inflated.

    Args:
        spark: The session.
        paths: The store directories.

    Raises:
        InvalidArgumentError: A store is named twice.
    """
    from seglog.spark.source.values.columns import COLUMNS

    check_distinct(paths)
    register(spark)
    for name in VIEWS:
        reader = spark.read.format("seglog").option("paths", json.dumps(list(paths))).option("table", name)
        reader = reader.option("failOnDataLoss", "false")
        if name == "messages":
            usual = [column.name for column in COLUMNS if column.is_usual]
            reader = reader.option("columns", ",".join([*usual, "store"]))
        reader.load().createOrReplaceTempView(name)
    reader = spark.read.format("seglog").option("paths", json.dumps(list(paths))).option("decompress", "true")
    messages = reader.option("failOnDataLoss", "false").load()
    messages.selectExpr(*_KAFKA_COLUMNS).createOrReplaceTempView(KAFKA)

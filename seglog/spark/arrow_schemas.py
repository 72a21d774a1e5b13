"""Schemas of Spark as schemas of Arrow, with each signature that PySpark has had for it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """Returns a schema with times in UTC, as batches cross between Spark and Python."""
    from pyspark.sql.pandas import types

    convert: Callable[..., pa.Schema] = types.to_arrow_schema
    # PySpark 4.1 has times in UTC by itself; later ones are told the zone.
    has_zone = "timezone" in inspect.signature(convert).parameters
    return convert(schema, timezone="UTC") if has_zone else convert(schema)

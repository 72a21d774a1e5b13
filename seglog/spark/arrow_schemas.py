"""Converts Spark schemas to Arrow schemas, for each signature that PySpark's function has had."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """Returns the Arrow schema of batches between Spark and Python, with times in UTC."""
    from pyspark.sql.pandas import types

    convert: Callable[..., pa.Schema] = types.to_arrow_schema
    # PySpark 4.1 always uses UTC for times; later versions take the zone as an argument.
    has_zone = "timezone" in inspect.signature(convert).parameters
    return convert(schema, timezone="UTC") if has_zone else convert(schema)

"""Tables of Spark's catalog that are stores: ``CREATE TABLE t USING seglog OPTIONS (path '/store')``.

Spark 4 passes the options of a table to a Python data source when the table is created, but not when it is
read or written with ``INSERT INTO``. It keeps the schema with the metadata of its fields, so the options are
stored in the metadata of the first field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

_MADE_BY: Final = frozenset({"owner", "provider"})
"""Options that Spark adds to those of a new table, in addition to its properties."""
_OPTION: Final = "option."
_PATH: Final = "path"
_KEY: Final = "seglog.options"
_FRAMES_OF: Final = "seglog.framesOf"


def table_options(given: Mapping[str, str]) -> dict[str, str] | None:
    """Returns the options (``OPTIONS``, ``LOCATION``) of a table that is created, None in other calls."""
    lower = {name.lower(): value for name, value in given.items()}
    if not lower.keys() >= _MADE_BY:
        return None
    options = {name.removeprefix(_OPTION): value for name, value in lower.items() if name.startswith(_OPTION)}
    return {_PATH: lower[_PATH], **options} if _PATH in lower else options


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Returns a schema that contains options."""
    first, *others = schema.fields
    noted = StructField(
        first.name, first.dataType, first.nullable, {**first.metadata, _KEY: json.dumps(dict(options))}
    )
    return StructType([noted, *others])


def options_in(schema: StructType) -> dict[str, str]:
    """Returns the options in a schema; empty if it is not the schema of a table."""
    noted = next((field.metadata[_KEY] for field in schema.fields if _KEY in field.metadata), "{}")
    return {str(name): str(value) for name, value in json.loads(noted).items()}


def framed_schema(schema: StructType) -> StructType | None:
    """Returns the columns that the columnar reader requests as frames; None if rows are requested."""
    for field in schema.fields:
        if _FRAMES_OF in field.metadata:
            return StructType.fromJson(json.loads(field.metadata[_FRAMES_OF]))
    return None

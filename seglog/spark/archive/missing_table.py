"""``missing.parquet`` of an archive: the missing messages of its stores, derived from the manifests.

It is a copy for readers of Parquet; the manifests are the truth.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from seglog.spark.archive.folder import still_missing
from seglog.spark.archive.manifest import Run
from seglog.spark.archive.names import names_of_stores
from seglog.storage.files import StoreRoot

MISSING_FILE: Final = "missing.parquet"
_SCHEMA: Final = pa.schema(
    [
        ("store", pa.string()),
        ("topic", pa.string()),
        ("queueId", pa.int32()),
        ("first", pa.int64()),
        ("end", pa.int64()),
        ("why", pa.string()),
        ("physicalOffset", pa.int64()),
        ("physicalEnd", pa.int64()),
    ]
)


def missing_table(runs: Sequence[Run]) -> pa.Table:
    """Returns the missing messages of all stores; null for values that are not known."""
    rows = []
    for name in names_of_stores(runs):
        ranges, stretches = still_missing([run for run in runs if run.name == name])
        for one in (*ranges, *stretches):
            known = [value if value not in (-1, "") else None for value in one]
            rows.append(dict(zip(_SCHEMA.names, [name, *known], strict=True)))
    return pa.Table.from_pylist(rows, _SCHEMA)


def write_missing_table(files: StoreRoot, folder: Path, runs: Sequence[Run]) -> None:
    """Replaces the table of an archive; removes it if nothing is missing."""
    table = missing_table(runs)
    path = folder / MISSING_FILE
    if not table.num_rows:
        if files.exists(path):
            files.remove(path)
        return
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    written = path.with_name(f".{path.name}.written")
    files.write_file(written, buffer.getvalue())
    files.rename(written, path)
    files.sync_dir(folder)

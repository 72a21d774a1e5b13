"""Rows of an export in Parquet files, through pyarrow where it is installed (the extra ``parquet``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from seglog.errors import InvalidArgumentError, MissingDependencyError
from seglog.storage.format.record import properties as props
from seglog.storage.reads import NUMBERS, MessageRow

if TYPE_CHECKING:
    import pyarrow as pa

_GROUP_ROWS: Final = 10_000
_TEXTS: Final = ("topic", "msgId", "bornHost", "storeHost")
_BYTES: Final = ("body", "properties")


def write_parquet(file: BinaryIO, rows: Iterable[MessageRow]) -> int:
    """Writes rows to a file, ten thousand at a time; returns their number.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    pq, schema = _parquet(), _schema()
    import pyarrow as pa

    count = 0
    left = iter(rows)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(left, _GROUP_ROWS)):
            columns = {name: [getattr(row, name) for row in group] for name in (*_TEXTS, *NUMBERS, *_BYTES)}
            named = [row.named for row in group]
            columns["tags"] = [one.get("TAGS") for one in named]
            columns["keys"] = [props.split_keys(one.get(props.KEYS, "")) for one in named]
            columns["bodyError"] = [row.bodyError for row in group]
            columns["uniqKey"] = [one.get("UNIQ_KEY") for one in named]
            writer.write_table(pa.table(columns, schema))
            count += len(group)
    return count


def read_parquet(path: Path) -> Iterator[MessageRow]:
    """Yields the rows of a file.

    Raises:
        MissingDependencyError: pyarrow is not installed.
        InvalidArgumentError: The file is no Parquet file, or has other columns.
    """
    pq = _parquet()
    import pyarrow as pa

    names = [*_TEXTS, *NUMBERS, *_BYTES]
    try:
        file = pq.ParquetFile(path)
        missing = sorted(set(names) - set(file.schema_arrow.names))
        if missing:
            raise InvalidArgumentError(f"{path} has no column {missing[0]}: it is no export of seglog")
        for batch in file.iter_batches(_GROUP_ROWS, columns=names):
            for values in batch.to_pylist():
                yield MessageRow(**values)
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(f"{path} is no Parquet file: {error}") from error


def _schema() -> pa.Schema:
    import pyarrow as pa

    fields = [(name, pa.string()) for name in _TEXTS]
    fields += [(name, pa.int64()) for name in NUMBERS]
    fields += [
        ("bodyError", pa.string()),
        ("tags", pa.string()),
        ("keys", pa.list_(pa.string())),
        ("uniqKey", pa.string()),
    ]
    return pa.schema([*fields, *((name, pa.binary()) for name in _BYTES)])


def _parquet() -> Any:  # noqa: ANN401 - pyarrow has no types
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet needs pyarrow, which is not installed",
            help="pip install 'seglog[parquet]', or use --format jsonl",
        ) from error
    return pq

"""Holds the files of an archive against its manifests, before anything is made of them.

Manifests are the truth of what is archived. A file that is gone, cut, or was written by another program is
damage of the archive: a store that is made of it would lack messages, or have others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from seglog.errors import ConfigError, DataLossError
from seglog.spark.archive.columns import IS_OF_BYTES, SLOTS
from seglog.spark.archive.folder import DATA, ArchiveFolder, Held, archived
from seglog.spark.archive.manifest import Interval, Run
from seglog.spark.archive.measured import OF_RUN, PARTS
from seglog.spark.archive.record_crc import record_crc_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN: Final = 3
_WANTED: Final = """count_if(is_other) AS others, min(file) FILTER (WHERE is_other) AS file,
    count_if(is_wanted AND NOT placeholder) AS wantedMessages,
    count_if(is_wanted AND placeholder) AS wantedPlaceholders,
    coalesce(sum(size) FILTER (WHERE is_wanted), 0) AS wantedBytes"""
_FILE_OF_ERROR: Final = re.compile(
    r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (\S+?)\.\s"
)
_HELP: Final = "put the files of the archive back from a copy, or archive the store into another folder"


class Counted(NamedTuple):
    """What of the rows is wanted.

    Attributes:
        messages: Messages.
        placeholders: Placeholders.
        size_bytes: Bytes of both.
        rows: All rows, wanted or not.
    """

    messages: int
    placeholders: int
    size_bytes: int
    rows: int


def check_files(archive: ArchiveFolder, runs: Sequence[Run]) -> None:
    """Raises where a file that a manifest names is missing or empty, or one is there that none names.

    Raises:
        DataLossError: A file is missing.
        ConfigError: One is of no run: Spark would count its rows.
    """
    named = {name: archive.file(run, name) for run in runs for name in run.files}
    sizes = {name: archive.size_bytes(path) for name, path in named.items()}
    gone = sorted(name for name, size in sizes.items() if not size)
    if gone:
        raise DataLossError(
            f"{archive.path / DATA / gone[0]} is {'empty' if sizes[gone[0]] == 0 else 'missing'}"
            f"{_and_more(gone)}, though a manifest of the archive names it",
            help=_HELP,
        )
    unknown = sorted(set(archive.names(archive.path / DATA, ".parquet")) - named.keys())
    if unknown:
        raise ConfigError(
            f"{archive.path / DATA / unknown[0]} is in no manifest of the archive{_and_more(unknown)}",
            help="put the manifest that names it back from a copy of the archive, or move the file away",
        )


@contextmanager
def damage_named() -> Iterator[None]:
    """Names the file of the archive that Spark cannot read in the block.

    Raises:
        DataLossError: One is cut or garbled.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = _FILE_OF_ERROR.search(str(error))
        if found is None:
            raise
        path = unquote(urlsplit(found.group(1)).path)
        raise DataLossError(
            f"{path} is damaged: it is cut or its bytes were changed, and cannot be read as Parquet",
            help=_HELP,
        ) from error


def check_rows(
    spark: SparkSession,
    rows: DataFrame,
    runs: Sequence[Run],
    topics: Iterable[str],
    folder: Path,
    wanted_rows: str,
) -> Counted:
    """Counts rows that are those that the manifests name, each the record that was archived.

    Args:
        spark: The session.
        rows: All rows of one store, of the wanted topics.
        runs: Its runs.
        topics: The wanted topics, all if empty.
        folder: The archive.
        wanted_rows: An expression for those that are wanted, of all that are checked.

    Raises:
        DataLossError: They are not.
    """
    wanted = frozenset(topics)
    every = [0, 0, 0, 0]
    other = f"NOT {IS_OF_BYTES}"
    if "recordCrc" in rows.columns:  # the first layout has none
        other += f" OR recordCrc <> {record_crc_sql('concat(head, body, tail)')}"
    marked = rows.selectExpr("*", f"{SLOTS} AS slots", f"{other} AS is_other", f"{wanted_rows} AS is_wanted")
    marked = marked.selectExpr("*", "if(is_other, input_file_name(), NULL) AS file")
    found: dict[int, list[Interval]] = {run.number: [] for run in runs}
    counts: dict[int, tuple[int, int, int]] = dict.fromkeys(found, (0, 0, 0))
    text = PARTS.format(keys=OF_RUN, wanted=_WANTED)
    with damage_named():
        parts = spark.sql(text, rows=marked).collect()
    for row in parts:
        if row["others"]:
            raise DataLossError(
                f"{row['file']}: {row['others']} records of {row['topic']}/{row['queueId']} at queue offsets"
                f" {row['first']} to {row['end'] - 1} are not those that were archived"
                " (recordCrc, or a column that their bytes contradict)",
                help=_HELP,
            )
        number = row["run"]
        found.setdefault(number, []).append(Interval(row["topic"], row["queueId"], row["first"], row["end"]))
        before = counts.get(number, (0, 0, 0))
        more = row["messages"], row["placeholders"], row["bytes"]
        counts[number] = before[0] + more[0], before[1] + more[1], before[2] + more[2]
        own = row["wantedMessages"], row["wantedPlaceholders"], row["wantedBytes"], more[0] + more[1]
        every = [one + other for one, other in zip(every, own, strict=True)]
    by_number = {run.number: run for run in runs}
    for number, intervals in sorted(found.items()):
        run = by_number.get(number)
        named = [one for one in run.intervals if not wanted or one.topic in wanted] if run else []
        _check_intervals(folder, number, _joined(named), sorted(intervals))
        if run is not None and not wanted:
            _check_counts(folder, run, counts[number])
    return Counted(*every)


def _check_intervals(folder: Path, number: int, named: Sequence[Interval], found: Sequence[Interval]) -> None:
    if list(named) == list(found):
        return
    lacking = [one for one in named if one not in found]
    beyond = [one for one in found if one not in named]
    raise DataLossError(
        f"{folder}: run {number} does not hold what its manifest names: expected"
        f" {_shown(lacking)}, found {_shown(beyond)}",
        help=_HELP,
    )


def _check_counts(folder: Path, run: Run, found: tuple[int, int, int]) -> None:
    named = run.messages, run.placeholders, run.size_bytes
    if named != found and run.store is not None:
        raise DataLossError(
            f"{folder}: run {run.number} does not hold what its manifest names: expected"
            f" {named[0]} messages, {named[1]} placeholders and {named[2]} bytes, found {found[0]},"
            f" {found[1]} and {found[2]}",
            help=_HELP,
        )


def _joined(intervals: Sequence[Interval]) -> list[Interval]:
    held: Held = archived([Run(1, 0, (), tuple(intervals), 0, 0)])
    return sorted(one for parts in held.values() for one in parts)


def _shown(intervals: Sequence[Interval]) -> str:
    shown = [f"{one.topic}/{one.queue_id} {one.first}..{one.end - 1}" for one in intervals[:_SHOWN]]
    return (", ".join(shown) or "nothing else") + _and_more(intervals, _SHOWN)


def _and_more(found: Sequence[object], shown: int = 1) -> str:
    return f" and {len(found) - shown} more" if len(found) > shown else ""

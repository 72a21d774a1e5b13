"""Compares the files of an archive with its manifests, before anything is derived from them.

Manifests are the truth about the archive. A file that is missing, cut, or written by another program is
damage of the archive: a store restored from it would lack messages, or have wrong ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from seglog.errors import ConfigError, DataLossError
from seglog.spark.archive.folder import DATA, ArchiveFolder, Held, Key, archived
from seglog.spark.archive.held_rows import ArchivedFile, HeldRows, look_into
from seglog.spark.archive.made.stretches import Noted, put_together
from seglog.spark.archive.manifest import Interval, Run
from seglog.spark.making.each import run_each
from seglog.storage.files import RestoringFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN: Final = 3
_FILE_OF_ERROR: Final = re.compile(
    r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (\S+?)\.\s"
)
_HELP: Final = "put the files of the archive back from a copy, or archive the store into another folder"


class Counted(NamedTuple):
    """The numbers of wanted rows.

    Attributes:
        messages: Number of messages.
        placeholders: Number of placeholders.
        size_bytes: Bytes of both.
        rows: Number of all rows, wanted or not.
    """

    messages: int
    placeholders: int
    size_bytes: int
    rows: int


def check_files(archive: ArchiveFolder, runs: Sequence[Run]) -> None:
    """Checks that each file that a manifest lists exists and is not empty, and that there are no other files.

    Raises:
        DataLossError: A file is missing.
        ConfigError: A file is of no run: Spark would count its rows.
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
    """Adds the name of the archive's file to errors of Spark in the block.

    Raises:
        DataLossError: A file is cut or garbled.
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
        raise _damaged(path) from error


def check_rows(
    spark: SparkSession,
    archive: ArchiveFolder,
    runs: Sequence[Run],
    topics: Iterable[str],
    ends: Mapping[Key, int],
) -> Counted:
    """Counts the rows of one store; compares the files with the manifests, and each row with its checksum.

    Args:
        spark: The session.
        archive: The archive.
        runs: The runs of the store.
        topics: The topics to read, all if empty.
        ends: The first wanted queue offset, by topic and queue id; 0 for other queues.

    Raises:
        DataLossError: They differ.
    """
    wanted = frozenset(topics)
    files = [
        ArchivedFile(archive.file(run, name), name, run.number, run.store is None)
        for run in runs
        for name in run.files
    ]

    def look(opened: RestoringFiles, file: ArchivedFile) -> HeldRows:
        return look_into(opened, file, wanted, ends)

    by_run: dict[int, list[Noted]] = {run.number: [] for run in runs}
    every = [0, 0, 0, 0]
    for file, held in zip(files, run_each(spark, archive.path, look, files), strict=True):
        if held.damage:
            raise _damaged(file.path)
        if held.other is not None:
            topic, queue_id, first, last = held.other
            raise DataLossError(
                f"{file.path}: {held.others} records of {topic}/{queue_id} at queue offsets {first} to {last}"
                " are not those that were archived (recordCrc, or a column that their bytes contradict)",
                help=_HELP,
            )
        by_run[file.run].append(held.noted)
        every = [one + other for one, other in zip(every, (*held.wanted, held.rows), strict=True)]
    for run in runs:
        found = put_together(by_run[run.number])
        named = [one for one in run.intervals if not wanted or one.topic in wanted]
        _check_intervals(archive.path, run.number, _joined(named), found.intervals)
        if not wanted:
            _check_counts(archive.path, run, (found.messages, found.placeholders, found.size_bytes))
    return Counted(*every)


def _damaged(path: Path | str) -> DataLossError:
    return DataLossError(
        f"{path} is damaged: it is cut or its bytes were changed, and cannot be read as Parquet", help=_HELP
    )


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

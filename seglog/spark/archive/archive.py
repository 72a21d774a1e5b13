"""Adds to an archive what a store has and the archive has not, in two Spark jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog.clock import Clock, SystemClock
from seglog.errors import NotFoundError
from seglog.spark import register
from seglog.spark.archive.folder import ArchiveFolder, Interval, Run, archived, starting_offsets
from seglog.storage.directory import ReadingRoot, check_is_store
from seglog.storage.format import names
from seglog.storage.format.record import FILLER_TOPIC
from seglog.storage.format.system_names import TRANSIT_TOPICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_READ: Final = (
    "topic string, queueId int, queueOffset bigint, physicalOffset bigint, size int, msgId string,"
    " keys string, tags string, flag int, sysFlag int, reconsumeTimes int, bornTimestamp bigint,"
    " storeTimestamp bigint, bornHost string, storeHost string, properties map<string,string>,"
    " body binary, record binary"
)
COLUMNS: Final = (
    "topic string, day string, run int, queueId int, queueOffset bigint, physicalOffset bigint, size int,"
    " msgId string, keys string, tags string, flag int, sysFlag int, reconsumeTimes int,"
    " bornTimestamp bigint, storeTimestamp bigint, bornHost string, storeHost string,"
    " properties map<string,string>, head binary, body binary, tail binary"
)
"""The columns of an archive; times in ms."""
_HEAD_BYTES: Final = "(88 + 12 * (shiftright(sysFlag, 4) & 1) + 12 * (shiftright(sysFlag, 5) & 1))"
"""Of a record, by its flags: see :data:`seglog.storage.format.record.record.HEADS`."""
_MADE: Final = {
    "day": "date_format(date_add(date'1970-01-01', cast(floor(storeTimestamp / 86400000) as int)),"
    " 'yyyy-MM-dd')",
    "head": f"substring(record, 1, {_HEAD_BYTES})",
    "tail": f"substring(record, {_HEAD_BYTES} + octet_length(body) + 1)",
}
_OWN_TOPICS: Final = (*TRANSIT_TOPICS, FILLER_TOPIC)
_TAKES_SLOT: Final = "(sysFlag & 12) NOT IN (4, 12)"
_SLOTS: Final = (
    "CASE WHEN sysFlag & 128 <> 0 THEN coalesce(try_cast(properties['INNER_NUM'] AS int), 1) ELSE 1 END"
)
_RUNS: Final = """
    SELECT topic, queueId, min(queueOffset) AS first, max(queueOffset + slots) AS end,
           count(*) AS messages, sum(size) AS bytes
    FROM (SELECT *, sum(is_first) OVER (PARTITION BY topic, queueId ORDER BY queueOffset) AS part
          FROM (SELECT *, CASE WHEN queueOffset = lag(queueOffset + slots) OVER
                    (PARTITION BY topic, queueId ORDER BY queueOffset) THEN 0 ELSE 1 END AS is_first
                FROM {staged}))
    GROUP BY topic, queueId, part
"""


def archive_store(
    root: Path,
    folder: Path,
    spark: SparkSession,
    *,
    topics: Sequence[str] = (),
    verify: bool = True,
    clock: Clock | None = None,
) -> Run | None:
    """Adds to an archive what it has not yet of a store; the store may be open.

    Args:
        root: The store directory; every machine of the cluster must see it there.
        folder: The archive, likewise; made where it is missing.
        spark: The session.
        topics: Topics that are wanted; all but the broker's own if empty.
        verify: Whether to compute checksums of what is archived.
        clock: The time.

    Returns:
        What was added; None where the archive had everything.

    Raises:
        NotFoundError: There is no store.
        StoreLockedError: Another run adds to the archive.
        ConfigError: A manifest of the archive cannot be read.
        SparkJobError: The store is damaged, or cannot be read.
    """
    from pyspark.sql.functions import col

    if not check_is_store(ReadingRoot(root), root):
        raise NotFoundError(f"there is no store at {root}")
    archive = ArchiveFolder(folder)
    lock = archive.lock()
    try:
        number = archive.finish()
        held = archived(archive.runs())
        staged = archive.staged(number)
        rows = _rows(spark, root, topics, verify=verify, offsets=starting_offsets(held))
        if not topics:
            is_own = col("topic").isin(*_OWN_TOPICS) | col("topic").startswith(names.SYSTEM_PREFIX)
            rows = rows.where(~is_own)
        columns = [name.split()[0] for name in COLUMNS.split(", ")]
        rows = rows.selectExpr(
            "*", f"{number} AS run", *(f"{text} AS {name}" for name, text in _MADE.items())
        )
        writer = rows.select(*columns).write.option("compression", "zstd").partitionBy("topic", "day")
        writer.parquet(str(staged))
        run = _run(spark, archive, number, (clock or SystemClock()).now_ms())
        if run is None:
            archive.files.remove_tree(staged)
            return None
        archive.commit(run)
        archive.finish()
        return run
    finally:
        lock.release()


def read_archive(spark: SparkSession, folder: Path) -> DataFrame | None:
    """Returns all rows of an archive, :data:`COLUMNS`; None of an empty one."""
    archive = ArchiveFolder(folder)
    if not archive.is_finished():
        lock = archive.lock()
        try:
            archive.finish()
        finally:
            lock.release()
    files = [str(archive.file(run, name)) for run in archive.runs() for name in run.files]
    if not files:
        return None
    reader = spark.read.schema(COLUMNS).option("basePath", str(archive.path / "data"))
    return reader.parquet(*files)


def _rows(
    spark: SparkSession,
    root: Path,
    topics: Sequence[str],
    *,
    verify: bool,
    offsets: dict[str, dict[str, int]],
) -> DataFrame:
    register(spark)
    reader = spark.read.format("seglog").schema(_READ).option("verify", str(verify).lower())
    if topics:
        reader = reader.option("topic", ",".join(topics))
    if offsets:
        reader = reader.option("startingOffsets", json.dumps(offsets))
    return reader.load(str(root)).where(_TAKES_SLOT)


def _run(spark: SparkSession, archive: ArchiveFolder, number: int, now_ms: int) -> Run | None:
    """Returns what the files of a run hold; None if that is nothing."""
    staged = archive.staged(number)
    files = sorted(archive.names(staged, ".parquet"))
    if not files:
        return None
    view = f"seglog_archive_run_{number}"
    rows = spark.read.schema(COLUMNS).parquet(str(staged))
    rows.selectExpr("topic", "queueId", "queueOffset", "size", f"{_SLOTS} AS slots").createOrReplaceTempView(
        view
    )
    found = spark.sql(_RUNS.format(staged=view)).collect()
    spark.catalog.dropTempView(view)
    return Run(
        number,
        now_ms,
        tuple(files),
        tuple(sorted(Interval(row["topic"], row["queueId"], row["first"], row["end"]) for row in found)),
        sum(row["messages"] for row in found),
        sum(row["bytes"] for row in found),
    )

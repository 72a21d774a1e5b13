"""Adds to an archive the records of a store that it lacks.

A run first compares the store with the archived messages, then writes the rows, then lists missing messages.
The manifest makes all of this valid at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seglog.clock import Clock, SystemClock
from seglog.errors import CorruptError
from seglog.spark.archive import columns
from seglog.spark.archive.continuity import check_continues
from seglog.spark.archive.folder import ArchiveFolder, Key, archived, check_apart, still_missing
from seglog.spark.archive.held import check_files
from seglog.spark.archive.losses import damage_of, loss_error, losses_of, missing_ranges, unreadable_stretches
from seglog.spark.archive.made.run_files import RunTarget
from seglog.spark.archive.made.staging import StoreRows
from seglog.spark.archive.made.stretches import Found
from seglog.spark.archive.manifest import LOST, Missing, Run, StoreIdentity
from seglog.spark.archive.missing_table import write_missing_table
from seglog.spark.archive.names import check_has_names, place_in_archive
from seglog.spark.archive.store_facts import QueueEnds, StoreFacts
from seglog.spark.audit import audit_store
from seglog.spark.small_frames import small_frame
from seglog.spark.task_errors import job_errors
from seglog.storage.directory import ReadingRoot, demand_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@job_errors()
def archive_store(
    root: Path,
    folder: Path,
    spark: SparkSession,
    *,
    name: str | None = None,
    topics: Sequence[str] = (),
    verify: bool = True,
    allow_loss: bool = False,
    fill_missing: bool = False,
    clock: Clock | None = None,
) -> Run | None:
    """Adds to an archive the records of a store that it lacks; the store may be open.

    Args:
        root: The store directory; every machine of the cluster must be able to read it.
        folder: The archive, likewise; created if it does not exist.
        spark: The session.
        name: Name of the store in the archive; None for the name of the store that it continues, see
            :func:`~seglog.spark.archive.names.place_in_archive`.
        topics: Topics to archive; all but the broker's own if empty.
        verify: Whether to compute checksums of the archived records.
        allow_loss: Whether to archive a damaged store, and list its missing messages.
        fill_missing: Whether to search again for messages that earlier runs listed as lost.
        clock: The time.

    Returns:
        The run that was added; None if the archive had everything.

    Raises:
        NotFoundError: There is no store.
        StoreMismatchError: The store does not continue the archived messages of its name.
        DataLossError: The store is damaged, and ``allow_loss`` is off; or a file of the archive is missing.
        InvalidArgumentError: The name is not valid, the archive has the first layout, or it is in the store.
        StoreLockedError: Another run adds to the archive.
        ConfigError: A manifest of the archive cannot be read or is missing, or a file is in no manifest.
        SparkJobError: The store cannot be read.
        FullError: The archive's file system has no space left.
        ReadOnlyError: It is mounted read-only.
    """
    check_apart(root, folder)
    demand_store(ReadingRoot(root), root)
    archive = ArchiveFolder(folder)
    lock = archive.lock()
    try:
        number = archive.finish()
        runs = archive.runs()
        check_has_names(runs, archive.path)
        check_files(archive, runs)
        rows = StoreRows(spark, root, topics, verify=verify)
        with StoreFacts(root) as facts:
            name, places = place_in_archive(
                name, runs, root, lambda own: check_continues(own, facts, rows.look_up, topics)
            )
            job = _Job(spark, archive, root, rows, facts, [run for run in runs if run.name == name], places)
            try:
                run = job.add(
                    number,
                    name,
                    (clock or SystemClock()).now_ms(),
                    allow_loss=allow_loss,
                    fill_missing=fill_missing,
                )
            except BaseException:
                archive.clear(archive.staged(number))
                raise
        if run is None:
            archive.clear(archive.staged(number))
        else:
            archive.commit(run)
            archive.finish()
        write_missing_table(archive.files, archive.path, runs if run is None else [*runs, run])
        return run
    finally:
        lock.release()


class _Job:
    """One run.

    Args:
        spark: The session.
        archive: The archive.
        root: The store directory.
        rows: The rows of the store.
        facts: The facts that its files show.
        runs: Earlier runs of this store.
        places: Place in the log of the last archived record of each queue.
    """

    def __init__(
        self,
        spark: SparkSession,
        archive: ArchiveFolder,
        root: Path,
        rows: StoreRows,
        facts: StoreFacts,
        runs: Sequence[Run],
        places: Mapping[Key, int],
    ) -> None:
        self._spark = spark
        self._archive = archive
        self._root = root
        self._rows = rows
        self._facts = facts
        self._runs = runs
        self._places = places
        self._held = archived(runs)
        self._ends = {key: parts[-1].end for key, parts in self._held.items()}
        self._ranges, self._stretches = still_missing(runs)

    def add(self, number: int, name: str, now_ms: int, *, allow_loss: bool, fill_missing: bool) -> Run | None:
        """Writes the rows that the archive lacks; returns the run, None if there are no such rows.

        Raises:
            DataLossError: The store is damaged, and ``allow_loss`` is off.
        """
        before = self._wanted_ends(self._facts)
        staged = self._archive.staged(number)
        missing: list[Missing] = []
        is_strict = True
        try:
            found = self._write(staged, number, name, missing, strict=True, fills=fill_missing)
        except _read_errors():
            report = audit_store(self._root, spark=self._spark)
            if not allow_loss:
                if not damage_of(report):
                    raise
                raise loss_error(report) from None
            is_strict = False
            missing.clear()
            found = self._write(staged, number, name, missing, strict=False, fills=fill_missing)
            missing += unreadable_stretches(report, self._stretches)
        with StoreFacts(self._root) as now:
            after = self._wanted_ends(now)
            is_log_cut = now.first_phy_offset > 0
        missing += missing_ranges(
            self._held, self._ranges, found.intervals, before, after, is_log_cut=is_log_cut
        )
        if is_strict and any(one.why == LOST for one in missing):
            report = audit_store(self._root, spark=self._spark)
            if losses_of(report) and not allow_loss:
                raise loss_error(report)
            missing += unreadable_stretches(report, self._stretches)
        if not found.intervals and not missing:
            return None
        grown = {key for key in found.last if found.last[key].queue_offset >= self._ends.get(key, 0)}
        return Run(
            number,
            now_ms,
            tuple(sorted(found.files)),
            tuple(found.intervals),
            found.messages,
            found.size_bytes,
            self._identity(name),
            tuple(found.last[key] for key in sorted(grown)),
            tuple(missing),
            found.placeholders,
        )

    def _write(
        self, staged: Path, number: int, name: str, missing: list[Missing], *, strict: bool, fills: bool
    ) -> Found:
        """Writes the rows of the run and returns their numbers; adds omitted records to ``missing``."""
        self._archive.clear(staged)
        target = RunTarget(self._archive.path, staged, number, name, self._rows.is_own_wanted)
        rows = self._filling(strict=strict) if fills and self._ranges else None
        if rows is None:
            found = self._rows.write_after(self._ends, target, strict=strict)
        else:
            found = self._rows.write(rows, target)
        found.turned |= {
            (one.topic, one.queue_id)
            for one, place in zip(found.intervals, found.places, strict=True)
            if one.first >= self._ends.get((one.topic, one.queue_id), 0)
            and place < self._places.get((one.topic, one.queue_id), -1)
        }
        if found.turned:
            served = {key: places for key in found.turned if (places := self._facts.places(*key)) is not None}
            if rows is None:
                rows = self._rows.after(self._ends, strict=strict)
            written = [staged / one for one in found.files]
            chosen, gone = self._rows.keep_served(written, rows, found.turned, served)
            missing += [one for one in gone if not any(_covers(known, one) for known in self._stretches)]
            self._archive.clear(staged)
            found = self._rows.write(chosen, target)
        return found

    def _filling(self, *, strict: bool) -> DataFrame:
        """Returns the rows after the archived ones, and messages, without placeholders, that were missing."""
        firsts = dict(self._ends)
        for one in self._ranges:
            key = one.topic, one.queue_id
            firsts[key] = min(one.first, firsts.get(key, one.first))
        ends = small_frame(
            self._spark,
            "topic string, queueId int, heldEnd bigint",
            [(*key, end) for key, end in self._ends.items()],
        )
        missing = small_frame(
            self._spark,
            "missingTopic string, missingQueue int, missingFirst bigint, missingEnd bigint",
            [one[:4] for one in self._ranges],
        )
        rows = self._rows.after(firsts, strict=strict).join(ends, ["topic", "queueId"], "left")
        is_in = (
            (rows["topic"] == missing["missingTopic"])
            & (rows["queueId"] == missing["missingQueue"])
            & (rows["queueOffset"] >= missing["missingFirst"])
            & (rows["queueOffset"] < missing["missingEnd"])
        )
        chosen = rows.join(missing, is_in, "left").where(
            "heldEnd IS NULL OR queueOffset >= heldEnd OR (missingFirst IS NOT NULL AND NOT placeholder)"
        )
        return chosen.select(*(one.name for one in columns.WANTED))

    def _wanted_ends(self, facts: StoreFacts) -> dict[Key, QueueEnds]:
        return {key: ends for key, ends in facts.queues().items() if self._rows.is_wanted(key[0])}

    def _identity(self, name: str) -> StoreIdentity:
        first = self._facts.record_at(self._facts.first_phy_offset)
        place, crc = (first.phy_offset, first.crc) if first is not None else (-1, 0)
        return StoreIdentity(name, self._facts.segment_bytes, place, crc)


def _covers(known: Missing, one: Missing) -> bool:
    is_same = known[:2] == one[:2] and known.why == one.why
    return is_same and known.phy_offset <= one.phy_offset and one.phy_end <= known.phy_end


def _read_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return CorruptError, PySparkException, Py4JJavaError

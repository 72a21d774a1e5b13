"""Opens a store directory: takes the lock, surveys, recovers, and returns the parts of an open store.

The steps of :func:`open_writer`, in this order: the lock; a survey, which only reads; checks of the wanted
lengths, which refuse before anything is changed; mends and recovery, which write; the writer, whose
background threads start last. If a step fails, the lock is released, and the abort file is removed if nothing
was changed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from seglog.clock import Clock
from seglog.errors import (
    InvalidArgumentError,
    LengthUnknownError,
    MisnamedFileError,
    ReadOnlyError,
    StoreError,
    UndoError,
)
from seglog.logs import logger
from seglog.storage.certain_mends import Mend, certain_mends, mended_survey, withhold
from seglog.storage.directory import (
    ReadingRoot,
    as_stated,
    check_is_store,
    demand_log,
    demand_own_queues,
    find_misnamed,
    no_store,
)
from seglog.storage.directory.broker_conf import write_lengths
from seglog.storage.directory.file_facts import Certainty
from seglog.storage.directory.geometry import FileSizes, StoreGeometry, check_geometry
from seglog.storage.files import Files, HeldLock, explained
from seglog.storage.files.latch import Latch, LatchedFiles
from seglog.storage.findings import Finding, Severity, place_text, repair_with_length
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.index.index import DEFAULT_INDEX_GEOMETRY, IndexGeometry
from seglog.storage.format.names import ABORT_FILE, COMMIT_LOG, LOCK_FILE
from seglog.storage.reads.reader import Reader
from seglog.storage.recovery.store_recovery import RecoveryReport, recover
from seglog.storage.scan.doubt import doubt_of, earlier_doubt
from seglog.storage.small_files import Attic, remove_recovery_point, write_checkpoint
from seglog.storage.small_files.undo_names import stopped_repair
from seglog.storage.store_base import StoreCore
from seglog.storage.survey import Survey, look_again, survey, survey_moving
from seglog.storage.survey.incremental_survey import survey_from_point
from seglog.storage.threads.waiters import Waiters
from seglog.storage.writes.appender import Appender, Appends
from seglog.storage.writes.appends import PutSettings
from seglog.storage.writes.fast_path import NO_FAST_PATH, FastPath
from seglog.storage.writes.fast_path_opening import open_fast_path
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.writer import Writer
from seglog.text import shell_line, shell_text

_log = logger(__name__)
_NO_FINDINGS: tuple[Finding, ...] = ()
_MAX_LOSSES_SAID = 3
_FROM_FILES = (Certainty.BY_SIZE, Certainty.WRITTEN)
"""Lengths that the files themselves show. A caller that wants another length means other files: an error."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An open store.

    Attributes:
        core: Its writer or reader.
        appends: The ordinary way of appends; a reader refuses them.
        files: Its files; those of a writer are behind its latch.
        lock: The lock of a writer; None for a reader.
        record_crc: Whether new records carry ``__CRC32#``.
        report: The report of the opening.
        fast_path: The fast path, which appends try first.
        durability: The durability of puts that give none.
    """

    core: StoreCore
    appends: Appends
    files: Files
    lock: HeldLock | None
    record_crc: bool
    report: RecoveryReport
    fast_path: FastPath = NO_FAST_PATH
    durability: Durability = Durability.ASYNC


def open_reader(root: Path, files: Files, clock: Clock) -> Opened:
    """Opens a store for reading, with or without a writer beside it.

    Raises:
        NotFoundError: There is no store.
        NotAStoreError: The directory holds something else.
        UnsupportedStoreError: A store of another kind.
        LogMissingError: It has no log, but other files show that there was one.
    """
    begun_ms = clock.monotonic_ms()
    met = files
    with explained():
        files = look_again(lambda: as_stated(met, root))
        found = survey_moving(lambda: survey(root, files), root, files)
        if not found.log_files:
            demand_log(met, root)
        records = len(found.rows)
        # A file that a writer removed meanwhile ends the search for mends; the store is served as it is.
        with suppress(FileNotFoundError):
            mends = certain_mends(found, files)
            found = withhold(found, mends, files, lambda mended: survey(root, mended))
        reader = Reader(found, files, clock)
    if isinstance(met, ReadingRoot):
        found.findings += met.findings
    report = RecoveryReport(
        found.mode,
        records,
        found.max_phy_offset,
        findings=tuple(found.findings),
        elapsed_ms=clock.monotonic_ms() - begun_ms,
        doubt=doubt_of(found.findings) | earlier_doubt(found.standing),
    )
    return Opened(reader, reader, files, None, found.record_crc, report)


def open_writer(
    root: Path,
    files: Files,
    clock: Clock,
    wanted: FileSizes,
    new: FileSizes,
    waiters: Waiters,
    *,
    create: bool,
    recovery_step_bytes: int,
    puts: PutSettings,
) -> Opened:
    """Opens a store for writing; creates it in an absent or empty directory if ``create``.

    Args:
        root: The store directory.
        files: The file layer of the store.
        clock: The time.
        wanted: Wanted lengths of files. An existing store keeps the lengths of its log and queue files, and
            other wanted lengths are an error; the lengths of index and compaction files are used if the store
            has no such files.
        new: Lengths of a new store that ``wanted`` leaves open; those left open here too are RocketMQ's.
        waiters: Notified of new messages.
        create: Whether to create a missing store.
        recovery_step_bytes: Growth of the log from one recovery point to the next; 0 for no points.
        puts: The defaults of appends.

    Raises:
        NotFoundError: There is no store, and ``create`` is false.
        NotAStoreError: The directory holds something else.
        UnsupportedStoreError: A store of another kind, or with queues in RocksDB.
        StoreLockedError: Another process writes to it.
        ReadOnlyError: The directory cannot be written.
        InvalidArgumentError: Lengths that do not fit.
        LogMissingError: It has no log, but other files show that there was one.
        UndoError: A repair of it was stopped half-way.
    """
    begun_ms = clock.monotonic_ms()
    latch = Latch(root)
    files = LatchedFiles(files, latch)
    if not _exists_to_write(root, files, create=create):
        _geometry(None, wanted.over(new))  # refuses impossible lengths before the directory is created
    with explained(), _read_only_errors(root):
        files.make_dirs(root)
        lock = files.lock(root)
        report, writer = None, None
        try:
            # Decided under the lock: another process may have created and closed the store since the check.
            is_new = [entry.name for entry in files.list_dir(root)] == [LOCK_FILE]
            found, doubts = None, _NO_FINDINGS
            index_geometry: IndexGeometry | None
            if is_new:
                wanted = wanted.over(new)
                index_geometry = wanted.index or DEFAULT_INDEX_GEOMETRY
            else:
                look = partial(
                    _survey_to_write,
                    root,
                    files,
                    lock,
                    replace(wanted, index=None, compaction=None),
                    from_point=recovery_step_bytes > 0,
                )
                found, doubts = look()
                _geometry(found, wanted)  # refuses lengths that do not fit before anything is changed
                index_geometry = found.index_division(files) or wanted.index
                found, mended = _mended(found, files, lambda: look()[0])
                doubts += mended
            geometry = _geometry(found, wanted)
            report = (
                _create(root, files) if found is None else recover(found, files, os.getpid(), clock.now_ms())
            )
            # After RocketMQ's own files: a crash before must not leave a folder with our files alone, which
            # is not a store.
            write_lengths(files, root, _to_write_down(found, geometry, index_geometry))
            writer = Writer(
                root,
                geometry,
                found,
                files,
                clock,
                waiters,
                index_geometry,
                wanted.compaction,
                latch,
                recovery_step_bytes=recovery_step_bytes,
                mark=lock.mark,
            )
            if writer.index.had_files and writer.index.geometry != index_geometry:
                # The division of the index is written down, for a repair or open that finds no index file.
                write_lengths(files, root, _to_write_down(found, geometry, writer.index.geometry))
            findings = (*doubts, *report.findings, *writer.index_findings)
            report = replace(report, findings=findings, elapsed_ms=clock.monotonic_ms() - begun_ms)
            if puts.record_crc is None:
                puts = replace(puts, record_crc=found is None or found.record_crc)
            appender = Appender(writer.appends, writer.commit, clock, puts)
            fast_path = open_fast_path(appender, writer.appends, writer.log.tail, waiters)
            # Last: from here on threads change files, so that a failure must close the writer.
            writer.start_background(puts.flush_interval_ms)
        except BaseException:
            with suppress(OSError, StoreError):
                if writer is not None:
                    writer.close()
                elif report is not None and _changed_nothing(report):
                    # The stop before this opening was clean, and the files are still as it left them.
                    files.remove(root / ABORT_FILE)
            lock.release()
            raise
    _warn_of_losses(root, report.findings)
    return Opened(writer, appender, files, lock, appender.record_crc, report, fast_path, appender.durability)


def _exists_to_write(root: Path, files: Files, *, create: bool) -> bool:
    """Returns whether there is a store; refuses one that is not written to."""
    with explained():
        exists = check_is_store(files, root, makes=create)
        demand_own_queues(files, root)
    if not exists and not create:
        raise no_store(root)
    return exists


def _warn_of_losses(root: Path, findings: Sequence[Finding]) -> None:
    """Logs the losses that the opening found: users of an embedded store look into their log first."""
    losses = [finding for finding in findings if finding.severity is Severity.LOSS]
    if losses:
        places = "; ".join(map(place_text, losses[:_MAX_LOSSES_SAID]))
        more = f"; and {len(losses) - _MAX_LOSSES_SAID} more" if len(losses) > _MAX_LOSSES_SAID else ""
        command = shell_line(["seglog", "check", root])
        _log.warning("messages of the store are lost: %s%s; `%s` says more", places, more, command)


def _demand_whole_repair(root: Path, files: Files) -> None:
    """Refuses a store whose repair was stopped half-way: writes now would make it impossible to undo."""
    if number := stopped_repair(files, root):
        raise UndoError(
            f"a repair of {root}, or the undo of one, was stopped half-way (undo pack {number})",
            help=f"nothing was changed; `seglog repair {shell_text(root)}` takes it back and repairs the"
            f" store, `seglog undo {shell_text(root)}` takes it back alone",
        )


def _survey_to_write(
    root: Path, files: Files, lock: HeldLock, given: FileSizes, *, from_point: bool
) -> tuple[Survey, tuple[Finding, ...]]:
    """Returns a survey from the recovery point on, or a whole survey and the reason against the point."""
    _demand_whole_repair(root, files)
    found = survey_from_point(root, files, is_marked=lock.is_marked()) if from_point else None
    if isinstance(found, Survey):
        return found, ()
    # A log file that is a copy of another one cost only the file that it replaced. A log file under the name
    # of another one is refused: only a repair can rename it.
    for name in find_misnamed(files, root).moves:
        raise MisnamedFileError(f"{COMMIT_LOG}/{name}: its records say that it is another file of the log")
    # Recovery may cut the log below the point, or create queues that the point does not have: a crash in the
    # middle must not leave a point that is not true any more.
    seen = survey(root, files, given=given)
    if not seen.log_files:
        demand_log(files, root)
    remove_recovery_point(files, root)
    return seen, () if found is None else (found,)


def _mended(
    found: Survey, files: Files, survey_again: Callable[[], Survey]
) -> tuple[Survey, tuple[Finding, ...]]:
    """Writes the mends that are certain; returns the survey after them, and their findings."""
    made: list[Finding] = []

    with Attic(files, found.root) as attic:

        def note(seen: Survey, mends: Sequence[Mend]) -> None:
            segment = seen.geometry.segment_size_bytes
            for mend in mends:
                name, position, _size = mend.place(segment)
                changed = mend.before[mend.changed.start : mend.changed.stop]
                attic.keep(name, position, changed)
                made.append(mend.finding(segment))
            attic.sync()

        return mended_survey(found, files, survey_again, note), tuple(made)


def _geometry(found: Survey | None, wanted: FileSizes) -> StoreGeometry:
    segment, queue_file = wanted.segment_bytes, wanted.queue_file_bytes
    if found is None:
        geometry = StoreGeometry()
        if segment is not None:
            geometry = replace(geometry, segment_size_bytes=segment)
        if queue_file is not None:
            geometry = replace(geometry, queue_file_size_bytes=queue_file)
        return check_geometry(geometry)
    geometry = found.geometry
    for name, asked, has, inferred in (
        ("segment_size_bytes", segment, geometry.segment_size_bytes, found.lengths.segment),
        ("queue_file_size_bytes", queue_file, geometry.queue_file_size_bytes, found.lengths.queue),
    ):
        is_other = inferred.certainty in _FROM_FILES and asked != inferred.size_bytes
        if asked is not None and (asked != has or is_other):
            raise InvalidArgumentError(
                f"{name}={asked}, but the files of {found.root} have {inferred.size_bytes or has} bytes",
                help=f"leave {name} out for an existing store",
            )
    _demand_known(found)
    return check_geometry(geometry)


def _demand_known(found: Survey) -> None:
    """Refuses a store for which the length of new files cannot be known.

    Raises:
        LengthUnknownError: Nothing in the store shows the length of its log files or queue files.
    """
    for is_known, files, option, argument in (
        (found.geometry.is_segment_known, "log files", "segment-bytes", "segment_size_bytes"),
        (
            found.geometry.is_queue_file_known or not (found.queues or found.lengths.queue.is_unknown),
            "queue files",
            "queue-file-bytes",
            "queue_file_size_bytes",
        ),
    ):
        if not is_known:
            raise LengthUnknownError(
                f"nothing in {found.root} shows how long its {files} must be",
                help=f"nothing was changed; open it with {argument}=, or run"
                f" {repair_with_length(f'--{option}', found.root)}",
            )


def _to_write_down(found: Survey | None, geometry: StoreGeometry, index: IndexGeometry | None) -> FileSizes:
    batch = None if found is None else found.geometry.found_batch_file_bytes
    return FileSizes(geometry.queue_file_size_bytes, index, geometry.segment_size_bytes, batch)


def _changed_nothing(report: RecoveryReport) -> bool:
    """Returns whether the last stop was clean, and recovery changed nothing but the abort file."""
    is_clean = report.mode in {"created", "normal"} and not report.findings
    return is_clean and not report.cut_bytes and not report.rewritten_queue_files


def _create(root: Path, files: Files) -> RecoveryReport:
    files.write_file(root / ABORT_FILE, b"%d" % os.getpid())
    files.make_dirs(root / COMMIT_LOG)
    write_checkpoint(files, root, Checkpoint())
    files.sync_dir(root)
    return RecoveryReport("created")


@contextmanager
def _read_only_errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise ReadOnlyError(f"{error.filename or root} cannot be written: {error.strerror}") from error
        raise

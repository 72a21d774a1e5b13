"""The folder of an archive: its manifests, the archived intervals, and files that are not committed yet.

Truth: the manifests. A file in ``_staged`` that a manifest lists counts as one in ``data``, and the next run
moves it there; other files in ``_staged`` are removed.
"""

from __future__ import annotations

import errno
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

from seglog.errors import ConfigError, CorruptError, InvalidArgumentError, StoreError
from seglog.spark.archive.manifest import LOST, UNREADABLE, Interval, Missing, Run, parse_run, run_fields
from seglog.spark.compact.swap import work_folder
from seglog.storage.files import HeldLock, StoreRoot, untrusted
from seglog.storage.format.config import decode_json_object

DATA: Final = "data"
_MANIFESTS: Final = "_manifest"
_STAGED: Final = "_staged"
_APART: Final = "nothing was changed; name a folder outside of it"
_SUFFIX: Final = ".json"
_DIGITS: Final = 8
Key: TypeAlias = tuple[str, int]
"""Topic and queue id."""
Held: TypeAlias = dict[Key, list[Interval]]
"""Archived intervals of queue offsets, by topic and queue id."""


class ArchiveFolder:
    """One archive.

    Args:
        path: The folder; it need not exist.

    Attributes:
        files: Access to its files, which follows no link.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.files = StoreRoot(self.path)

    def runs(self) -> list[Run]:
        """Returns all runs that added something, oldest first.

        Raises:
            ConfigError: A manifest cannot be read, or one between others is missing.
        """
        folder = self.path / _MANIFESTS
        names = sorted(one.name for one in self.files.list_dir(folder) if one.name.endswith(_SUFFIX))
        runs = [_read(self.files, folder / name) for name in names]
        for number, run in enumerate(runs, 1):
            if run.number != number:
                raise ConfigError(
                    f"{_manifest_path(folder, number)} is missing: without it nothing says what that run"
                    f" archived; run {run.number} comes next",
                    help="put it back from a copy of the archive, or begin an archive in another folder",
                )
        return runs

    def names(self, folder: Path, suffix: str) -> list[str]:
        """Returns the files below a folder that end in a suffix, relative to the folder."""
        found: list[str] = []
        for entry in self.files.list_dir(folder):
            if entry.is_dir:
                found += [f"{entry.name}/{name}" for name in self.names(folder / entry.name, suffix)]
            elif entry.name.endswith(suffix):
                found.append(entry.name)
        return found

    def staged(self, number: int) -> Path:
        """Returns the folder into which a run writes its files."""
        return self.path / _STAGED / f"{number:0{_DIGITS}d}"

    def file(self, run: Run, name: str) -> Path:
        """Returns the present path of a file of a run."""
        path = self.path / DATA / name
        return path if self.files.exists(path) else self.staged(run.number) / name

    def size_bytes(self, path: Path) -> int | None:
        """Returns the length of a file of the archive, None if it is missing."""
        if not self.files.exists(path):
            return None
        with closing(self.files.open(path, writable=False)) as handle:
            return handle.size_bytes

    def lock(self) -> HeldLock:
        """Takes the lock for adding to the archive, and creates the folder if it is missing.

        Raises:
            StoreLockedError: Another run holds the lock.
        """
        self.files.make_dirs(self.path)
        return self.files.lock(self.path)

    def finish(self) -> int:
        """Completes runs that were interrupted; returns the number of the next run.

        The caller holds the lock.
        """
        runs = self.runs()
        for run in runs:
            staged = self.staged(run.number)
            if self.files.exists(staged):  # interrupted after its manifest was written
                _move(self.files, staged, self.path / DATA, run.files)
        self.clear(self.path / _STAGED)
        return runs[-1].number + 1 if runs else 1

    def clear(self, folder: Path) -> None:
        """Removes the files that a run staged; abandoned tasks may still write files there.

        No manifest lists those files, and the next run removes them.
        """
        try:
            self.files.remove_tree(folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise

    def commit(self, run: Run) -> None:
        """Makes the files of a run part of the archive, atomically and durably.

        Raises:
            StoreError: Another run was committed meanwhile.
        """
        # The files are on the disk before the manifest that lists them.
        for name in run.files:
            self._sync(self.staged(run.number) / name)
        folder = self.path / _MANIFESTS
        self.files.make_dirs(folder)
        target = _manifest_path(folder, run.number)
        self.files.make_dirs(self.path / _STAGED)  # a run that only lists losses has staged nothing
        written = self.path / _STAGED / f"{uuid.uuid4().hex}.manifest"
        self.files.write_file(written, json.dumps(run_fields(run), indent=1).encode())
        try:
            self.files.link(written, self.files, target)  # unlike a rename it never replaces a file
        except FileExistsError as error:
            raise StoreError(
                f"{target} was written by another process meanwhile", help="run it again: nothing is lost"
            ) from error
        finally:
            self.files.remove(written)
        self.files.sync_dir(folder)

    def _sync(self, path: Path) -> None:
        with closing(self.files.open(path, writable=False)) as handle:
            handle.sync()


def archived(runs: Iterable[Run]) -> Held:
    """Returns the intervals of each queue in the runs of one store, in order; adjacent intervals are joined.

    Raises:
        ConfigError: Two runs hold the same message.
    """
    found: Held = {}
    for one in sorted(interval for run in runs for interval in run.intervals):
        known = found.setdefault((one.topic, one.queue_id), [])
        if known and known[-1].end > one.first:
            raise ConfigError(f"{one.topic}/{one.queue_id} {one.first} is archived twice")
        if known and known[-1].end == one.first:
            known[-1] = known[-1]._replace(end=one.end)
        else:
            known.append(one)
    return found


def still_missing(runs: Sequence[Run]) -> tuple[list[Missing], list[Missing]]:
    """Returns the messages that runs of one store listed as missing and that no run has archived since.

    Returns:
        Ranges of queue offsets, sorted and without overlap; and stretches of the log, as they were listed. An
        unreadable stretch is dropped once all queue offsets that its run listed as lost are archived.
    """
    held = archived(runs)
    named = [one for run in runs for one in run.missing]
    ranges: list[Missing] = []
    for one in sorted(one for one in named if one.first >= 0):
        known = held.get((one.topic, one.queue_id), [])
        behind = ranges[-1].end if ranges and ranges[-1][:2] == one[:2] else 0
        for first, end in gaps_of(known, max(one.first, behind), one.end):
            ranges.append(one._replace(first=first, end=end))
    stretches = [
        one
        for run in runs
        for one in run.missing
        if one.first < 0 and not (one.why == UNREADABLE and _is_filled(run, held))
    ]
    return ranges, stretches


def _is_filled(run: Run, held: Held) -> bool:
    """Returns whether all messages that a run listed as lost are archived; False if it listed no offset."""
    lost = [one for one in run.missing if one.why == LOST]
    return bool(lost) and not any(
        True for one in lost for _gap in gaps_of(held.get((one.topic, one.queue_id), []), one.first, one.end)
    )


def gaps_of(parts: Sequence[Interval | Missing], first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the parts of the range from ``first`` to ``end`` that sorted intervals do not cover."""
    for part in parts:
        if part.end <= first:
            continue
        if part.first >= end:
            break
        if part.first > first:
            yield first, part.first
        first = part.end
    if first < end:
        yield first, end


def _manifest_path(folder: Path, number: int) -> Path:
    return folder / f"{number:0{_DIGITS}d}{_SUFFIX}"


def _read(files: StoreRoot, path: Path) -> Run:
    """Returns the contents of a manifest, which is untrusted, after all of it was checked.

    Raises:
        ConfigError: The file is no manifest.
        UnsafePathError: It names something that is no file of the archive.
    """
    try:
        run = parse_run(decode_json_object(files.read_file(path)))
        if run.number != int(path.name.removesuffix(_SUFFIX)):
            raise ValueError("the number of another run")
    except (CorruptError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{path} is no manifest: {error}",
            help="put it back from a copy of the archive: it says what one run archived",
        ) from error
    for name in run.files:
        untrusted(path.parent, name)
    return run


def _move(files: StoreRoot, staged: Path, data: Path, names: Iterable[str]) -> None:
    folders: set[Path] = set()
    for name in names:
        source, target = staged / name, data / name
        if files.exists(source):
            files.make_dirs(target.parent)
            files.rename(source, target)
            folders.add(target.parent)
    for folder in folders:
        files.sync_dir(folder)


def check_apart(root: Path, archive: Path) -> None:
    """Checks that neither of a store and an archive is inside the other.

    Args:
        root: The store directory.
        archive: The archive.

    Raises:
        InvalidArgumentError: One is inside the other.
    """
    store, folder = root.resolve(), archive.resolve()
    for around in (store, work_folder(store)):
        if folder.is_relative_to(around):
            raise InvalidArgumentError(
                f"the archive {archive} is in {around}, which a new store would take the place of",
                help=_APART,
            )
    for name in (DATA, _MANIFESTS, _STAGED):
        if store.is_relative_to(folder / name):
            raise InvalidArgumentError(f"the store {root} is in {folder / name} of the archive", help=_APART)

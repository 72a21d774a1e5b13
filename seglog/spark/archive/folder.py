"""The folder of an archive: its manifests, the intervals that it holds, and files on their way into it.

Truth: the manifests. A file of ``_staged`` that a manifest names is as good as in ``data``, and is moved
there by whoever comes next; others are rubbish.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

from seglog.errors import ConfigError, StoreError
from seglog.storage.files import HeldLock, RealFiles
from seglog.storage.links import sync_dir

DATA: Final = "data"
_MANIFESTS: Final = "_manifest"
_STAGED: Final = "_staged"
_SUFFIX: Final = ".json"
_DIGITS: Final = 8


class Interval(NamedTuple):
    """Queue offsets of one queue, ``first`` to ``end - 1``."""

    topic: str
    queue_id: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Run:
    """What one run added.

    Attributes:
        number: Its number, from 1 on.
        made_ms: When.
        files: Its files, relative to ``data``.
        intervals: What they hold.
        messages: How many records.
        size_bytes: How many bytes those have.
    """

    number: int
    made_ms: int
    files: tuple[str, ...]
    intervals: tuple[Interval, ...]
    messages: int
    size_bytes: int


class ArchiveFolder:
    """One archive.

    Args:
        path: The folder; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def runs(self) -> list[Run]:
        """Returns all runs that added something, oldest first.

        Raises:
            ConfigError: A manifest cannot be read.
        """
        names = sorted((self.path / _MANIFESTS).glob("*" + _SUFFIX))
        return [_read(name) for name in names]

    def staged(self, number: int) -> Path:
        """Returns where a run writes its files."""
        return self.path / _STAGED / f"{number:0{_DIGITS}d}"

    def file(self, run: Run, name: str) -> Path:
        """Returns where a file of a run is now."""
        path = self.path / DATA / name
        return path if path.exists() else self.staged(run.number) / name

    def lock(self) -> HeldLock:
        """Takes the right to add to the archive, and makes its folder where it is missing.

        Raises:
            StoreLockedError: A run is at work.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        return RealFiles().lock(self.path)

    def is_finished(self) -> bool:
        """Whether all files of all runs are where they belong."""
        return all((self.path / DATA / name).exists() for run in self.runs() for name in run.files)

    def finish(self) -> int:
        """Does what is left of runs that were interrupted; returns the number of the next run.

        The caller holds the lock.
        """
        runs = self.runs()
        for run in runs:
            staged = self.staged(run.number)
            if staged.exists():
                _move(staged, self.path / DATA, run.files)
        shutil.rmtree(self.path / _STAGED, ignore_errors=True)
        return runs[-1].number + 1 if runs else 1

    def commit(self, run: Run) -> None:
        """Makes the files of a run part of the archive, at once and durably.

        Raises:
            StoreError: Another run was committed meanwhile.
        """
        for name in run.files:
            _sync(self.staged(run.number) / name)
        folder = self.path / _MANIFESTS
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{run.number:0{_DIGITS}d}{_SUFFIX}"
        written = self.path / _STAGED / f"{uuid.uuid4().hex}.manifest"
        written.write_text(json.dumps(asdict(run), indent=1))
        _sync(written)
        try:
            os.link(written, target)  # unlike a rename it never replaces
        except FileExistsError as error:
            raise StoreError(
                f"{target} was written by somebody else meanwhile", help="run it again: nothing is lost"
            ) from error
        finally:
            written.unlink()
        sync_dir(folder)


def archived(runs: Iterable[Run]) -> dict[tuple[str, int], list[Interval]]:
    """Returns what runs hold of each queue: intervals in order, joined where they meet.

    Raises:
        ConfigError: Two runs hold the same message.
    """
    found: dict[tuple[str, int], list[Interval]] = {}
    for one in sorted(interval for run in runs for interval in run.intervals):
        known = found.setdefault((one.topic, one.queue_id), [])
        if known and known[-1].end > one.first:
            raise ConfigError(f"{one.topic}/{one.queue_id} {one.first} is archived twice")
        if known and known[-1].end == one.first:
            known[-1] = known[-1]._replace(end=one.end)
        else:
            known.append(one)
    return found


def starting_offsets(held: Mapping[tuple[str, int], list[Interval]]) -> dict[str, dict[str, int]]:
    """Returns where each queue goes on behind what is archived of it, as the data source takes it."""
    found: dict[str, dict[str, int]] = {}
    for (topic, queue_id), intervals in held.items():
        found.setdefault(topic, {})[str(queue_id)] = intervals[-1].end
    return found


def _read(path: Path) -> Run:
    try:
        fields = json.loads(path.read_text())
        intervals = tuple(Interval(*one) for one in fields.pop("intervals"))
        return Run(files=tuple(fields.pop("files")), intervals=intervals, **fields)
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{path} is no manifest: {error}") from error


def _move(staged: Path, data: Path, files: Iterable[str]) -> None:
    folders: set[Path] = set()
    for name in files:
        source, target = staged / name, data / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
            folders.add(target.parent)
    for folder in folders:
        sync_dir(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

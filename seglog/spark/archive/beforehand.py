"""Checks of an archive or restore that run before Spark is started, because that takes seconds.

They write nothing and lock nothing. The job checks everything again, and the files of the archive as well.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from seglog.errors import NotFoundError, StoreLockedError
from seglog.logs import logger
from seglog.spark.archive.folder import ArchiveFolder, archived, check_apart
from seglog.spark.archive.manifest import Run
from seglog.spark.archive.names import check_has_names, check_new_name, choose_store
from seglog.spark.archive.restore_base import Sizes, check_sizes
from seglog.spark.compact.swap import check_swappable, files_around
from seglog.storage.directory import ReadingRoot, check_is_store, demand_own_parts, demand_store
from seglog.storage.files import check_writable

_log = logger(__name__)


class ArchivedStore(NamedTuple):
    """A store of an archive.

    Attributes:
        name: Name of the store in the archive, None in an archive of the first layout.
        runs: All runs that added something of it.
    """

    name: str | None
    runs: Sequence[Run]


def check_archive(root: Path, folder: Path, *, name: str | None = None) -> None:
    """Checks that an archive can take a store, as far as their folders show it.

    Args:
        root: The store directory.
        folder: The archive; it need not exist.
        name: Name of the store in the archive, None for the name of the store that it continues.

    Raises:
        NotFoundError: There is no store.
        InvalidArgumentError: The name is not valid, the archive has the first layout, or it is in the store.
        ConfigError: A manifest of the archive cannot be read or is missing.
        ReadOnlyError: Its file system is mounted read-only.
        StoreError: Its folder may not be written.
    """
    check_apart(root, folder)
    demand_store(ReadingRoot(root), root)
    archive = ArchiveFolder(folder)
    runs = archive.runs()
    check_has_names(runs, archive.path)
    if name is not None:
        check_new_name(name, runs)
    check_writable(archive.path)


def check_restore(
    folder: Path,
    root: Path,
    *,
    store: str | None = None,
    topics: Collection[str] = (),
    apply: bool = False,
    sizes: Sizes | None = None,
) -> None:
    """Checks that a store can be restored from an archive, as far as their folders show it.

    Args:
        folder: The archive.
        root: The store directory; it need not exist.
        store: Name of the store in the archive.
        topics: Topics to restore, all if empty.
        apply: Whether the restore will be applied; otherwise nothing will be written.
        sizes: Lengths of the files of a new store.

    Raises:
        NotFoundError: There is no archive, or nothing to restore in it.
        ConfigError: A manifest cannot be read or is missing.
        InvalidArgumentError: The archive has several stores, and none was named; one of store and archive is
            in the other; or ``sizes`` are not those of the store's files.
        StoreLockedError: Another process has the store open.
        UnsupportedStoreError: Its folder cannot be exchanged for another, or it has queues or tables in
            RocksDB.
        ReadOnlyError: The file system of the store is mounted read-only.
        StoreError: The parent folder of the store may not be written.
    """
    check_apart(root, folder)
    find_archived(folder, store, topics)
    root = root.resolve()
    if apply:
        check_writable(root.parent)
    if not check_is_store(ReadingRoot(root), root):
        return
    check_is_free(root)
    files = files_around(root)
    demand_own_parts(files, root)
    check_swappable(files, root)
    check_sizes(files, root, sizes or Sizes())


def find_archived(folder: Path, store: str | None, topics: Collection[str]) -> ArchivedStore:
    """Returns the store of an archive that will be restored.

    Args:
        folder: The archive.
        store: Its name; optional if the archive has one store.
        topics: Topics to restore, all if empty.

    Raises:
        NotFoundError: There is no archive, no such store, or nothing to restore in it.
        ConfigError: A manifest cannot be read or is missing.
        InvalidArgumentError: There are several stores, and none was named.
    """
    every = ArchiveFolder(folder).runs()
    if not every:
        raise NotFoundError(
            f"{folder} is no archive: it has no manifest (_manifest/*.json)",
            help="name the folder that `seglog spark archive STORE ARCHIVE` wrote",
        )
    name = choose_store(store, every, folder)
    runs = [run for run in every if run.name == name]
    held = {topic for topic, _queue_id in archived(runs)}
    if not any(run.files for run in runs) or (topics and held.isdisjoint(topics)):
        wanted = ", ".join(sorted(topics)) or "messages"
        raise NotFoundError(
            f"{folder} holds nothing that is wanted: no {wanted}",
            help=f"it has {', '.join(sorted(held)) or 'no message'}",
        )
    return ArchivedStore(name, runs)


def warn_of_unknown(folder: Path, topics: Collection[str], archived_store: ArchivedStore) -> None:
    """Warns of requested topics that the archive does not have."""
    runs = archived_store.runs
    known = {topic for topic, _queue_id in archived(runs)} | {
        one.topic for run in runs for one in run.missing
    }
    by_lower = {topic.lower(): topic for topic in known}
    for topic in sorted(set(topics) - known):
        close = get_close_matches(topic.lower(), by_lower, 1)
        meant = f"; did you mean {by_lower[close[0]]}?" if close else ""
        _log.warning("%s has no topic %s, so nothing of it is restored%s", folder, topic, meant)


def check_is_free(root: Path) -> None:
    """Checks that no process has a store open; unlike taking its lock, this writes no file into it.

    Raises:
        StoreLockedError: A process has it open.
    """
    holder = ReadingRoot(root).lock_holder()
    if holder is not None:
        who = f"process {holder}" if holder > 0 else "a process"
        raise StoreLockedError(f"{who} has {root} open for writing")

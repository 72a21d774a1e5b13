"""The files of a store's log and queues as its folders show them, before any of them is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import NotAStoreError, NotFoundError, StoreError, UnsupportedStoreError
from seglog.storage.directory.file_facts import Inferred
from seglog.storage.directory.geometry import NOTHING_KNOWN, FileSizes, StoreGeometry
from seglog.storage.directory.lengths import Lengths, find_lengths
from seglog.storage.directory.log_files import LogFile, list_log_files, place_log_files
from seglog.storage.directory.log_folders import LogFolderFinder
from seglog.storage.directory.misnamed import PlacedFiles, misnamed_findings
from seglog.storage.directory.queue_files import QueueFiles, list_queues
from seglog.storage.files.file_kinds import STORE_FOLDERS
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import (
    ABORT_FILE,
    BATCH_CONSUME_QUEUE,
    CHECKPOINT_FILE,
    COMMIT_LOG,
    CONFIG,
    CONSUME_QUEUE,
    INDEX,
    LOCK_FILE,
    segment_file_name,
)
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT

QueueKey = tuple[str, int]
_KNOWN_NAMES = frozenset(
    {
        COMMIT_LOG,
        CONSUME_QUEUE,
        BATCH_CONSUME_QUEUE,
        INDEX,
        CHECKPOINT_FILE,
        ABORT_FILE,
        CONFIG,
        LOCK_FILE,
    }
)
_TELLING_NAMES = _KNOWN_NAMES - {CONFIG, LOCK_FILE, INDEX}
"""Names that other folders hardly have; ``config`` or ``index`` alone prove nothing."""
_MOST_LOOKED_INTO: Final = 32
TIERED_METADATA: Final = frozenset({"tieredStoreMetadata.json", "tieredStoreMetadata.json.bak"})
"""What RocketMQ's plug-in for tiered storage has moved, in ``config`` (``DefaultMetadataStore.java``)."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What the folders show.

    Attributes:
        geometry: Lengths of the files.
        log_files: Commit-log files in order.
        queue_files: The files of each queue that has a directory, by topic and number.
        batch_files: The files of each batch queue that has one.
        findings: Commit-log files that are none, or stand where none belongs; lengths that are unknown.
        lengths: What is known of the lengths.
    """

    geometry: StoreGeometry
    log_files: list[LogFile]
    queue_files: dict[QueueKey, QueueFiles]
    batch_files: dict[QueueKey, QueueFiles]
    findings: list[Finding]
    lengths: Lengths


def check_is_store(files: Files, root: Path, *, makes: bool = False) -> bool:
    """Returns whether there is a store at ``root``; False for an absent or empty directory.

    Args:
        files: Where it is.
        root: The directory.
        makes: Whether the caller makes a store where there is none, for the advice of the error.

    Raises:
        NotAStoreError: Something else is there.
        UnsupportedStoreError: A store of a kind that this engine does not read.
    """
    entries = files.list_dir(root)
    if not entries:
        if files.exists(root) and not files.is_dir(root):
            raise NotAStoreError(f"{root} is a file, not a store directory")
        return False
    found = {entry.name for entry in entries}
    ledgers = sorted(name for name in found if name.startswith("dledger-"))
    if ledgers:
        raise UnsupportedStoreError(
            f"{root} is a DLedger store ({ledgers[0]}/): its log is in another format",
            help="seglog reads stores with storeType=default or defaultRocksDB; nothing was changed",
        )
    tiered = sorted(TIERED_METADATA & {entry.name for entry in files.list_dir(root / CONFIG)})
    if tiered:
        raise UnsupportedStoreError(
            f"{root} is a store with tiered storage ({CONFIG}/{tiered[0]}): its older messages are elsewhere",
            help="read it with RocketMQ's broker and its plug-in for tiered storage; for the messages that"
            f" are here, open a copy of the folder without {CONFIG}/{tiered[0]}; nothing was changed",
        )
    if found.isdisjoint(_TELLING_NAMES) and not found <= _KNOWN_NAMES:
        shown = ", ".join(sorted(found)[:4])
        raise NotAStoreError(
            f"{root} is no RocketMQ store: it holds {shown}, but no commitlog/",
            help=_instead(files, root, sorted(entry.name for entry in entries if entry.is_dir), makes=makes),
        )
    _demand_shown(files, root, [entry.name for entry in entries if entry.is_dir])
    return True


def _demand_shown(files: Files, root: Path, folders: Iterable[str]) -> None:
    """Refuses a log in several folders where the file layer does not show it as one, as at an address.

    Raises:
        UnsupportedStoreError: It is one: what is in the other folders would be taken for lost.
    """
    tops = [name for name in folders if name not in STORE_FOLDERS]
    # A draft in which files of the log have other names still shows the folders beside as they are.
    if (
        tops
        and not getattr(files, "shows_one_log", False)
        and (found := LogFolderFinder(files, root).find(tops))
    ):
        raise UnsupportedStoreError(
            f"the log of {root} is in several folders, {', '.join((COMMIT_LOG, *found.names))}",
            help="nothing was changed; a store in a folder of this machine is read from all of them",
        )


def demand_store(files: Files, root: Path) -> None:
    """Refuses a directory without a store.

    Raises:
        NotFoundError: It is absent or empty.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: A store of a kind that this engine does not read.
    """
    if not check_is_store(files, root):
        raise no_store(root)


def no_store(root: Path) -> NotFoundError:
    """Returns the error for an absent or empty directory."""
    return NotFoundError(
        f"there is no store at {root}",
        help="give the folder that holds commitlog/ (storePathRootDir of broker.conf)",
    )


def _instead(files: Files, root: Path, folders: Sequence[str], *, makes: bool) -> str:
    """Returns which folder to give in place of one that holds no store."""
    for name in folders[:_MOST_LOOKED_INTO]:
        with suppress(OSError, StoreError):  # a folder that cannot be looked into, or a link
            if files.is_dir(root / name / COMMIT_LOG):
                return f"give the folder that holds commitlog/, such as {root / name}"
    new = "; for a new store, a folder that is empty or not there yet" if makes else ""
    return f"give the folder that holds commitlog/ (storePathRootDir of broker.conf){new}"


def list_store(
    files: Files, root: Path, given: FileSizes = NOTHING_KNOWN, *, asks_queues: bool = True
) -> Listing:
    """Lists the files of a store.

    Args:
        files: Where it is.
        root: The store directory.
        given: Lengths that the caller knows, for what the files do not prove.
        asks_queues: As :func:`~seglog.storage.directory.lengths.find_lengths` takes it.

    Raises:
        InvalidArgumentError: The files prove another length than is given.
    """
    log_files, findings = list_log_files(files, root)
    if isinstance(files, PlacedFiles):
        findings += misnamed_findings(files.misnamed)
    queue_files = {(queue.topic, queue.queue_id): queue for queue in list_queues(files, root)}
    batch_files = {
        (queue.topic, queue.queue_id): queue
        for queue in list_queues(files, root, BATCH_CONSUME_QUEUE, BATCH_UNIT)
    }
    lengths = find_lengths(
        files, root, log_files, queue_files.values(), batch_files.values(), asks_queues=asks_queues
    )
    geometry = lengths.geometry(given, root)
    log_files, misplaced = place_log_files(log_files, geometry.segment_size_bytes)
    findings += misplaced + _unknown_lengths(lengths, geometry, log_files, queue_files)
    return Listing(geometry, log_files, queue_files, batch_files, findings, lengths)


def _unknown_lengths(
    lengths: Lengths,
    geometry: StoreGeometry,
    log_files: list[LogFile],
    queue_files: dict[QueueKey, QueueFiles],
) -> list[Finding]:
    """Returns a finding for each kind of file of unknown length."""
    findings: list[Finding] = []
    if not geometry.is_segment_known:
        first = min((file.first_offset for file in log_files), default=0)
        size = next((file.size_bytes for file in log_files), 0)
        file = f"{COMMIT_LOG}/{segment_file_name(first)}"
        findings.append(_unknown("log-length-unknown", file, lengths.segment, size))
    if lengths.queue.is_unknown and not geometry.is_queue_file_known:
        queue = next(queue for _key, queue in sorted(queue_files.items()) if queue.sizes)
        first = min(queue.sizes)
        file = f"{queue.name}/{segment_file_name(first)}"
        findings.append(_unknown("queue-length-unknown", file, lengths.queue, queue.sizes[first]))
    return findings


def no_queue_length(geometry: StoreGeometry, told: Iterable[Finding]) -> list[Finding]:
    """Returns a finding for a store with queues of which no file is left to tell how long they are.

    Args:
        geometry: What is known of lengths.
        told: What was found already: it may say so of files that are there.
    """
    code = "queue-length-unknown"
    if geometry.is_queue_file_known or any(finding.code == code for finding in told):
        return []
    return [Finding(code, CONSUME_QUEUE, expected="a length that is known", found="no queue file")]


def _unknown(code: str, file: str, found: Inferred, size_bytes: int) -> Finding:
    least = f"at least {found.at_least_bytes} bytes" if found.at_least_bytes else "a length that is known"
    return Finding(code, file, expected=least, found=f"{size_bytes} bytes")

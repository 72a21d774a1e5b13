"""The files of a store's log and queues as its folders show them, before any of them is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.batch_consume_queue import BATCH_UNIT, BATCH_UNIT_BYTES
from seglog.storage.format.consume_queue import CQ_UNIT_BYTES, DEFAULT_QUEUE_FILE_BYTES
from seglog.storage.format.names import BATCH_CONSUME_QUEUE
from seglog.storage.geometry import DEFAULT_SEGMENT_BYTES, StoreGeometry, infer_file_size
from seglog.storage.log_files import LogFile, list_log_files, place_log_files
from seglog.storage.queue_files import QueueFiles, list_queues

QueueKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Listing:
    """What the folders show.

    Attributes:
        geometry: Lengths of the files.
        log_files: Commit-log files in order.
        queue_files: The files of each queue that has a directory, by topic and number.
        batch_files: The files of each batch queue that has one.
        findings: Commit-log files that are none, or stand where none belongs.
    """

    geometry: StoreGeometry
    log_files: list[LogFile]
    queue_files: dict[QueueKey, QueueFiles]
    batch_files: dict[QueueKey, QueueFiles]
    findings: list[Finding]


def list_store(files: Files, root: Path) -> Listing:
    """Lists the files of a store."""
    log_files, findings = list_log_files(files, root)
    queue_files = {(queue.topic, queue.queue_id): queue for queue in list_queues(files, root)}
    batch_files = {
        (queue.topic, queue.queue_id): queue
        for queue in list_queues(files, root, BATCH_CONSUME_QUEUE, BATCH_UNIT)
    }
    geometry = infer_geometry(log_files, queue_files.values(), batch_files.values())
    log_files, misplaced = place_log_files(log_files, geometry.segment_size_bytes)
    return Listing(geometry, log_files, queue_files, batch_files, findings + misplaced)


def infer_geometry(
    log_files: list[LogFile], queues: Iterable[QueueFiles], batch_queues: Iterable[QueueFiles] = ()
) -> StoreGeometry:
    """Returns the file lengths of a store; RocketMQ's defaults for kinds of which there is no file."""
    segment = infer_file_size(
        [(file.first_offset, file.size_bytes) for file in log_files], DEFAULT_SEGMENT_BYTES
    )
    queue_sizes = [item for queue in queues for item in queue.sizes.items()]
    batch_sizes = [item for queue in batch_queues for item in queue.sizes.items()]
    return StoreGeometry(
        segment,
        infer_file_size(queue_sizes, DEFAULT_QUEUE_FILE_BYTES, multiple_of=CQ_UNIT_BYTES),
        infer_file_size(batch_sizes, 0, multiple_of=BATCH_UNIT_BYTES) or None,
    )

"""Checks parts other than log, queues and index: filter data, compaction topics, seglog's own files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np

from seglog.doctor.parts.ext_faults import ext_faults
from seglog.errors import ConfigError, CorruptError
from seglog.storage.certain_mends import mends_from_attic
from seglog.storage.compaction import (
    CommitRecords,
    compacted_queues,
    infer_compaction_sizes,
    list_compaction_files,
    load_state,
)
from seglog.storage.directory import (
    LENGTHS_FILE,
    LogReader,
    QueueFiles,
    StoreGeometry,
    configured_kinds,
    disproved_lengths,
    infer_file_size,
    list_queue,
    load_lengths,
    queue_directory,
    read_units_left,
)
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.config import decode_config
from seglog.storage.format.names import (
    ABORT_FILE,
    CONSUME_QUEUE_EXT,
    OURS,
    parse_segment_file_name,
    segment_file_name,
)
from seglog.storage.format.queue import (
    COMPACTION,
    COMPACTION_LOG,
    COMPACTION_QUEUE,
    CQ_UNIT,
    CQ_UNIT_BYTES,
    MAX_EXT_ADDRESS,
    POSITION_FILE,
    Units,
)
from seglog.storage.overlay import is_message
from seglog.storage.scan import HOLES_FILE, Queues, parse_holes
from seglog.storage.small_files import RECOVERY_POINT_FILE_NAME, ConfigFile, read_recovery_point
from seglog.text import count_text

_ATTIC: Final = f"{OURS}/attic"
_PIECE_UNITS: Final = 1 << 16


def state_findings(files: Files, root: Path, holder: int | None) -> list[Finding]:
    """Returns findings on the last stop of the store, or on the process that has it open."""
    if holder is not None:
        return [Finding("in-use", "lock", found=f"process {holder}" if holder > 0 else "a process")]
    return [Finding("not-closed", ABORT_FILE)] if files.exists(root / ABORT_FILE) else []


def own_findings(files: Files, root: Path, geometry: StoreGeometry, end_phy_offset: int) -> list[Finding]:
    """Returns the findings on ``seglog/``; its seals are reported with the log.

    Args:
        files: Access to the store.
        root: The store directory.
        geometry: Lengths of its files.
        end_phy_offset: End of the log.
    """
    segment_size_bytes = geometry.segment_size_bytes
    findings: list[Finding] = []
    try:
        read_recovery_point(files, root)
    except CorruptError as error:
        findings.append(_damaged(RECOVERY_POINT_FILE_NAME, error))
    try:
        load_lengths(files, root)
    except CorruptError as error:
        findings.append(_damaged(LENGTHS_FILE, error))
    else:
        findings += disproved_lengths(files, root, geometry)[1]
    try:
        ConfigFile(files, root / OURS / HOLES_FILE).load(parse_holes)
    except ConfigError as error:
        findings.append(
            Finding(
                "own-damaged", f"{OURS}/{HOLES_FILE}", expected="a list of holes", found=str(error)[-200:]
            )
        )
    kept = [entry for entry in files.list_dir(root / _ATTIC) if not entry.is_dir]
    if kept:
        size = sum(entry.size_bytes for entry in kept)
        findings.append(Finding("attic", _ATTIC, 0, size, found=count_text(len(kept), "file")))
    for mend in mends_from_attic(files, root, segment_size_bytes, end_phy_offset):
        name, position, _changed = mend.place(segment_size_bytes)
        size = len(mend.after)
        findings.append(Finding("attic-record", name, position, size, found=mend.named, messages=1))
    return findings


def _damaged(name: str, error: CorruptError) -> Finding:
    return Finding("own-damaged", name, error.position_bytes, 0, str(error.expected), str(error.found))


def ext_findings(
    files: Files, root: Path, queues: Iterable[QueueFiles], geometry: StoreGeometry
) -> list[Finding]:
    """Returns the findings on ``consumequeue_ext/`` and on addresses that lead into it.

    Args:
        files: Access to the store.
        root: The store directory.
        queues: All plain queues with files.
        geometry: Lengths of the files of log and queues.
    """
    findings: list[Finding] = []
    if not files.list_dir(root / CONSUME_QUEUE_EXT):
        return [finding for queue in queues for finding in _stray_addresses(files, queue)]
    for queue in queues:
        directory = queue_directory(queue.topic, queue.queue_id, CONSUME_QUEUE_EXT)
        sizes: dict[int, int] = {}
        for entry in files.list_dir(root / directory):
            first = parse_segment_file_name(entry.name)
            if first is None:
                findings.append(Finding("ext-file", f"{directory}/{entry.name}", expected="twenty digits"))
            else:
                sizes[first] = entry.size_bytes
        size = infer_file_size(sorted(sizes.items()), 0)
        findings += [
            Finding("ext-file", f"{directory}/{segment_file_name(first)}", 0, 0, str(size), str(length))
            for first, length in sorted(sizes.items())
            if length != size
        ]
        _first, units = read_units_left(files, queue, geometry.queue_file_size_bytes)
        key = queue.topic, queue.queue_id
        faults = ext_faults(files, root, key, units, geometry.segment_size_bytes)
        for code, rows, file, what in (
            ("ext-missing", faults.lost, faults.lost_file, "none"),
            ("ext-wrong", faults.wrong, faults.wrong_file, "that of others"),
        ):
            if rows:
                words = ("filter data", f"{what} for {len(rows)} of {faults.addressed} addresses")
                findings.append(Finding(code, file, 0, 0, *words, len(rows)))
    return findings


def _stray_addresses(files: Files, queue: QueueFiles) -> Iterator[Finding]:
    """Yields a finding for each file with units that lead to filter data, in a store without filter data."""
    for first in sorted(queue.sizes):
        count, place = 0, -1
        for at, units in _units_of(files, queue.directory / segment_file_name(first)):
            wrong = np.flatnonzero(is_message(units) & (units["tags_code"] <= MAX_EXT_ADDRESS))
            if len(wrong):
                place = at + int(wrong[0]) * CQ_UNIT_BYTES if place < 0 else place
                count += len(wrong)
        if count:
            yield Finding(
                "ext-missing",
                f"{queue.name}/{segment_file_name(first)}",
                place,
                count * CQ_UNIT_BYTES,
                "the code of a tag",
                "an address of filter data, and there is none",
                count,
            )


def _units_of(files: Files, path: Path) -> Iterator[tuple[int, Units]]:
    """Yields the units of a queue file in pieces, each with its position; holes are left out."""
    try:
        handle = files.open(path, writable=False)
    except FileNotFoundError:
        return
    with closing(handle):
        at = handle.next_data(0)
        while at is not None:
            start = at // CQ_UNIT_BYTES * CQ_UNIT_BYTES
            buffer = memoryview(bytearray(_PIECE_UNITS * CQ_UNIT_BYTES))
            count = handle.read_into(buffer, start) // CQ_UNIT_BYTES
            yield start, np.frombuffer(buffer, CQ_UNIT.dtype, count)
            at = handle.next_data(start + len(buffer))


def compaction_findings(
    files: Files,
    root: Path,
    queues: Queues,
    min_phy_offset: int,
    geometry: StoreGeometry,
) -> list[Finding]:
    """Returns the findings on the files of compaction topics.

    Args:
        files: Access to the store.
        root: The store directory.
        queues: The queues of the store.
        min_phy_offset: Start of the log.
        geometry: Lengths of the files of log and queues.
    """
    base = root / COMPACTION
    folders = (COMPACTION_LOG, COMPACTION_QUEUE)
    keys = sorted(
        {
            (topic.name, int(queue.name))
            for folder in folders
            for topic in files.list_dir(base / folder)
            if topic.is_dir
            for queue in files.list_dir(base / folder / topic.name)
            if queue.is_dir and queue.name.isascii() and queue.name.isdigit()
        }
    )
    listed = [list_compaction_files(files, root, *key) for key in keys]
    sizes = infer_compaction_sizes(listed)
    compacted = compacted_queues(files, root)
    there = {(queue.topic, queue.queue_id) for queue in listed if queue.logs}
    topics = configured_kinds(files, root).compaction
    findings = [
        Finding(
            "compaction-missing",
            f"{COMPACTION}/{COMPACTION_LOG}/{topic}/{queue_id}",
            messages=queue.max_offset - queue.min_offset,
        )
        for (topic, queue_id), queue in queues.items()
        if topic in topics and queue.max_offset > queue.min_offset and (topic, queue_id) not in there
    ]
    reader = LogReader(files, root, geometry.segment_size_bytes)
    for queue in listed:
        names = {
            queue.log_directory: (queue.logs, sizes.log_bytes),
            queue.queue_directory: (queue.queues, sizes.queue_bytes),
        }
        for path in queue.strays:
            is_leftover = path.suffix == ".delete" or path.parent not in names
            code = "compaction-leftover" if is_leftover else "compaction-file"
            findings.append(Finding(code, path.relative_to(root).as_posix()))
        wrong: set[int] = set(queue.logs.keys() ^ queue.queues.keys())
        for directory, (files_there, size) in names.items():
            name = directory.relative_to(root).as_posix()
            for first, length in sorted(files_there.items()):
                file = f"{name}/{segment_file_name(first)}"
                if length != size:
                    findings.append(Finding("compaction-file", file, 0, 0, str(size), str(length)))
                    wrong.add(first)
                elif first not in queue.logs or first not in queue.queues:
                    findings.append(Finding("compaction-pair", file))
        has_gaps = (queue.topic, queue.queue_id) in compacted or min_phy_offset > 0
        known = queues.get((queue.topic, queue.queue_id))
        end_offset = None if known is None else known.max_offset
        plain = QueueFiles(queue.topic, queue.queue_id, root / queue_directory(queue.topic, queue.queue_id))
        hints = read_units_left(files, list_queue(files, plain), geometry.queue_file_size_bytes)
        records = CommitRecords(files, root, reader, (queue.topic, queue.queue_id), *hints)
        state = load_state(files, queue, sizes, compacted=has_gaps, end_offset=end_offset, records=records)
        unsound = (queue.logs.keys() - state.kept) | set(state.damaged) | state.rebuilt.keys() | state.changed
        if unsound and not wrong:
            is_of_queue = min(unsound) in state.rebuilt.keys() - state.changed
            directory = queue.queue_directory if is_of_queue else queue.log_directory
            name = directory.relative_to(root).as_posix()
            findings.append(Finding("compaction-damaged", f"{name}/{segment_file_name(min(unsound))}"))
    reader.close()
    return findings + list(_position_findings(files, base))


def _position_findings(files: Files, base: Path) -> Iterator[Finding]:
    for name in (POSITION_FILE, f"{POSITION_FILE}.bak"):
        data = files.read_file(base / name) if files.exists(base / name) else b""
        try:
            # RocketMQ treats an empty backup as missing.
            if data or (name == POSITION_FILE and files.exists(base / name)):
                decode_config(data)
        except CorruptError as error:
            words = (str(error.expected), str(error.found))
            yield Finding("config-damaged", f"{COMPACTION}/{name}", error.position_bytes, 0, *words)

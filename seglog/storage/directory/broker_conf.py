"""Lengths of files as a broker's configuration gives them, by RocketMQ's names for them.

``seglog/lengths.conf`` of a store has the same form: it says what its files were made with, for the day on
which damage leaves none that could tell. It is believed only where nothing in the files contradicts, and only
whole: a line with a checksum ends it. A ``broker.conf`` in the store says the same, where that file does not.

Source: ``MessageStoreConfig.java``; ``getMappedFileSizeConsumeQueue`` rounds up to whole units.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from seglog.errors import CorruptError, InvalidArgumentError, StoreError
from seglog.storage.directory.geometry import (
    DEFAULT_SEGMENT_BYTES,
    MAX_SEGMENT_BYTES,
    NOTHING_KNOWN,
    FileSizes,
)
from seglog.storage.directory.log_paths import CONF_FILE
from seglog.storage.files.files import Files, read_whole
from seglog.storage.format.config.java_properties import parse_java_properties
from seglog.storage.format.index.index import DEFAULT_INDEX_GEOMETRY, IndexGeometry
from seglog.storage.format.names import OURS
from seglog.storage.format.ours.seal import checksum
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.compaction import CompactionSizes, compaction_sizes
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES, DEFAULT_QUEUE_FILE_BYTES
from seglog.storage.format.timer import DEFAULT_TIMER_LOG_FILE_BYTES
from seglog.storage.small_files.named_file import open_regular

LENGTHS_FILE: Final = f"{OURS}/lengths.conf"
MAX_CONF_BYTES: Final = 1 << 20
"""A configuration is a few KiB; nothing larger is read."""

SEGMENT: Final = "mappedFileSizeCommitLog"
QUEUE_FILE: Final = "mappedFileSizeConsumeQueue"
BATCH_FILE: Final = "mapperFileSizeBatchConsumeQueue"
INDEX_SLOTS: Final = "maxHashSlotNum"
INDEX_ENTRIES: Final = "maxIndexNum"
COMPACTION_FILE: Final = "compactionMappedFileSize"
COMPACTION_QUEUE_FILE: Final = "compactionCqMappedFileSize"
TIMER_LOG_FILE: Final = "mappedFileSizeTimerLog"

_DEFAULTS: Final[dict[str, int]] = {
    SEGMENT: DEFAULT_SEGMENT_BYTES,
    QUEUE_FILE: DEFAULT_QUEUE_FILE_BYTES,
    BATCH_FILE: 300_000 * BATCH_UNIT_BYTES,
    INDEX_SLOTS: DEFAULT_INDEX_GEOMETRY.slot_count,
    INDEX_ENTRIES: DEFAULT_INDEX_GEOMETRY.entry_count,
    COMPACTION_FILE: 100 << 20,
    COMPACTION_QUEUE_FILE: 10 << 20,
    TIMER_LOG_FILE: DEFAULT_TIMER_LOG_FILE_BYTES,
}
_CHECKSUM: Final = "# crc32c "


def broker_settings(path: Path) -> Mapping[str, str]:
    """Returns names and values of a broker's configuration.

    Raises:
        InvalidArgumentError: The file cannot be read, or is no configuration.
    """
    try:
        with open_regular(path, MAX_CONF_BYTES, advice=_HELP) as file:
            return parse_java_properties(file.read(MAX_CONF_BYTES))
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be read: {error.strerror}", help=_HELP) from error
    except CorruptError as error:
        raise InvalidArgumentError(f"{path}: {error}", help=_HELP) from error


def read_broker_conf(path: Path) -> FileSizes:
    """Returns the lengths that a broker with a configuration has, RocketMQ's where it names none.

    Raises:
        InvalidArgumentError: The file cannot be read, is no configuration, or has a value that cannot be.
    """
    said = broker_settings(path)
    try:
        numbers = _numbers(said)
        return replace(_sizes(_DEFAULTS | numbers), not_said=frozenset(_DEFAULTS.keys() - numbers.keys()))
    except CorruptError as error:
        raise InvalidArgumentError(f"{path}: {error}", help=_HELP) from error


_HELP: Final = "give the broker's configuration file, such as conf/broker.conf"


def read_lengths(files: Files, root: Path) -> FileSizes:
    """Returns what a store states; nothing where it does not, or not whole."""
    try:
        return load_lengths(files, root)
    except CorruptError:
        return NOTHING_KNOWN


def stated_lengths(files: Files, root: Path) -> FileSizes:
    """Returns the lengths in ``seglog/lengths.conf``, and further ones in a ``broker.conf`` of the store."""
    return read_lengths(files, root).over(_of_conf(files, root))


def _of_conf(files: Files, root: Path) -> FileSizes:
    """Returns the lengths that a ``broker.conf`` in a store names; a value that cannot be names none."""
    path = root / CONF_FILE
    with suppress(OSError, StoreError):
        if not files.exists(path):
            return NOTHING_KNOWN
        with closing(files.open(path, writable=False)) as file:
            said = parse_java_properties(read_whole(file, path)) if file.size_bytes <= MAX_CONF_BYTES else {}
        numbers: dict[str, int] = {}
        for name, value in said.items():
            with suppress(CorruptError):
                numbers |= _numbers({name: value})
        return _sizes(numbers)
    return NOTHING_KNOWN


def load_lengths(files: Files, root: Path) -> FileSizes:
    """Returns what a store states.

    Raises:
        CorruptError: It says so in a file that is not whole.
    """
    path = root / LENGTHS_FILE
    size = next((entry.size_bytes for entry in files.list_dir(path.parent) if entry.name == path.name), None)
    if size is None:
        return NOTHING_KNOWN
    if size > MAX_CONF_BYTES:
        raise CorruptError("size", file=LENGTHS_FILE, expected=f"up to {MAX_CONF_BYTES}", found=size)
    data = files.read_file(path)
    body, mark, stored = data.rpartition(_CHECKSUM.encode())
    wanted = f"{checksum(body):08x}"
    if not mark or stored != f"{wanted}\n".encode():
        shown = stored[:8].decode("ascii", "replace") if mark else "none"
        raise CorruptError("checksum", file=LENGTHS_FILE, expected=wanted, found=shown)
    return _sizes(_numbers(parse_java_properties(body)))


def encode_lengths(sizes: FileSizes) -> bytes:
    """Returns the file that says of a store what its files were made with."""
    values = {SEGMENT: sizes.segment_bytes, QUEUE_FILE: sizes.queue_file_bytes}
    values[BATCH_FILE] = sizes.batch_file_bytes
    if sizes.index is not None:
        values |= {INDEX_SLOTS: sizes.index.slot_count, INDEX_ENTRIES: sizes.index.entry_count}
    said = "".join(f"{name}={value}\n" for name, value in values.items() if value is not None)
    body = f"# Lengths of the files of this store, by the names of RocketMQ's broker.conf.\n{said}".encode()
    return body + f"{_CHECKSUM}{checksum(body):08x}\n".encode()


def write_lengths(files: Files, root: Path, sizes: FileSizes) -> None:
    """Writes down what the files of a store are made with, durably, if it is not written there."""
    path = root / LENGTHS_FILE
    data = encode_lengths(sizes)
    if files.exists(path) and files.read_file(path) == data:
        files.sync_dir(path.parent)  # a process that was killed after the rename has not done it
        return
    files.make_dirs(path.parent)
    unfinished = path.with_name(path.name + ".tmp")
    files.write_file(unfinished, data, sync=True)
    files.rename(unfinished, path)
    files.sync_dir(path.parent)


def _numbers(said: Mapping[str, str]) -> dict[str, int]:
    """Returns the values of the names that are of interest here.

    Raises:
        CorruptError: One of them is no number that a length can be.
    """
    found: dict[str, int] = {}
    for name in _DEFAULTS.keys() & said.keys():
        text = said[name].strip()
        if not (text.isascii() and text.isdigit() and len(text) < 12 and 0 < int(text) <= MAX_SEGMENT_BYTES):
            raise CorruptError("length", expected=f"{name} of 1..{MAX_SEGMENT_BYTES}", found=repr(text[:20]))
        found[name] = int(text)
    return found


def _sizes(values: Mapping[str, int]) -> FileSizes:
    index = None
    if INDEX_SLOTS in values and INDEX_ENTRIES in values:
        index = IndexGeometry(values[INDEX_SLOTS], values[INDEX_ENTRIES])
    return FileSizes(
        _whole_units(values.get(QUEUE_FILE), CQ_UNIT_BYTES),
        index,
        values.get(SEGMENT),
        _whole_units(values.get(BATCH_FILE), BATCH_UNIT_BYTES),
        _compaction(values),
        values.get(TIMER_LOG_FILE),
    )


def _whole_units(size: int | None, unit_bytes: int) -> int | None:
    return None if size is None else -(-size // unit_bytes) * unit_bytes


def _compaction(values: Mapping[str, int]) -> CompactionSizes | None:
    if COMPACTION_FILE not in values or values.get(COMPACTION_QUEUE_FILE, 0) < BATCH_UNIT_BYTES:
        return None
    return compaction_sizes(values[COMPACTION_FILE], values[COMPACTION_QUEUE_FILE])

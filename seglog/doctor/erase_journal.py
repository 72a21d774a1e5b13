"""``seglog/erasing``: the records that an erase is about to write, so that a crash cannot leave half of one.

It is on the disk before the first record is touched, and goes when the last one is. It holds what is to be
written, never what was there: the erased body is in no file of ours.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from seglog.broker.config_shape import as_int, as_object, as_text
from seglog.errors import CorruptError
from seglog.storage.config_file import ConfigFile
from seglog.storage.files import Files
from seglog.storage.format.config_value import ConfigValue
from seglog.storage.format.names import COMMIT_LOG, OURS, segment_file_name

JOURNAL: Final = f"{OURS}/erasing"


class Rewrite(NamedTuple):
    """Bytes for a place of the log."""

    phy_offset: int
    data: bytes


def write_journal(files: Files, root: Path, segment_bytes: int, rewrites: Sequence[Rewrite]) -> None:
    """Writes down what is about to be written, durably."""
    records: list[ConfigValue] = [
        {"phyOffset": one.phy_offset, "data": base64.b64encode(one.data).decode()} for one in rewrites
    ]
    ConfigFile(files, root / JOURNAL).save({"segmentBytes": segment_bytes, "records": records})


def read_journal(files: Files, root: Path) -> tuple[int, list[Rewrite]] | None:
    """Returns the length of segments and what was to be written; None if no erase was interrupted.

    Raises:
        ConfigError: The journal cannot be read.
    """
    return ConfigFile(files, root / JOURNAL).load(_parse)


def remove_journal(files: Files, root: Path) -> None:
    """Removes the journal, durably."""
    files.remove(root / JOURNAL)
    files.sync_dir(root / OURS)


def apply_rewrites(files: Files, root: Path, segment_bytes: int, rewrites: Sequence[Rewrite]) -> None:
    """Writes records in their places, durably; files that have further names get bytes of their own first."""
    by_file: dict[int, list[Rewrite]] = {}
    for one in rewrites:
        by_file.setdefault(one.phy_offset - one.phy_offset % segment_bytes, []).append(one)
    for first, group in by_file.items():
        handle = files.open(root / COMMIT_LOG / segment_file_name(first), writable=True)
        try:
            for one in group:
                handle.write_at(one.data, one.phy_offset - first)
            handle.sync()
        finally:
            handle.close()


def _parse(value: ConfigValue) -> tuple[int, list[Rewrite]]:
    fields = as_object(value, JOURNAL)
    records = fields.get("records")
    if not isinstance(records, list):
        raise CorruptError(
            "erasing", file=JOURNAL, expected="a list of records", found=type(records).__name__
        )
    rewrites: list[Rewrite] = []
    for record in records:
        one = as_object(record, "record")
        data = base64.b64decode(as_text(one.get("data"), "data"))
        rewrites.append(Rewrite(as_int(one.get("phyOffset"), "phyOffset"), data))
    return as_int(fields.get("segmentBytes"), "segmentBytes"), rewrites

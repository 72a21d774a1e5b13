"""``seglog/erasing``: the records that an erase is about to write, so that a crash leaves none half written.

It is on the disk before the first record is changed, and is removed after the last one. It holds the new
bytes, never the old ones: no file of seglog holds the erased body. The journal is in the store, so it is
untrusted: :mod:`seglog.doctor.erase.erase_proof` decides whether it is valid.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from seglog.broker.tables import as_int, as_object, as_text
from seglog.errors import CorruptError
from seglog.storage.files import FILE, FOLDER, Files, kind_error, read_part
from seglog.storage.format.config import ConfigValue, decode_config
from seglog.storage.format.names import COMMIT_LOG, OURS, segment_file_name
from seglog.storage.small_files import ConfigFile

JOURNAL: Final = f"{OURS}/erasing"
MAX_JOURNAL_BYTES: Final = 256 << 20
"""Greatest length of a journal; longer files are not read."""
MAX_REWRITES_BYTES: Final = 64 << 20
"""Most bytes of records in one journal; more than the longest record."""


class Rewrite(NamedTuple):
    """Bytes for a place of the log."""

    phy_offset: int
    data: bytes


def write_journal(files: Files, root: Path, segment_bytes: int, rewrites: Sequence[Rewrite]) -> None:
    """Writes the journal of records that are about to be written, durably."""
    records: list[ConfigValue] = [
        {"phyOffset": one.phy_offset, "data": base64.b64encode(one.data).decode()} for one in rewrites
    ]
    ConfigFile(files, root / JOURNAL).save({"segmentBytes": segment_bytes, "records": records})


def read_journal(files: Files, root: Path) -> tuple[int, list[Rewrite]] | None:
    """Returns the segment size and the journal's records; None if no erase was interrupted.

    Raises:
        CorruptError: The journal cannot be read.
        FileKindError: It is a folder.
    """
    if not files.exists(root / JOURNAL):
        return None
    if files.is_dir(root / JOURNAL):
        raise kind_error(JOURNAL, FOLDER, FILE)
    with closing(files.open(root / JOURNAL, writable=False)) as handle:
        size_bytes = handle.size_bytes
        if size_bytes > MAX_JOURNAL_BYTES:
            raise CorruptError(
                "erasing", file=JOURNAL, expected=f"at most {MAX_JOURNAL_BYTES} bytes", found=size_bytes
            )
        data = bytes(read_part(handle, 0, size_bytes))
    try:
        return _parse(decode_config(data))
    except CorruptError as error:
        raise CorruptError(
            error.kind,
            file=JOURNAL,
            position_bytes=error.position_bytes,
            expected=error.expected,
            found=error.found,
        ) from error


def remove_journal(files: Files, root: Path) -> None:
    """Removes the journal, durably."""
    files.remove(root / JOURNAL)
    files.sync_dir(root / OURS)


def apply_rewrites(files: Files, root: Path, segment_bytes: int, rewrites: Sequence[Rewrite]) -> None:
    """Writes records at their places, durably; files with several hard links are separated first."""
    by_file: dict[int, list[Rewrite]] = {}
    for one in rewrites:
        by_file.setdefault(one.phy_offset - one.phy_offset % segment_bytes, []).append(one)
    for first, group in by_file.items():
        with closing(files.open(root / COMMIT_LOG / segment_file_name(first), writable=True)) as handle:
            for one in group:
                handle.write_at(one.data, one.phy_offset - first)
            handle.sync()


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
        try:
            data = base64.b64decode(as_text(one.get("data"), "data"), validate=True)
        except binascii.Error as error:
            raise CorruptError("erasing", expected="base64", found=str(error)) from error
        rewrites.append(Rewrite(as_int(one.get("phyOffset"), "phyOffset"), data))
    return as_int(fields.get("segmentBytes"), "segmentBytes"), rewrites

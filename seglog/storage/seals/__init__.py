"""Seals: checksums of full segments, block by block, and what a difference from them means.

Holds the making of seals in the background, their files under ``seglog/seals/``, the check of segments
against them, and the guard that checks a block when it is first read.

Called by surveys, openings, the writer and ``seglog verify``.
Truth: the segment's bytes when they were sealed; a record that proves itself is believed over a stale seal.
"""

from __future__ import annotations

from seglog.storage.seals.seal import make_seal
from seglog.storage.seals.seal_check import BlockCheck, Concerned, check_blocks, judge, segment_path
from seglog.storage.seals.seal_files import (
    SEALS,
    list_seals,
    read_seal,
    remove_seal,
    retire_seals,
    seal_file,
    write_seal,
)

__all__ = [
    "SEALS",
    "BlockCheck",
    "Concerned",
    "check_blocks",
    "judge",
    "list_seals",
    "make_seal",
    "read_seal",
    "remove_seal",
    "retire_seals",
    "seal_file",
    "segment_path",
    "write_seal",
]

"""The files under ``<store>/seglog/seals/``: one seal per segment, with the name of the segment.

A seal appears whole or not at all: it is written to a temporary name, synced and renamed. A killed process
leaves a ``.tmp`` file, which no code reads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.files.files import Files
from seglog.storage.format.names import OURS, parse_segment_file_name, segment_file_name
from seglog.storage.format.ours.seal import Seal, decode_seal, encode_seal
from seglog.storage.small_files.attic import Attic

SEALS: Final = f"{OURS}/seals"
_SUFFIX: Final = ".seal"
_UNFINISHED: Final = ".tmp"


def seal_file(first_phy_offset: int) -> str:
    """Returns the file of a seal relative to the store."""
    return f"{SEALS}/{segment_file_name(first_phy_offset)}{_SUFFIX}"


def list_seals(files: Files, root: Path) -> list[int]:
    """Returns the first offsets of the segments that have a seal, in order."""
    found: list[int] = []
    for entry in files.list_dir(root / SEALS):
        first = parse_segment_file_name(entry.name.removesuffix(_SUFFIX))
        if first is not None and entry.name.endswith(_SUFFIX) and not entry.is_dir:
            found.append(first)
    return found


def read_seal(files: Files, root: Path, first_phy_offset: int) -> Seal:
    """Returns the seal of a segment.

    Raises:
        CorruptError: The file is no whole seal, or is the seal of another segment.
    """
    name = seal_file(first_phy_offset)
    try:
        seal = decode_seal(files.read_file(root / name))
    except CorruptError as error:
        error.file = name
        raise
    if seal.first_phy_offset != first_phy_offset:
        raise CorruptError("seal-place", file=name, expected=first_phy_offset, found=seal.first_phy_offset)
    return seal


def write_seal(files: Files, root: Path, seal: Seal) -> None:
    """Writes a seal durably; replaces an old one.

    Raises:
        FullError: There is no space; the old seal stays.
    """
    path = root / seal_file(seal.first_phy_offset)
    if not files.exists(path.parent):
        files.make_dirs(path.parent)
    # A command may seal at the same time as the process that has the store open, so the name has the process
    # id.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{_UNFINISHED}")
    files.write_file(unfinished, encode_seal(seal), sync=True)
    try:
        files.rename(unfinished, path)
    except BaseException:
        files.remove(unfinished)
        raise
    files.sync_dir(path.parent)


def remove_seal(files: Files, root: Path, first_phy_offset: int) -> None:
    """Removes the seal of a segment that was removed or rewritten."""
    files.remove(root / seal_file(first_phy_offset))


def remove_unfinished(files: Files, root: Path) -> None:
    """Removes the unfinished files of killed processes."""
    for entry in files.list_dir(root / SEALS):
        if entry.name.endswith(_UNFINISHED):
            files.remove(root / SEALS / entry.name)


def retire_seals(files: Files, root: Path, first_phy_offsets: Sequence[int], attic: Attic) -> None:
    """Moves the seals of segments that will be cut or rewritten to the attic.

    Args:
        files: The file layer of the store.
        root: The store directory.
        first_phy_offsets: The segments; segments without a seal are ignored.
        attic: The attic.
    """
    retired = [root / name for first in first_phy_offsets if files.exists(root / (name := seal_file(first)))]
    for path in retired:
        attic.keep_file(path)
    if retired:
        files.sync_dir(root / SEALS)

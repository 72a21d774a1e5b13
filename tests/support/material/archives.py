"""Unpacks our own archives with any Python: 3.11.0 to 3.11.3 have no filters, later ones warn without."""

from __future__ import annotations

import tarfile
from pathlib import Path


def filtered(archive: tarfile.TarFile) -> tarfile.TarFile:
    """Has an archive unpack data only, where this Python can; returns it."""
    archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
    return archive


def unpack(path: Path, folder: Path) -> None:
    """Unpacks a whole archive."""
    with filtered(tarfile.open(path)) as archive:
        archive.extractall(folder)  # noqa: S202 - our own archive, filtered

"""Writes the tables of a job to folders, by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seglog.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def save_table(frame: DataFrame, folder: str, form: str) -> None:
    """Writes a table.

    Args:
        frame: The table.
        folder: A path or an address that the cluster knows; it must not exist yet.
        form: ``parquet`` or ``json``.

    Raises:
        InvalidArgumentError: The folder exists already.
        AnalysisException: The same, at an address that only the cluster can read.
    """
    refuse_existing(folder)
    frame.write.format(form).save(folder)


def refuse_existing(folder: str) -> None:
    """Refuses a folder that exists already, before a job runs in vain.

    Raises:
        InvalidArgumentError: The folder exists.
    """
    if "://" not in folder and Path(folder).exists():
        raise InvalidArgumentError(f"{folder} is there already", help="name a folder that is not there yet")

"""Counts the bytes of a store that say something; files of both engines are mostly room for more."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perf.figures.sample import check
from perf.logs.seglog_log import SeglogLog
from perf.plan.budget import Budget
from perf.plan.cases import Case
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import INDEX_ENTRY, INDEX_HEADER, INDEX_SLOT
from seglog.storage.format.names import CONSUME_QUEUE, INDEX
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.survey.store_survey import survey


def write_some(directory: Path, case: Case, budget: Budget) -> None:
    """Puts single messages and closes the store."""
    log = SeglogLog(directory, case)
    log.put_some(budget.size_messages)
    log.settle()
    log.close()


def count_bytes(directory: Path, messages: int) -> dict[str, float]:
    """Returns bytes a message of log, queues and index, in a store of either engine.

    Raises:
        SanityError: It does not hold so many messages, or they are not sound.
    """
    found = survey(directory, RealFiles())
    check((messages, []), (len(found.rows), found.findings), "records and findings of the survey")
    units = sum(_units_in(file) for file in (directory / CONSUME_QUEUE).rglob("*") if file.is_file())
    check(messages, units, "units in the queues")
    indexed = sum(_index_bytes(file) for file in (directory / INDEX).glob("*"))
    return {
        "log_bytes": found.max_phy_offset / messages,
        "queue_bytes": units * CQ_UNIT.size_bytes / messages,
        "index_bytes": indexed / messages,
    }


def _units_in(file: Path) -> int:
    return len(np.flatnonzero(np.fromfile(file, CQ_UNIT.dtype)["size_bytes"]))


def _index_bytes(file: Path) -> int:
    """Returns the length of the header, the slots in use and the entries."""
    with file.open("rb") as content:
        head = INDEX_HEADER.struct.unpack(content.read(INDEX_HEADER.size_bytes))
    slots, next_entry = head[-2:]
    entries = max(0, next_entry - 1)
    used: int = INDEX_HEADER.size_bytes + slots * INDEX_SLOT.size_bytes + entries * INDEX_ENTRY.size_bytes
    return used

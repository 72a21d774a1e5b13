"""Peers that are used from Python: LMDB, SQLite and Honker."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from perf.contestants.process import take
from perf.figures.sample import Sample
from perf.plan.budget import Budget
from perf.plan.cases import READS, WRITES, Case, Workload
from perf.sampling.child import Request


@dataclass(frozen=True, slots=True)
class PythonPeer:
    """A log of :mod:`perf.logs`; a process for each sample.

    Attributes:
        has_views: Whether it hands out memory that was not copied.
        has_all: Whether it has what usual messages have, and syncs each put when it is asked to.
    """

    key: str
    title: str
    has_views: bool
    has_all: bool = True
    flushes_itself: bool = False

    def knows(self, case: Case) -> bool:
        """One thread writes; queues that lie interleaved in one log are nothing that it has."""
        if not self.has_all and (case.is_usual or case.workload is Workload.SYNC):
            return False
        if case.workload in READS:
            return case.queues == 1 and (self.has_views or not case.is_view)
        return case.workload in WRITES - {Workload.FLIGHT} and case.threads == 1

    def get_ready(self, case: Case, budget: Budget, directory: Path) -> None:
        """Every sample has a process of its own."""

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Runs a child."""
        return take(Request(self.key, case.name, budget.size, str(directory), budget.sample_s))

    def close(self) -> None:
        """Nothing is kept."""


LMDB = PythonPeer("lmdb", "LMDB", has_views=True)
SQLITE = PythonPeer("sqlite", "SQLite WAL", has_views=False)
HONKER = PythonPeer("honker", "Honker", has_views=False, has_all=False)


def why_no_honker() -> str | None:
    """Returns why Honker cannot take part, None if it can: it is built by Cargo when it is installed."""
    if importlib.util.find_spec("honker") is None:
        return "it is not installed; `pip install honker` builds it, which needs Cargo"
    return None

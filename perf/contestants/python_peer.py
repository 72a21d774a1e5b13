"""Peers that are used from Python: LMDB and SQLite."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perf.contestants.process import take
from perf.figures.sample import Sample
from perf.plan.budget import Budget
from perf.plan.cases import READS, WRITES, Case, Workload
from perf.sampling.child import Request


@dataclass(frozen=True, slots=True)
class PythonPeer:
    """A log of :mod:`perf.logs`; a process for each sample."""

    key: str
    title: str
    has_views: bool
    flushes_itself: bool = False

    def knows(self, case: Case) -> bool:
        """One thread writes; queues that lie interleaved in one log are nothing that it has."""
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

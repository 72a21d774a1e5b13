"""Not a log: the rate of the machine's ``pwrite``, in the same round as the batches."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from perf.contestants.process import take
from perf.figures.sample import Sample
from perf.plan.budget import Budget
from perf.plan.cases import Case, Workload
from perf.sampling.child import Request


class Limit:
    """64 KiB a call to a fresh, reserved file."""

    key: Final = "limit"
    title: Final = "pwrite limit"
    flushes_itself: Final = False

    def knows(self, case: Case) -> bool:
        """Batches come closest to it."""
        return case.workload is Workload.BATCH

    def get_ready(self, case: Case, budget: Budget, directory: Path) -> None:
        """Every sample has a process of its own."""

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Runs a child."""
        return take(Request(self.key, case.name, budget.size, str(directory), budget.sample_s))

    def close(self) -> None:
        """Nothing is kept."""

"""Ourselves, over either kind of kernels, from this checkout or another."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from pathlib import Path

from perf.contestants.process import run, take
from perf.figures.sample import Sample
from perf.plan.budget import Budget
from perf.plan.cases import Case, Workload
from perf.sampling.child import Request
from perf.workloads.size import count_bytes
from seglog.storage.kernels import NATIVE, PYTHON, VARIABLE


@dataclass(frozen=True, slots=True)
class Seglog:
    """A process for each sample.

    Attributes:
        kernels: ``native`` or ``python``.
        checkout: Where seglog is imported from, empty for this checkout.
    """

    key: str
    title: str
    kernels: str
    checkout: str = ""
    flushes_itself: bool = True

    def knows(self, case: Case) -> bool:
        """All cases are ours; kernels make no difference to an import."""
        return case.workload is not Workload.START or self.kernels == NATIVE

    def get_ready(self, case: Case, budget: Budget, directory: Path) -> None:
        """Every sample has a process of its own."""

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Runs a child, or several where the workload has steps."""
        request = Request("seglog", case.name, budget.size, str(directory), budget.sample_s, self.checkout)
        environment = {VARIABLE: self.kernels}
        if case.workload is Workload.REOPEN:
            return self._reopen(request, directory)
        if case.workload is Workload.MEMORY:
            _answer, highest = run(request, 0, environment, is_watched=True)
            return Sample(budget.memory_bytes // case.body_bytes, 1.0, 0.0, {"anonymous_mb": highest})
        if case.workload is Workload.SIZE:
            run(request, 0, environment)
            messages = budget.size_messages
            return Sample(messages, 1.0, 0.0, count_bytes(directory, messages))
        return take(request, environment)

    def _reopen(self, request: Request, directory: Path) -> Sample:
        """Opens two stores that a kill left, one walking the whole log and one as by default."""
        samples = []
        for step in ("whole", "quick"):
            each = replace(request, directory=str(directory / step))
            # Both kernels write the same bytes; the native ones, where there are any, are quicker at it.
            run(replace(each, step="fill"), -signal.SIGKILL)
            samples.append(take(replace(each, step=step), {VARIABLE: self.kernels}))
        whole, quick = samples
        return replace(whole, figures={**whole.figures, **quick.figures})

    def close(self) -> None:
        """Nothing is kept."""


def native() -> Seglog:
    """Returns us with the kernels in C."""
    return Seglog("native", "seglog native", NATIVE)


def python() -> Seglog:
    """Returns us with the kernels in Python."""
    return Seglog("python", "seglog Python", PYTHON)


def other(checkout: Path) -> Seglog:
    """Returns another checkout with its kernels in C."""
    return Seglog("other", "other checkout", NATIVE, str(checkout.resolve()))

"""The warm-up of a JVM before its first sample of a case."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from perf.figures.sample import Sample
from perf.plan.budget import Budget


def warm_up(take: Callable[[Path], Sample], budget: Budget, beside: Path) -> float:
    """Takes samples and drops them until a JVM has done the work of a case for long enough.

    Compilers of a JVM need seconds of the same work: RocketMQ's put takes 5.6 µs of CPU at first and 0.9 µs
    after half a million puts. Writers stop where their memory ends, therefore it may take several.

    Args:
        take: Takes a sample in an empty directory.
        budget: What a sample is; a smoke test needs no warm JVM.
        beside: The directories are made beside it.

    Returns:
        Seconds of work.
    """
    worked_s = 0.0
    while worked_s < budget.first_warm_up_seconds:
        with tempfile.TemporaryDirectory(prefix="seglog-warm-", dir=beside.parent) as made:
            worked_s += take(Path(made)).wall_s
    return worked_s

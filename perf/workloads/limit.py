"""How fast this machine takes bytes at all: 64 KiB a ``pwrite`` to a fresh, reserved file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from perf.figures.sample import Sample
from perf.plan.budget import Budget
from perf.sampling.stopwatch import Stopwatch

_WRITE_BYTES: Final = 64 << 10


def write_to_the_limit(directory: Path, budget: Budget) -> Sample:
    """Writes as long as a batch case does; reserving the file is not counted."""
    data = os.urandom(_WRITE_BYTES)
    descriptor = os.open(directory / "limit", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.posix_fallocate(descriptor, 0, budget.max_stored_bytes)
        watch = Stopwatch()
        position = 0
        end = time.perf_counter() + budget.seconds
        while time.perf_counter() < end and position < budget.max_stored_bytes:
            position += os.pwrite(descriptor, data, position)
        sample = watch.sample(position // _WRITE_BYTES)
    finally:
        os.close(descriptor)
    return Sample(sample.operations, sample.wall_s, sample.cpu_s, {"bytes_per_s": position / sample.wall_s})

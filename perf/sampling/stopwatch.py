"""Wall and CPU time."""

from __future__ import annotations

import time

from perf.figures.sample import Sample


class Stopwatch:
    """Wall and CPU time since it was made."""

    def __init__(self) -> None:
        self._cpu_s = time.process_time()
        self._wall_s = time.perf_counter()

    def sample(self, operations: int, **figures: float) -> Sample:
        """Returns what was done until now."""
        wall_s = time.perf_counter() - self._wall_s
        return Sample(operations, wall_s, time.process_time() - self._cpu_s, figures)

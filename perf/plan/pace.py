"""How long a plan takes, and how long its samples may be where time is short."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from perf.plan.budget import Budget
from perf.plan.cases import READS, Case, Workload

MIN_SAMPLE_S: Final = 1.0
"""Two flushes; a shorter sample says how many of them fell into it."""
_JVMS: Final = frozenset({"rocketmq", "kafka", "chronicle"})
_JVM_START_S: Final = 2.5
_FILLS_S: Final = 2.5
"""Memory made ready for a writer, its start, and the removal of what it wrote."""
_STARTS_S: Final = 1.0
_WHOLE_S: Final = {
    Workload.LATENCY: 4.0,
    Workload.REOPEN: 7.0,
    Workload.SURVEY: 2.0,
    Workload.SIZE: 1.0,
    Workload.MEMORY: 20.0,
    Workload.START: 4.0,
}
"""Of cases whose work does not depend on the length of a sample: seconds of each."""
_SLOW: Final = READS | {Workload.SYNC}
"""They fill little memory."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What takes time.

    Attributes:
        fixed_s: Everything but the samples.
        samples: How many samples are as long as the budget says.
    """

    fixed_s: float = 0.0
    samples: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.fixed_s + other.fixed_s, self.samples + other.samples)

    def seconds(self, sample_s: float) -> float:
        """Returns how long it takes with samples of that length."""
        return self.fixed_s + self.samples * sample_s


def cost(case: Case, contestants: Collection[str], rounds: int, budget: Budget) -> Cost:
    """Returns what a case takes, by experience with machines like that of the results.

    Args:
        case: What is measured.
        contestants: Keys of those who take part.
        rounds: Samples of each.
        budget: For what comes before a sample.
    """
    jvms = len(_JVMS.intersection(contestants))
    count = len(contestants)
    if case.workload in _WHOLE_S:
        return Cost(rounds * count * _WHOLE_S[case.workload] + jvms * _JVM_START_S)
    each_s = budget.warm_up_seconds + (_STARTS_S if case.workload in _SLOW else _FILLS_S)
    first_s = budget.first_warm_up_seconds + _JVM_START_S
    logs = 2 if case.workload is Workload.TOGETHER else 1
    return Cost(logs * rounds * count * each_s + jvms * (first_s + rounds * 0.5), logs * rounds * count)


def fitting(costs: Iterable[Cost], seconds: float, wanted_s: float) -> float:
    """Returns the length of a sample, at most the wanted one, with which all of it is done in time.

    It is :data:`MIN_SAMPLE_S` where not even that fits.
    """
    whole = sum(costs, Cost())
    if not whole.samples:
        return wanted_s
    return max(MIN_SAMPLE_S, min(wanted_s, (seconds - whole.fixed_s) / whole.samples))

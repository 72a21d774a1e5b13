"""The result of one contestant in one case and round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sample:
    """The result of one run.

    Attributes:
        operations: Messages, or bytes where the case counts those.
        wall_s: How long it took.
        cpu_s: CPU time of the whole process meanwhile, its background threads included.
        figures: What else was found, by the keys of :data:`perf.plan.columns.COLUMNS`.
    """

    operations: int
    wall_s: float
    cpu_s: float
    figures: Mapping[str, float] = field(default_factory=dict)

    def figure(self, key: str) -> float | None:
        """Returns a figure, None if it was not taken."""
        if key == "per_s" and key not in self.figures:
            return self.operations / self.wall_s
        if key == "cpu_us":
            return 1e6 * self.cpu_s / self.operations
        return self.figures.get(key)


class SanityError(Exception):
    """A bench did not do what it measured."""


def check(expected: object, found: object, what: str) -> None:
    """Does nothing if both are equal.

    Raises:
        SanityError: They are not.
    """
    if expected != found:
        raise SanityError(f"{what}: expected {expected}, found {found}")

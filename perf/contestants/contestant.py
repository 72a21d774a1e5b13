"""What a contestant can do."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from perf.figures.sample import Sample
from perf.plan.budget import Budget
from perf.plan.cases import Case


class Contestant(Protocol):
    """A contestant of a measurement."""

    @property
    def key(self) -> str:
        """What results and aims call it."""
        ...

    @property
    def title(self) -> str:
        """What the report calls it."""
        ...

    @property
    def flushes_itself(self) -> bool:
        """Whether what it wrote goes to the disk every half second without help."""
        ...

    def knows(self, case: Case) -> bool:
        """Returns whether it takes part in a case."""
        ...

    def get_ready(self, case: Case, budget: Budget, directory: Path) -> None:
        """Does what comes before the first sample of a case, in directories beside the given one.

        Raises:
            SanityError: It did not do what is to be measured.
        """
        ...

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Takes one sample in an empty directory.

        Raises:
            SanityError: It did not do what was measured.
        """
        ...

    def close(self) -> None:
        """Ends what it keeps from sample to sample."""
        ...

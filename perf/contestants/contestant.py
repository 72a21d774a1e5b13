"""What somebody who is measured can do."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from perf.figures.sample import Sample
from perf.plan.budget import Budget
from perf.plan.cases import Case


class Contestant(Protocol):
    """Somebody to be measured."""

    @property
    def key(self) -> str:
        """What results and aims call it."""
        ...

    @property
    def title(self) -> str:
        """What the report calls it."""
        ...

    def knows(self, case: Case) -> bool:
        """Returns whether it takes part in a case."""
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

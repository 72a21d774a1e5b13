"""The interface of a contestant."""

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
        """Its key in results and aims."""
        ...

    @property
    def title(self) -> str:
        """Its name in the report."""
        ...

    @property
    def flushes_itself(self) -> bool:
        """Whether it syncs its writes every half second by itself."""
        ...

    def knows(self, case: Case) -> bool:
        """Returns whether it takes part in a case."""
        ...

    def get_ready(self, case: Case, budget: Budget, directory: Path) -> None:
        """Prepares the first sample of a case, in directories beside the given one.

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
        """Ends processes that it keeps between samples."""
        ...

"""Who takes part: each takes samples of the cases it knows, in processes of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from perf.cases import Budget, Case, Sample, SanityError, Workload
from perf.child import Request

_ROOT: Final = Path(__file__).resolve().parent.parent
_LIMIT_S: Final = 300
_STORES_ONLY: Final = frozenset((Workload.REOPEN, Workload.SURVEY))


class Contestant(Protocol):
    """Somebody to be measured."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    def knows(self, case: Case) -> bool:
        """Returns whether it takes part in a case."""
        ...

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Takes one sample in an empty directory."""
        ...


@dataclass(frozen=True, slots=True)
class Seglog:
    """The store of a checkout, this one or another."""

    name: str = "seglog"
    checkout: str = ""

    def knows(self, case: Case) -> bool:
        """All cases are ours."""
        return True

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Runs a child, for a reopen one more before that."""
        request = Request("seglog", case.name, budget.size, str(directory), self.checkout)
        if case.workload is Workload.REOPEN:
            _run_child(replace(request, is_fill=True), -signal.SIGKILL)
        return _take(request)


@dataclass(frozen=True, slots=True)
class PythonPeer:
    """A log from :mod:`perf.logs`."""

    name: str
    kind: str

    def knows(self, case: Case) -> bool:
        """Whatever needs no store of ours; threads that share a sync are more than it has."""
        return case.workload not in _STORES_ONLY | {Workload.VIEW} and case.threads == 1

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Runs a child."""
        return _take(Request(self.kind, case.name, budget.size, str(directory)))


def _take(request: Request) -> Sample:
    return Sample(**json.loads(_run_child(request, 0)))


def _run_child(request: Request, expected_code: int) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "perf.child", json.dumps(asdict(request))],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=_LIMIT_S,
    )
    if done.returncode != expected_code:
        raise SanityError(
            f"{request.case} of {request.contestant} ended with {done.returncode}:\n{done.stderr}"
        )
    return done.stdout

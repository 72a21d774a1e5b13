"""A plugin of pytest that writes each outcome when it is known, and ends a run at a given time.

With ``-p tests.support.campaign.journal --journal FILE`` a run appends lines of JSON to the file: a line a
test, and a line a file of tests of which all selected tests have run. JUnit is written only when a run ends.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

_WORST: Final = ("failed", "skipped", "passed")
"""Outcomes; a test has the first of those that its phases have."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--journal", type=Path, help="append each outcome to this file, as lines of JSON")
    parser.addoption(
        "--until", type=float, help="begin no file of tests from this time on, in s of the epoch"
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("journal")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Journal(config, path, config.getoption("until")), "seglog-journal")


def file_of(test: str) -> str:
    """Returns the file of a test."""
    return test.partition("::")[0]


class Journal:
    """Writes the outcomes of a run.

    Args:
        config: Of pytest.
        path: Where they are appended.
        until_s: When to end, in s of the epoch; None for no end.
    """

    def __init__(self, config: pytest.Config, path: Path, until_s: float | None) -> None:
        self._config, self._until_s = config, until_s
        path.parent.mkdir(parents=True, exist_ok=True)
        self._out = path.open("a", encoding="utf-8")
        self._out.write("\n")  # the line before may be one that a killed run did not finish
        self._left: Counter[str] | None = None
        self._phases: dict[str, list[pytest.TestReport]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Counts the tests of each file, where this process runs them itself."""
        if session.items:
            self._count(item.nodeid for item in session.items)

    def pytest_xdist_node_collection_finished(self, node: Any, ids: Iterable[str]) -> None:
        """Counts the tests of each file, as the first process has found them."""
        self._count(ids)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is a failure of that file."""
        if report.failed:
            self._write(test=report.nodeid, outcome="failed", seconds=0.0, is_late=False, error=_text(report))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Writes a test when its last phase is known."""
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when not in {"setup", "call"}:  # a process that ended has one phase, which has no name
            self._end(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Says that the run came to its end, and how; one that was killed says nothing."""
        self._write(ended=int(session.exitstatus))
        self._out.close()

    def _count(self, ids: Iterable[str]) -> None:
        if self._left is None:
            self._left = Counter(map(file_of, ids))

    def _end(self, test: str) -> None:
        phases = self._phases.pop(test)
        outcome = next(one for one in _WORST if any(phase.outcome == one for phase in phases))
        failed = next((phase for phase in phases if phase.failed), None)
        self._write(
            test=test,
            outcome=outcome,
            seconds=round(sum(phase.duration for phase in phases), 3),
            is_late=any(name == "late" for phase in phases for name, _ in phase.user_properties),
            error=None if failed is None else _text(failed),
        )
        file = file_of(test)
        assert self._left is not None
        self._left[file] -= 1
        if self._left[file] == 0:
            self._write(file=file)
            if self._until_s is not None and time.time() >= self._until_s:
                self._stop()

    def _stop(self) -> None:
        """Has the run end when what its processes were given is done."""
        reason = "the time is up; a next run continues"
        shares = self._config.pluginmanager.getplugin("dsession")
        if shares is not None:
            shares.shouldstop = reason
        else:
            self._config.pluginmanager.getplugin("session").shouldstop = reason

    def _write(self, **line: object) -> None:
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()


def _text(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Returns the last line of a failure that says what it was."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return text.strip()[:500]

"""Hypothesis profiles and ``--full``: dev is quick, ci repeats itself exactly, nightly searches long.

HYPOTHESIS_PROFILE chooses a profile; without it, nightly with ``--full``, else ci where the variable CI is
set and dev elsewhere. Where several processes share the tests (``-n``), a file is one's as a whole, and all
that Spark runs is one's, which has the session. Long ones are first: what begins last is short, and no
process waits long for the other.

With ``--in-memory`` the folders of tests of the engine and of the broker are in memory where it has room, but
those of tests that are marked ``on_disk``. `make test` says so; `make twin`, `make sanitize` and
`make interop` run on the disk, which takes a sync seriously.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import scale
from tests.support.machine.memory_folder import in_memory
from tests.support.machine.order import place_in_order
from tests.support.machine.whole_files import WholeFiles

# Examples share the disk with other work here; a slow one is no finding, so no profile has a deadline.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=200, derandomize=True, print_blob=True)
settings.register_profile(
    "nightly", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow]
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true", help="search long: every bit, every subset, thousands of examples"
    )
    parser.addoption(
        "--rewrite-dialogues", action="store_true", help="write tests/dialogues/*.txt as commands talk now"
    )
    parser.addoption(
        "--in-memory", action="store_true", help="folders of tests that sync often are in memory"
    )


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> WholeFiles:
    return WholeFiles(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: place_in_order(item.nodeid))


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty folder, as pytest has it; in memory with ``--in-memory`` and where that is for the test."""
    is_asked = request.config.getoption("in_memory") and not request.node.get_closest_marker("on_disk")
    folder = in_memory(request.node.nodeid) if is_asked else None
    if folder is None:
        yield request.getfixturevalue("tmp_path")
    else:
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as name:
            yield Path(name)


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """An empty folder, in memory where the machine can, for tests that sync often but not for its sake."""
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as folder:
        yield Path(folder)


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what runs in its background with SIGINT ignored, nohup with SIGHUP; children of tests
    # would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    full = bool(config.getoption("full"))
    scale.set_full(full)
    usual = "ci" if os.environ.get("CI") else "dev"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("nightly" if full else usual))

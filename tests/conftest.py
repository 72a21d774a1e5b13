"""Sizes, seeds, and what a run does with its tests.

``--size`` says how much the searching tests do (:mod:`tests.support.scale`); what they draw follows from the
commit, and each failure prints the line that repeats it. Tests that are marked ``campaign`` run from the size
``usual`` on (`make campaign`); of those that are marked ``sampled(n)``, the gate runs n cases of each
function, others for each commit. A test that was only late says so in the results, and CI tries it once more.

Where several processes share the tests (``-n``), a file is one's as a whole, and all files that need a
session of Spark are one's, which has it. Long ones are first: what begins last is short, and no process waits
long for the other.

With ``--in-memory`` the folders of tests of the engine and of the broker are in memory where it has room, but
those of tests that are marked ``on_disk``. `make test` says so; `make twin`, `make sanitize` and
`make interop` run on the disk, which takes a sync seriously.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, core, is_hypothesis_test, settings

from tests.support import scale
from tests.support.machine import shared
from tests.support.machine.children import Process, child, forget_crashes, has_crashed
from tests.support.machine.memory_folder import in_memory, room_in_memory
from tests.support.machine.order import place_in_order
from tests.support.machine.patience import LateError, is_late
from tests.support.machine.whole_files import WholeFiles
from tests.support.scale import Size

# Examples share the disk with other work here; a slow one is no finding, so no profile has a deadline. The
# draws follow from the commit, so a run repeats itself without a database of examples. Hypothesis takes the
# same ones for ever where the variable CI is set, if it is not told otherwise.
_EACH: Final[dict[str, Any]] = {"deadline": None, "derandomize": False, "print_blob": True}
settings.register_profile(Size.GATE, max_examples=50, database=None, **_EACH)
settings.register_profile(Size.USUAL, max_examples=200, database=None, **_EACH)
settings.register_profile(Size.FULL, max_examples=5000, suppress_health_check=[HealthCheck.too_slow], **_EACH)

_SHARED = pytest.StashKey[Path]()
_CHANGED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--size",
        choices=[size.value for size in Size],
        default=os.environ.get(scale.SIZE_VARIABLE) or Size.GATE.value,
        help="how much the searching tests do: gate (as make test), usual (as make campaign), full",
    )
    parser.addoption(
        "--full",
        action="store_const",
        const=Size.FULL.value,
        dest="size",
        help="search long: every bit, every subset, thousands of examples (--size full)",
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
    if scale.is_gate():
        _leave_to_campaign(config, items)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: place_in_order(item.nodeid))


def _leave_to_campaign(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes out what only the campaign runs, and of each sampled function all cases but the commit's."""
    left: set[pytest.Item] = {item for item in items if item.get_closest_marker("campaign")}
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and item not in left:
            cases[item.nodeid.partition("[")[0]].append(item)
    for function, its_cases in cases.items():
        mark = its_cases[0].get_closest_marker("sampled")
        assert mark is not None
        count = min(int(mark.args[0]), len(its_cases))
        kept = scale.chance("sampled", function).sample(range(len(its_cases)), count)
        left.update(item for number, item in enumerate(its_cases) if number not in kept)
    if left:
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=list(left))


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
    with tempfile.TemporaryDirectory(dir=room_in_memory()) as folder:
        yield Path(folder)


@pytest.fixture
def start_child() -> Iterator[Callable[..., Process]]:
    """Starts processes that outlive one call (:func:`tests.support.machine.children.child`)."""
    with ExitStack() as opened:
        yield lambda words, **options: opened.enter_context(child(words, **options))


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what runs in its background with SIGINT ignored, nohup with SIGHUP; children of tests
    # would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    size = Size(config.getoption("size"))
    scale.set_size(size)
    # Processes of tests are of the size and the seed of the run, also where the commit changes meanwhile.
    os.environ[scale.SIZE_VARIABLE] = size
    os.environ[scale.SEED_VARIABLE] = scale.commit_seed()
    settings.load_profile(size)
    if core.global_force_seed is None:
        core.global_force_seed = scale.seed_number("hypothesis")  # type: ignore[assignment]  # as its plugin does
    made = shared.open_shared()
    if made is not None:
        config.stash[_SHARED] = made


def pytest_report_header(config: pytest.Config) -> str:
    return f"size {scale.size()}, seed {scale.commit_seed()}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if call.excinfo is not None and _was_only_late(item, call.excinfo.value):
        # Written with the report of the teardown, which comes last.
        item.user_properties.append(("late", item.nodeid))
    if call.when == "teardown":
        forget_crashes()
    report = yield
    if report.failed:
        report.sections.append(("to repeat", scale.repeating(item.nodeid, scale.commit_seed())))
    return report


def _was_only_late(item: pytest.Item, error: BaseException) -> bool:
    """Returns whether the first error that led to a failure is a time-out: nothing was wrong before."""
    if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
        return False  # a counterexample
    first, seen = error, {id(error)}
    while earlier := first.__cause__ or _before(first):
        if id(earlier) in seen:  # `raise error from error`
            break
        seen.add(id(earlier))
        first = earlier
    return is_late(first) and not has_crashed()


def _before(error: BaseException) -> BaseException | None:
    """Returns the error that was there when an error was raised, None where its author says that none counts.

    A wait leaves out how it ended itself, and not what was wrong before it began, as in a ``finally``.
    """
    before = error.__context__
    if not isinstance(error, LateError):
        return None if error.__suppress_context__ else before
    return before.__context__ if type(before) is TimeoutError else before


def pytest_sessionfinish(session: pytest.Session) -> None:
    made = session.config.stash.get(_SHARED, None)
    if made is not None and (changed := shared.close_shared(made)):
        # Not that of failed tests: CI and the campaign look for no failure then, and find this one.
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        session.config.stash[_CHANGED] = changed


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name in config.stash.get(_CHANGED, ()):
        terminalreporter.write_line(
            f"A test wrote into a folder of once() that other tests read: {name}. The run fails; a test that "
            "writes takes a copy (copy_tree).",
            red=True,
        )

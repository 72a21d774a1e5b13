"""What CI does with a test that was only late: it tries it once more, alone; any other failure refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.support.machine.patience import patience_s
from tests.support.rows import every_row

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = ROOT / "tools" / "ci-summary"
CONFTEST = """
from tests.conftest import pytest_runtest_makereport

def pytest_addoption(parser):
    pass
"""
TESTS = """
import subprocess, sys
from pathlib import Path
import pytest
from hypothesis import given, strategies
from seglog.remoting.later import Deferred
from tests.support.machine.children import child
from tests.support.machine.patience import LateError, wait_for_end, wait_for_result
from tests.support.rows import every_row

SECOND = Path(__file__).parent / "second"

def test_good():
    pass

def test_late():
    if not SECOND.exists():
        raise LateError("it was not so")

def test_late_process():
    if not SECOND.exists():
        subprocess.run([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, timeout=0.01)

def test_late_as_a_consequence():
    try:
        assert 1 == 2
    except AssertionError:
        raise LateError("it was not so")

def test_late_after_what_was_wrong():
    try:
        assert 1 == 2
    finally:
        with child([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
            wait_for_end(process, idle_s=0.01)

def test_late_as_a_result_that_did_not_come():
    if not SECOND.exists():
        wait_for_result(Deferred(), idle_s=0.01)

def test_late_since_a_process_crashed():
    with child([sys.executable, "-c", "import os; os.abort()"]) as process:
        process.wait()
        raise LateError("it was not so")

def test_wrong():
    assert 1 == 2

@pytest.fixture
def broken_later():
    yield
    raise ValueError("wrong in the teardown")

def test_late_and_wrong(broken_later):
    raise LateError("it was not so")

@given(strategies.integers())
def test_counterexample(number):
    raise LateError("it was not so")

def test_cause_of_itself():
    error = ValueError("x")
    raise error from error

def test_row():
    with every_row() as row:
        with row("first"):
            assert 1 == 2
        with row("second"):
            raise LateError("it was not so")

def test_that_ends_its_process():
    import os
    os._exit(3)
"""
LATE = ("test_late", "test_late_process", "test_late_as_a_result_that_did_not_come")
WRONG = (
    "test_late_as_a_consequence",
    "test_late_after_what_was_wrong",
    "test_late_since_a_process_crashed",
    "test_wrong",
    "test_late_and_wrong",
    "test_counterexample",
    "test_cause_of_itself",
    "test_that_ends_its_process",
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """The cases of a first run of all tests, and of a second one of those that were late."""
    folder = tmp_path_factory.mktemp("tests")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    first = run_tests(folder)
    (folder / "second").touch()
    (folder / "late").write_text("".join(f"{test}\n" for test in ids(*LATE)))
    return first, run_tests(folder, "@late")


def run_tests(folder, *tests):
    """Runs tests as make does; returns the cases of each."""
    words = [sys.executable, "-m", "pytest", "-n", "1", "-q", "-p", "no:cacheprovider", "--junitxml=it.xml"]
    subprocess.run(
        [*words, *tests],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        timeout=patience_s(60),
        check=False,
    )
    found = {}
    for case in ET.parse(folder / "it.xml").getroot().iter("testcase"):  # noqa: S314 - pytest wrote it
        found.setdefault(case.get("name"), []).append(case)
    return found


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a page of flaky tests; results are in ``build``."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "flaky.md").write_text("| a | b | c | d | e | f |\n| - | - | - | - | - | - |\n")
    (tmp_path / "allowed").write_text("")
    return tmp_path


def write(folder, outcome, *names, code=1, run="tests"):
    """Writes the results of some tests as a run of them would."""
    folder.mkdir(parents=True, exist_ok=True)
    root = ET.Element("testsuites")
    ET.SubElement(root, "testsuite").extend([case for name in names for case in outcome[name]])
    ET.ElementTree(root).write(folder / f"{run}.xml")
    (folder / f"{run}.exit").write_text(f"{code}\n")


def summarize(folder, *words):
    ran = subprocess.run(
        [sys.executable, SUMMARY, "build", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=patience_s(30),
        check=False,
    )
    assert ran.stderr == ""
    return ran.returncode, ran.stdout.splitlines()


def ids(*names):
    return [f"test_it.py::{name}" for name in names]


def test_tests_that_were_only_late_are_tried_once_more_and_named(checkout, outcomes):
    first, second = outcomes
    write(checkout / "build", first, "test_good", *LATE)
    assert summarize(checkout, "allowed", "tests") == (
        1,
        ["tests: 1 passed, 3 failed", "campaign: no campaign has run; make campaign", "1 passed, 3 failed"],
    )
    assert summarize(checkout, "--late") == (0, ["tests"])
    assert (checkout / "build" / "tests.late").read_text().splitlines() == ids(*LATE)
    write(checkout / "build" / "again", second, *LATE, code=0)
    code, lines = summarize(checkout, "allowed", "tests")
    assert (code, lines[0], lines[-1]) == (0, "tests: 4 passed, 0 failed", "4 passed, 0 failed")
    flaky = [line for line in lines if line.startswith("flaky: ")]
    assert [line.split(": ")[2] for line in flaky] == ids(*LATE)
    assert "it was not so" in flaky[0]
    page = (checkout / "tests" / "flaky.md").read_text()
    assert all(page.count(f"`{test}`") == 1 for test in ids(*LATE))


@pytest.mark.parametrize("name", WRONG)
def test_what_was_wrong_is_not_tried_again_nor_what_was_late_beside_it(name, checkout, outcomes):
    write(checkout / "build", outcomes[0], "test_good", "test_late", name)
    assert summarize(checkout, "--late") == (0, [])
    code, lines = summarize(checkout, "allowed", "tests")
    assert (code, lines[-1]) == (1, "1 passed, 2 failed")


def test_a_row_that_is_late_hides_no_row_that_was_wrong_before(outcomes):
    (case,) = outcomes[0]["test_row"]
    assert [one.get("name") for one in case.iter("property")] == []


def test_a_test_that_is_late_again_is_refused(checkout, outcomes):
    write(checkout / "build", outcomes[0], "test_good", *LATE)
    write(checkout / "build" / "again", outcomes[0], *LATE)
    code, lines = summarize(checkout, "allowed", "tests")
    assert (code, lines[-1]) == (1, "1 passed, 3 failed")


def test_a_second_try_of_fewer_tests_counts_for_none(checkout, outcomes):
    first, second = outcomes
    write(checkout / "build", first, "test_good", *LATE)
    write(checkout / "build" / "again", second, "test_late", code=0)
    code, lines = summarize(checkout, "allowed", "tests")
    assert (code, lines[-1]) == (1, "1 passed, 3 failed")


@pytest.mark.parametrize(("repaired", "code"), [("", 1), ("1a2b3c4d", 0)])
def test_a_test_that_was_flaky_before_refuses_unless_it_was_repaired(repaired, code, checkout, outcomes):
    first, second = outcomes
    test = ids("test_late")[0]
    row = f"| 2026-11-01 | 0a0a0a0a | tests | `{test}` | LateError: it was not so | {repaired} |\n"
    page = checkout / "tests" / "flaky.md"
    page.write_text(page.read_text() + row)
    write(checkout / "build", first, "test_good", "test_late")
    write(checkout / "build" / "again", second, "test_late", code=0)
    ended, lines = summarize(checkout, "allowed", "tests")
    assert ended == code
    told = f"`{test}` is flaky for the second time and was not repaired (tests/flaky.md)"
    assert (told in lines) == bool(code)


def test_a_test_that_is_late_in_two_runs_of_a_commit_is_flaky_once(checkout, outcomes):
    first, second = outcomes
    for run in ("tests", "twin"):
        write(checkout / "build", first, "test_good", "test_late", run=run)
        write(checkout / "build" / "again", second, "test_late", run=run, code=0)
    code, lines = summarize(checkout, "allowed", "tests,twin")
    assert (code, lines[-1]) == (0, "4 passed, 0 failed")


def test_the_second_try_is_of_the_same_tests(checkout, outcomes):
    first, second = outcomes
    write(checkout / "build", first, "test_good", "test_late")
    write(checkout / "build" / "again", second, "test_late_process", code=0)
    assert summarize(checkout, "allowed", "tests")[0] == 1


def test_what_is_not_as_it_was_written_ends_in_no_traceback(checkout, outcomes):
    write(checkout / "build", outcomes[0], "test_good", code=0)
    with every_row() as row:
        for text in ("[]", "{}", "null", '{"commit": ""}', "{"):
            with row(text):
                (checkout / "tests" / "campaign.json").write_text(text)
                assert summarize(checkout, "allowed", "tests")[0] == 0
    (checkout / "build" / "tests.exit").write_text("")
    assert summarize(checkout, "allowed", "tests")[0] == 1


def test_a_run_without_results_is_refused(checkout, outcomes):
    write(checkout / "build", outcomes[0], "test_good", code=0)
    code, lines = summarize(checkout, "allowed", "tests,twin")
    assert code == 1
    assert "twin: it has no results" in lines


@pytest.mark.parametrize("ended", ["2", "3", None])
def test_a_run_that_did_not_come_to_its_end_is_refused(ended, checkout, outcomes):
    write(checkout / "build", outcomes[0], "test_good", code=0)
    assert summarize(checkout, "allowed", "tests")[0] == 0
    noted = checkout / "build" / "tests.exit"
    noted.unlink() if ended is None else noted.write_text(ended)
    assert summarize(checkout, "allowed", "tests")[0] == 1


def test_a_run_that_fails_beside_its_tests_is_refused(checkout, outcomes):
    """Such as one in which a test wrote to what others share."""
    write(checkout / "build", outcomes[0], "test_good", code=1)
    assert "tests: the run failed beside its tests" in summarize(checkout, "allowed", "tests")[1]


def test_a_red_or_unfinished_campaign_is_named(checkout, outcomes):
    write(checkout / "build", outcomes[0], "test_good", code=0)
    failed = {"part": "twin", "test": "tests/test_a.py::test_b", "error": "x"}
    for failures, complete, said in (
        ([failed], True, "1 failed, tests/test_a.py::test_b among them; an unknown number of commits"),
        ([], False, "it is not complete; an unknown number of commits"),
    ):
        summary = {"commit": "1" * 40, "date": "2026-11-28", "complete": complete, "failures": failures}
        (checkout / "tests" / "campaign.json").write_text(json.dumps(summary))
        code, lines = summarize(checkout, "allowed", "tests")
        assert code == 0
        assert lines[1].startswith(f"campaign: {'1' * 12} of 2026-11-28: {said}")

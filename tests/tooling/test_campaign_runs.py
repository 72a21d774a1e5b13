"""A campaign notes what has run, continues where it was stopped, and says in one file how it ended."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.campaign.journal import file_of
from tests.support.campaign.state import Run, State, summary_of
from tests.support.machine.patience import patience_s
from tests.support.rows import every_row

ROOT = Path(__file__).resolve().parents[2]
RUN = Run("0a" * 20, "usual", "0a0a")
CONFTEST = """
from tests.support.machine.whole_files import WholeFiles

def pytest_xdist_make_scheduler(config, log):
    return WholeFiles(config, log)
"""
WRONG_ONCE = """
from pathlib import Path
def test_wrong_once():
    second = Path(__file__).parent / "second"
    assert second.exists(), second.touch()
def test_right(): pass
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_a.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    (tmp_path / "test_b.py").write_text(WRONG_ONCE)
    (tmp_path / "test_c.py").write_text("import pytest\n@pytest.mark.skip\ndef test_skipped(): pass\n")
    return tmp_path


def run_tests(folder, journal, *words):
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("-p", "tests.support.campaign.journal", "--journal", str(journal), *words),
    ]
    ran = subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=patience_s(60),
        check=False,
    )
    return ran.returncode


@pytest.mark.parametrize("jobs", ["0", "2"])
def test_files_that_passed_are_left_out_of_the_next_run_and_those_that_failed_are_not(jobs, tree):
    state = State(tree / "state", RUN)
    assert run_tests(tree, state.journal("tests"), "-n", jobs) == 1
    part = state.part("tests")
    assert part.files_to_skip() == {"test_a.py", "test_c.py"}
    assert [line["test"] for line in part.failures()] == ["test_b.py::test_wrong_once"]
    assert "AssertionError" in part.failures()[0]["error"]
    ignored = [f"--ignore={file}" for file in part.files_to_skip()]
    assert run_tests(tree, state.journal("tests"), "-n", jobs, *ignored) == 0
    part = state.part("tests")
    assert part.files_to_skip() == {"test_a.py", "test_b.py", "test_c.py"}
    assert (part.failures(), [line["test"] for line in part.flaky()]) == ([], ["test_b.py::test_wrong_once"])
    assert {name: part.summary()[name] for name in ("passed", "failed", "skipped")} == {
        "passed": 4,
        "failed": 0,
        "skipped": 1,
    }


def test_a_run_whose_time_is_up_ends_after_a_file_and_the_rest_is_left(tree):
    for number in range(20):
        (tree / f"test_d{number:02}.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    state = State(tree / "state", RUN)
    assert run_tests(tree, state.journal("tests"), "-n", "1", "--until", str(time.time())) == 2
    done = state.part("tests").files_to_skip()
    assert 1 <= len(done) < 10
    assert not {file_of(test) for test in state.part("tests").outcomes} - done - {"test_b.py"}


def test_a_test_that_ends_its_process_is_a_failure_and_its_file_is_known(tree):
    (tree / "test_b.py").write_text("import os\ndef test_ends(): os._exit(3)\ndef test_behind(): pass\n")
    state = State(tree / "state", RUN)
    run_tests(tree, state.journal("tests"), "-n", "2")
    part = state.part("tests")
    assert [line["test"] for line in part.failures()] == ["test_b.py::test_ends"]
    assert part.outcomes["test_b.py::test_behind"]["outcome"] == "passed"


def test_a_file_that_cannot_be_collected_is_a_failure(tree):
    (tree / "test_b.py").write_text("import no_such_module_of_ours\n")
    state = State(tree / "state", RUN)
    run_tests(tree, state.journal("tests"), "-n", "0")
    assert [line["test"] for line in state.part("tests").failures()] == ["test_b.py"]


def test_only_a_campaign_of_the_same_commit_size_and_seed_is_continued(tmp_path):
    State(tmp_path, RUN).note("tests", file="tests/test_a.py")
    assert State(tmp_path, RUN).part("tests").done == {"tests/test_a.py"}
    with every_row() as row:
        for other in (
            Run("0b" * 20, RUN.size, RUN.seed),
            Run(RUN.commit, "full", RUN.seed),
            Run(RUN.commit, RUN.size, "0b0b"),
        ):
            with row(other):
                state = State(tmp_path, other)
                assert not state.is_continued
                assert state.part("tests").done == set()
                state.note("tests", file="tests/test_a.py")


def test_the_line_that_a_killed_run_did_not_finish_hides_no_later_one(tmp_path):
    state = State(tmp_path, RUN)
    state.note("tests", file="tests/test_a.py")
    with state.journal("tests").open("a") as out:
        out.write('{"file": "tests/te')
    state.note("tests", file="tests/test_b.py")
    assert state.part("tests").done == {"tests/test_a.py", "tests/test_b.py"}


def test_a_file_that_can_be_collected_again_is_no_failure_any_more(tmp_path):
    state = State(tmp_path, RUN)
    state.note("tests", test="tests/test_a.py", outcome="failed", seconds=0, is_late=False, error="no module")
    assert state.part("tests").failures()
    state.note("tests", file="tests/test_a.py")
    assert not state.part("tests").failures()


def test_a_green_campaign_is_remembered_by_later_ones_until_the_next_green_one(tmp_path):
    state = State(tmp_path, RUN)
    state.note("tests", test="a.py::b", outcome="passed", seconds=1, is_late=False, error=None)
    part = state.part("tests")
    begun = summary_of(RUN, "2026-11-29", {"tests": part}, {})
    assert begun["green"] is None
    part.is_complete = True
    green = summary_of(RUN, "2026-11-29", {"tests": part}, begun)
    assert green["green"] == {"commit": RUN.commit, "date": "2026-11-29"}
    part.is_complete = False
    later = summary_of(Run("0b" * 20, "usual", "0b0b"), "2026-11-30", {"tests": part}, green)
    assert later["green"] == green["green"]
    part.is_complete = True
    changed = summary_of(
        Run(f"{'0c' * 20} with changes", "usual", "0c"), "2026-12-01", {"tests": part}, later
    )
    assert changed["green"] == green["green"]


def test_the_summary_names_parts_failures_and_what_is_left(tmp_path):
    state = State(tmp_path, RUN)
    said = {"seconds": 1.5, "is_late": False}
    state.note("tests", test="a.py::b", outcome="failed", error="wrong", **said)
    state.note("tests", test="a.py::c", outcome="failed", error="late", **said | {"is_late": True})
    state.note("tests", test="a.py::c", outcome="passed", error=None, **said)
    state.note("tests", part_seconds=3.0, complete=True)
    state.note("twin", part_seconds=2.0, complete=False)
    summary = summary_of(
        RUN, "2026-11-29", {name: state.part(name) for name in ("tests", "twin", "perf")}, {}
    )
    assert summary["commit"] == RUN.commit
    assert not summary["complete"]
    counts = {"passed": 1, "failed": 1, "skipped": 0, "seconds": 3}
    assert summary["parts"]["tests"] == {"complete": True, **counts}
    assert [name for name, part in summary["parts"].items() if not part["complete"]] == ["twin", "perf"]
    assert [(one["part"], one["test"]) for one in summary["failures"]] == [("tests", "a.py::b")]
    assert [(one["test"], one["error"]) for one in summary["flaky"]] == [("a.py::c", "late")]


def test_a_test_that_was_wrong_and_passes_the_next_time_leaves_a_campaign_red(tmp_path):
    state = State(tmp_path, RUN)
    said = {"seconds": 1.5, "is_late": False}
    state.note("tests", test="a.py::b", outcome="failed", error="a lost message", **said)
    state.note("tests", test="a.py::b", outcome="passed", error=None, **said)
    state.note("tests", part_seconds=3.0, complete=True)
    summary = summary_of(RUN, "2026-11-29", {"tests": state.part("tests")}, {})
    assert summary["green"] is None
    assert [one["error"] for one in summary["failures"]] == ["a lost message"]


def test_a_part_that_ran_no_test_leaves_a_campaign_red(tmp_path):
    state = State(tmp_path, RUN)
    state.note("tests", part_seconds=3.0, complete=True)
    summary = summary_of(RUN, "2026-11-29", {"tests": state.part("tests")}, {})
    assert summary["green"] is None
    assert [one["error"] for one in summary["failures"]] == ["it ran no test"]


def test_results_of_another_campaign_do_not_stay(tmp_path):
    State(tmp_path, RUN)
    (tmp_path / "damage").mkdir()
    (tmp_path / "damage" / "000-1.json").write_text("[]")
    State(tmp_path, RUN)
    assert (tmp_path / "damage" / "000-1.json").exists()
    State(tmp_path, Run("0b" * 20, RUN.size, RUN.seed))
    assert not (tmp_path / "damage").exists()


@pytest.mark.parametrize("head", [b"", b'{"commit": "0a', b"[]", b"\xff"])
def test_a_head_that_a_kill_left_half_written_begins_a_new_campaign(head, tmp_path):
    State(tmp_path, RUN).note("tests", file="tests/test_a.py")
    (tmp_path / "campaign.json").write_bytes(head)
    state = State(tmp_path, RUN)
    assert not state.is_continued
    assert state.part("tests").done == set()


def test_parts_are_listed_and_an_unknown_one_is_refused():
    words: list[str | Path] = [sys.executable, ROOT / "tools" / "campaign"]
    listed = subprocess.run([*words, "--list"], capture_output=True, text=True, check=True)
    assert {"tests", "twin", "interop", "sanitize"} < set(listed.stdout.split())
    refused = subprocess.run([*words, "--part", "none"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "no such part: none; there are tests, interop" in refused.stderr) == (2, True)


def changed_tests(*words, root=ROOT):
    ran = subprocess.run(
        [sys.executable, root / "tools" / "changed-tests", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout.split(), ran.stderr


def test_quick_tests_are_those_of_the_room_and_the_quick_ones_above():
    clock = "tests/test_clock.py"
    units = ["tests/storage/format", "tests/storage/reads/test_get.py", "tests/client", clock]
    wanted = {
        "doctor": {"tests/doctor", "tests/damage", clock},
        "storage/reads": {"tests/storage/reads", "tests/storage/format", "tests/client", clock},
        "client": {"tests/client", clock},
        "clock": set(units),
    }
    with every_row() as row:
        for room, paths in wanted.items():
            with row(room):
                code, printed, _ = changed_tests("--room", room, "--units", *units)
                assert (code, set(printed)) == (0, paths)


def test_a_room_that_there_is_not_and_a_commit_that_there_is_not_are_refused():
    with every_row() as row:
        for room in ("nowhere", "", "/", ".", "..", "../tests", "storage/../doctor"):
            with row(room):
                code, _, said = changed_tests("--room", room)
                assert (code, f"there is no room {room};" in said) == (2, True)
        for commit in ("no-such-commit", "", "0" * 40):
            with row(commit):
                code, printed, said = changed_tests("--since", commit)
                assert (code, printed, "git diff" in said) == (1, [], True)


@pytest.fixture
def repository(tmp_path):
    """Returns a small one with our tools, whose first commit has all."""
    root = tmp_path / "repository"
    for name in ("tools/changed-tests", "tools/changed-setup", "rooms.toml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name in ("seglog/clock.py", "tests/test_clock.py", "tests/support/a.py", "tests/interop/test_b.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\n")
    git(root, "init", "-q")
    commit_all(root)
    return root


def git(root, *words):
    named = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(named, cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def commit_all(root):
    git(root, "add", ".")
    git(root, "commit", "-qm", "all of it")
    return git(root, "rev-parse", "HEAD")


def commit_all_again(root):
    (root / "more").touch()
    return commit_all(root)


def changed_setup(root):
    ran = subprocess.run([root / "tools" / "changed-setup"], capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_all_has_changed_where_git_does_not_know_what_to_compare_with(repository):
    (repository / "seglog" / "clock.py").rename(repository / "seglog" / "text.py")
    with every_row() as row:
        for summary in (None, {"commit": "0a" * 20, "complete": True, "failures": []}):
            with row(summary):
                if summary:
                    (repository / "tests" / "campaign.json").write_text(json.dumps(summary))
                code, printed, said = changed_tests("--units", "tests/doctor", root=repository)
                assert (code, "all files count as changed" in said) == (0, True), said
                assert printed == ["tests/test_clock.py", "tests/doctor"], "what changed, then quick ones"
    commit_all(repository)
    code, printed, said = changed_tests("--since", "HEAD~1", root=repository)
    assert (code, printed) == (0, ["tests/test_clock.py"]), "a room that was renamed has changed"
    assert said.startswith("changed-tests: runs tests/test_clock.py"), said


def test_green_is_what_a_campaign_names_so_or_a_whole_one_of_a_commit(repository):
    commit, other = commit_all_again(repository), "0b" * 20
    whole = {"commit": commit, "complete": True, "failures": []}
    green = [whole, {"commit": other, "complete": False, "green": {"commit": commit, "date": "2026-11-29"}}]
    others = [
        *([], {}, None, "text", {"green": []}, {"green": {}}),
        *({**whole, "commit": wrong} for wrong in ("", None, commit[:12], "HEAD", f"{commit} with changes")),
        *({**whole, "complete": False}, {**whole, "failures": [{"test": "a"}]}),
        {**whole, "green": {"commit": f"{commit} with changes"}},
    ]
    with every_row() as row:
        for summary in (*green, *others):
            with row(summary):
                (repository / "tests" / "campaign.json").write_text(json.dumps(summary))
                code, printed, said = changed_tests("--green", root=repository)
                assert (code, printed, said) == (0, [commit] if summary in green else [], "")
                if summary in (*green, others[-1]):
                    assert (changed_setup(repository) == []) == (summary in green)


def test_a_new_file_of_the_tools_changes_the_setup(repository):
    summary = {"green": {"commit": git(repository, "rev-parse", "HEAD"), "date": "2026-11-29"}}
    (repository / "tests" / "campaign.json").write_text(json.dumps(summary))
    assert changed_setup(repository) == []
    (repository / "tools" / "new").touch()
    assert changed_setup(repository) == ["tools/new"]


def test_what_tests_share_changes_the_quick_ones_and_interop_is_left_out(repository):
    units = ["tests/doctor", "tests/test_clock.py"]
    commit_all_again(repository)
    (repository / "tests" / "interop" / "test_b.py").write_text("changed")
    (repository / "tests" / "interop" / "conftest.py").touch()
    code, printed, said = changed_tests("--units", *units, root=repository)
    assert (code, printed, "left out, `make interop`" in said) == (0, [], True)
    (repository / "tests" / "support" / "a.py").write_text("changed")
    code, printed, said = changed_tests("--units", *units, root=repository)
    assert (code, printed, "only what tests share" in said) == (0, units, True)
    (repository / "tests" / "test_clock.py").write_text("changed")
    code, printed, said = changed_tests("--units", *units, root=repository)
    assert (code, printed, "only what tests share" in said) == (0, ["tests/test_clock.py"], False)


class Clone:
    """A clone whose campaigns are tried.

    Args:
        root: Where it is.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, root], check=True)

    def run(self, *words: str, **variables: str) -> tuple[int, str, str]:
        """Runs a campaign; returns exit code, output and errors."""
        ran = subprocess.run(
            [sys.executable, self.root / "tools" / "campaign", *words],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=patience_s(60),
            check=False,
        )
        return ran.returncode, ran.stdout, ran.stderr

    def summary(self) -> dict[str, Any]:
        """Returns what is to be committed."""
        said: dict[str, Any] = json.loads((self.root / "tests" / "campaign.json").read_text())
        return said


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return Clone(tmp_path_factory.mktemp("campaign") / "clone")


def test_a_campaign_runs_no_part_after_its_time_and_writes_that_it_is_left(clone):
    code, said, errors = clone.run("--minutes", "0")
    assert code == 3, errors
    assert "left to run: tests, interop, twin" in said
    assert not clone.summary()["complete"]


def test_a_part_that_did_not_run_its_tests_is_red(clone):
    """Such as kernels that cannot be compiled."""
    code, said, _ = clone.run("--part", "sanitize", CC="/bin/false")
    assert code == 1, said
    found = clone.summary()
    assert not found["parts"]["sanitize"]["complete"]
    assert [one["test"] for one in found["failures"]] == ["pytest of sanitize"]


def test_two_campaigns_of_a_checkout_do_not_run_at_once(clone):
    with (clone.root / "build" / "campaign.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, errors = clone.run("--minutes", "0")
    assert (code, "another campaign of this checkout runs" in errors) == (2, True)


def test_what_is_no_time_and_no_test_is_refused(clone):
    with every_row() as row:
        for words in (("--minutes", "nan"), ("--minutes", "-1"), ("--jobs", "0"), ("--twin", "")):
            with row(words):
                assert clone.run(*words)[0] == 2


def test_changed_files_are_another_campaign(clone):
    state = clone.root / "build" / "campaign-state" / "campaign.json"
    commits = []
    for text in ("one", "two"):
        (clone.root / "new.txt").write_text(text)
        assert clone.run("--minutes", "0")[0] == 3
        commits.append(json.loads(state.read_text())["commit"])
    (clone.root / "new.txt").unlink()
    assert len(set(commits)) == 2
    assert all(" with changes " in commit for commit in commits)

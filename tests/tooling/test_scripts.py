"""The scripts behind make: what they find, what they say when it is missing, what CI reads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machine.memory_folder import IN_MEMORY, in_memory
from tests.support.machine.order import LONG_TESTS, place_in_order
from tests.support.machine.patience import patience_s

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
JUNIT = '<testsuites><testsuite name="pytest">{}</testsuite></testsuites>'


def run(arguments, *, path=None, cwd=ROOT, **variables):
    """Runs a script with standard input closed, on a PATH of its own when one is given."""
    environment = {"PATH": path or os.environ["PATH"], "HOME": str(cwd), **variables}
    return subprocess.run(
        list(map(str, arguments)),
        check=False,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience_s(60),
    )


def make_program(path, text):
    """Writes an executable shell script to ``path`` and returns it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return path


def make_java(home, version, *, compiler=False):
    """Makes a home with a java that says it is of ``version``."""
    make_program(home / "bin" / "java", f'echo "    java.specification.version = {version}" >&2')
    if compiler:
        make_program(home / "bin" / "javac", "")
    return home


@pytest.mark.parametrize("version", ["17", "21", "25.0.1"])
def test_java_home_wins_when_new_enough(version, tmp_path):
    home = make_java(tmp_path / "jdk", version)
    done = run([TOOLS / "ensure-java", "--check"], JAVA_HOME=str(home))
    assert (done.returncode, done.stdout) == (0, f"{home}\n")


@pytest.mark.parametrize("version", ["1.8", "11", "16", "no number"])
def test_old_java_home_is_passed_over(version, tmp_path):
    home = make_java(tmp_path / "jdk", version)
    done = run([TOOLS / "ensure-java", "--check"], JAVA_HOME=str(home))
    assert str(home) not in done.stdout
    assert done.returncode == (0 if done.stdout else 1)


def test_jdk_needs_a_compiler(tmp_path):
    runtime, development = make_java(tmp_path / "jre", "17"), make_java(tmp_path / "jdk", "17", compiler=True)
    assert str(runtime) not in run([TOOLS / "ensure-java", "--check", "--jdk"], JAVA_HOME=str(runtime)).stdout
    done = run([TOOLS / "ensure-java", "--check", "--jdk"], JAVA_HOME=str(development))
    assert done.stdout == f"{development}\n"


def test_java_on_path_is_followed_to_its_home(tmp_path):
    home = make_java(tmp_path / "jdk-17", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    done = run([TOOLS / "ensure-java", "--check"], path=f"{tmp_path}/bin:/usr/bin:/bin")
    assert done.stdout == f"{home}\n"


def test_unknown_argument_is_a_usage_error():
    done = run([TOOLS / "ensure-java", "--force"])
    assert (done.returncode, done.stderr) == (2, "usage: tools/ensure-java [--jdk] [--check]\n")


def test_old_python_is_named_with_what_to_do(tmp_path):
    old = make_program(tmp_path / "python3", '[ "$1" = -V ] && echo Python 3.9.2 || exit 1')
    done = run([TOOLS / "make-venv", tmp_path / "venv"], PYTHON=str(old))
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; here is Python 3.9.2" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_python_without_venv_is_told_the_package(tmp_path):
    bare = make_program(tmp_path / "python3.12", '[[ "$2" != *ensurepip* ]]')
    done = run([TOOLS / "make-venv", tmp_path / "venv"], PYTHON=str(bare))
    assert done.returncode == 1
    assert "apt-get install -y python3.12-venv" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_make_lists_every_target():
    listed = run(["make"]).stdout
    for target in (
        "setup",
        "demo",
        "unit",
        "test",
        "fresh",
        "lint",
        "types",
        "interop",
        "perf",
        "docs",
        "build",
        "ci",
    ):
        assert f"  make {target} " in listed


def test_dry_run_runs_nothing():
    done = run(["make", "--dry-run", "demo"])
    assert done.returncode == 0
    assert ".venv/bin/seglog demo" in done.stdout.splitlines()[-1]


def summarize(folder, **files):
    """Writes JUnit files and returns the last line and the exit code of ci-summary."""
    for stem, cases in files.items():
        (folder / f"{stem}.xml").write_text(JUNIT.format(cases))
    done = run([sys.executable, TOOLS / "ci-summary", folder])
    return done.stdout.splitlines()[-1], done.returncode


def test_summary_adds_up_all_runs(tmp_path):
    passed = '<testcase classname="a" name="b"/><testcase classname="a" name="c"/>'
    skipped = '<testcase classname="a" name="b"><skipped/></testcase><testcase classname="a" name="c"/>'
    assert summarize(tmp_path, tests=passed, interop=skipped) == ("3 passed, 0 failed, 1 skipped", 0)


@pytest.mark.parametrize("kind", ["failure", "error"])
def test_summary_fails_with_one_failure(kind, tmp_path):
    cases = f'<testcase classname="a" name="b"><{kind}/></testcase><testcase classname="a" name="c"/>'
    assert summarize(tmp_path, tests=cases) == ("1 passed, 1 failed", 1)


def test_summary_counts_a_test_that_fails_twice_once(tmp_path):
    cases = (
        '<testcase classname="a" name="b"><failure/></testcase>'
        '<testcase classname="a" name="b"><error/></testcase>'
        '<testcase classname="a" name="c"/><testcase classname="a" name="c"><error/></testcase>'
    )
    assert summarize(tmp_path, tests=cases) == ("0 passed, 2 failed", 1)


def test_summary_of_no_test_is_no_success(tmp_path):
    assert summarize(tmp_path) == ("0 passed, 0 failed", 1)


def test_summary_counts_a_torn_file_as_a_failure(tmp_path):
    (tmp_path / "tests.xml").write_text("<testsuites><testsuite>")
    assert summarize(tmp_path) == ("0 passed, 1 failed", 1)


SKIPS = (
    '<testcase classname="a" name="b"/>'
    '<testcase classname="a" name="c"><skipped type="pytest.skip" message="no loop device: busy"/></testcase>'
    '<testcase classname="a" name="d"><skipped type="pytest.skip" message="no Chromium"/></testcase>'
)


def judge_skips(folder, allowed):
    (folder / "tests.xml").write_text(JUNIT.format(SKIPS))
    (folder / "allowed").write_text(allowed)
    return run([sys.executable, TOOLS / "ci-summary", folder, folder / "allowed"])


def test_summary_fails_with_a_skip_that_is_not_on_the_list(tmp_path):
    done = judge_skips(tmp_path, "# why\n* | no loop device: .* | a container may have none\n")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "tests: 1 passed, 0 failed, 2 skipped",
        f"tests: 1 skipped, which {tmp_path}/allowed does not allow: no Chromium",
        "1 passed, 0 failed, 2 skipped",
    ]


@pytest.mark.parametrize(
    ("line", "exit_code"), [("tests | no Chromium | x", 0), ("twin | no Chromium | x", 1)]
)
def test_a_skip_is_allowed_in_a_run_and_for_a_whole_reason(tmp_path, line, exit_code):
    assert judge_skips(tmp_path, f"* | no loop device: .* | x\n{line}\n").returncode == exit_code
    assert judge_skips(tmp_path, f"* | no loop | x\n{line}\n").returncode == 1


def test_a_list_without_reasons_is_refused(tmp_path):
    assert "not a run, a pattern and why" in judge_skips(tmp_path, "* | no Chromium |\n").stderr


def test_what_set_up_installs_may_not_skip_in_ci(tmp_path):
    """The reasons of tests that miss what tools/ensure-test-tools and tools/ensure-java install."""
    reasons = (
        "no C compiler",
        "the native kernels were not built (make kernels)",
        "no Chromium is installed (Debian: apt-get install chromium)",
        "there is no mkfs.xfs",
        "Spark needs Java 17 or newer: JAVA_HOME is not set and there is no java on PATH",
        "the Python package pyspark is not installed",
    )
    cases = "".join(
        f'<testcase classname="a" name="c{number}"><skipped message="{reason}"/></testcase>'
        for number, reason in enumerate(reasons)
    )
    for run_name in ("tests", "twin", "sanitize", "interop"):
        (tmp_path / f"{run_name}.xml").write_text(JUNIT.format(f'<testcase classname="a" name="b"/>{cases}'))
        done = run([sys.executable, TOOLS / "ci-summary", tmp_path, ROOT / ".ci" / "allowed-skips"])
        refused = re.findall(r"1 skipped, which \S+ does not allow: (.*)", done.stdout)
        assert (done.returncode, sorted(refused)) == (1, sorted(reasons))
        (tmp_path / f"{run_name}.xml").unlink()


def stand_ins(folder, *programs):
    """Returns a PATH with some commands of this machine, and empty ones of the names given."""
    for name in ("bash", "env", "id", "cat"):
        (folder / "bin" / name).parent.mkdir(exist_ok=True)
        (folder / "bin" / name).symlink_to(f"/usr/bin/{name}")
    for name in programs:
        make_program(folder / "bin" / name, "")
    return folder / "bin"


def test_nothing_is_installed_where_all_is_there(tmp_path):
    path = stand_ins(tmp_path, "cc", "chromium", "mkfs.xfs")
    done = run([TOOLS / "ensure-test-tools"], path=str(path), PYTHON=sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_packages_that_are_missing_are_named(tmp_path):
    path = stand_ins(tmp_path, "mkfs.xfs")
    done = run([TOOLS / "ensure-test-tools", "--check"], path=str(path), PYTHON=sys.executable)
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if not line.endswith("-dev")] == ["g++", "chromium"]


def test_without_root_the_run_goes_on_and_says_the_command_in_a_line(tmp_path):
    path = stand_ins(tmp_path, "cc", "mkfs.xfs", "apt-get")
    (path / "id").unlink()
    make_program(path / "id", "echo 1000")
    make_program(path / "sudo", "exit 1")
    done = run([TOOLS / "ensure-test-tools"], path=str(path), PYTHON=sys.executable)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert "apt-get install -y --no-install-recommends" in line
    assert line.endswith("chromium")


def test_a_package_that_cannot_be_had_fails_nothing(tmp_path):
    path = stand_ins(tmp_path, "cc", "mkfs.xfs")
    make_program(path / "apt-get", "exit 100")
    done = run([TOOLS / "ensure-test-tools"], path=str(path), PYTHON=sys.executable)
    if os.geteuid() == 0:
        assert "could not install chromium" in done.stderr
    assert done.returncode == 0


def test_a_setting_that_try_fresh_does_not_know_is_a_usage_error():
    done = run([TOOLS / "try-fresh", "windows"])
    assert done.returncode == 2
    assert "read-only-home" in done.stderr


def test_every_test_that_the_makefile_names_is_there():
    named = run(["make", "-n", "unit", "twin", "sanitize", "campaign"]).stdout
    paths = {word for word in named.replace("'", " ").split() if word.startswith("tests/")}
    assert len(paths) > 30
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_every_file_that_rocketmq_judges_is_among_those_of_make_interop():
    words = run(["make", "-n", "interop"]).stdout.split()
    named = [ROOT / word for word in words if word.startswith("tests/")]
    mark = "pytest.mark." + "interop"  # in two parts: this file has none
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if mark in path.read_text()]
    assert marked
    assert [path for path in marked if not any(path.is_relative_to(one) for one in named)] == []


def test_only_make_test_has_files_of_tests_in_memory():
    asked = {
        target: "--in-memory" in run(["make", "-n", target]).stdout
        for target in ("test", "twin", "sanitize", "interop")
    }
    assert asked == {"test": True, "twin": False, "sanitize": False, "interop": False}


def test_folders_whose_tests_are_in_memory_are_there():
    assert [name for name in IN_MEMORY if not (ROOT / name).is_dir()] == []
    assert in_memory("tests/tooling/test_scripts.py::test_a") is None


def test_pythons_that_make_starts_keep_what_they_compile():
    shown = ["make", "--eval", 'shown: ; @echo "[$$PYTHONDONTWRITEBYTECODE]"', "shown"]
    assert run(shown, PYTHONDONTWRITEBYTECODE="1").stdout == "[]\n"


def test_long_tests_that_begin_first_are_there():
    assert [name for name in LONG_TESTS if not (ROOT / name).exists()] == []
    ordered = sorted(
        ["tests/cli/a.py::b", "tests/perf/c.py::d", "tests/spark/test_views.py::f"], key=place_in_order
    )
    assert ordered == ["tests/spark/test_views.py::f", "tests/perf/c.py::d", "tests/cli/a.py::b"]

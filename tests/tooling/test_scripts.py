"""The scripts behind make: what they find, what they say when it is missing, what CI reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
        timeout=60,
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
    for target in ("setup", "demo", "test", "lint", "types", "interop", "perf", "docs", "build", "ci"):
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

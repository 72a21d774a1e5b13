"""A missing or old Java is said in a sentence, with what to install."""

from __future__ import annotations

import gc
import sys
from importlib import metadata
from pathlib import Path

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

from seglog.errors import MissingDependencyError
from seglog.spark import session
from seglog.spark.java import is_java_home_usable, java_help, java_problem
from seglog.spark.java_end import end_text, printed_text
from seglog.spark.session import local_session, pyspark_problem
from tests.support.machine.java_classes import FOLDER, quick_java
from tests.support.narrow import not_none


@pytest.fixture
def fake_java(tmp_path, monkeypatch):
    """Makes Java homes that only tell a version; nothing of this machine's own Java is seen."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))

    def make(name, version):
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        java = home / "bin" / "java"
        java.write_text(f"#!/bin/sh\necho '    java.specification.version = {version}' >&2\n")
        java.chmod(0o755)
        return home

    return make


@pytest.mark.spark
def test_javas_of_tests_take_their_classes_from_an_archive(spark: SparkSession):
    pid = not_none(spark._jvm).java.lang.ProcessHandle.current().pid()
    is_there = "-XX:SharedArchiveFile=" in quick_java()  # but where this Java can make none
    assert (f"{FOLDER}/" in Path(f"/proc/{pid}/maps").read_text()) == is_there


def test_no_java_anywhere(fake_java):
    assert java_problem() == "Spark needs Java 17 or newer: JAVA_HOME is not set and there is no java on PATH"
    assert not is_java_home_usable()
    assert "JAVA_HOME" in java_help()


@pytest.mark.parametrize(
    ("version", "is_enough"), [("17", True), ("25", True), ("11", False), ("1.8", False)]
)
def test_version_of_java_decides(fake_java, monkeypatch, version, is_enough):
    monkeypatch.setenv("JAVA_HOME", str(fake_java("jdk", version)))
    assert (java_problem() is None) is is_enough
    assert is_java_home_usable() is is_enough


def test_java_on_the_path_helps_where_java_home_is_too_old(fake_java, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java("old", "11")))
    monkeypatch.setenv("PATH", str(fake_java("new", "21") / "bin"))
    assert java_problem() is None
    assert not is_java_home_usable()


def test_every_java_that_was_looked_at_is_named(fake_java, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java("old", "1.8")))
    broken = fake_java("broken", "17")
    (broken / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(broken / "bin"))
    problem = java_problem()
    assert "old/bin/java, Java 8; java on PATH is" in not_none(problem)
    assert not_none(problem).endswith("broken/bin/java, which does not run")


def test_java_home_without_java_is_said(fake_java, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert not_none(java_problem()).endswith(f"JAVA_HOME is {tmp_path}/bin/java, which does not run")


def test_help_names_the_command_of_the_system(fake_java, tmp_path):
    (tmp_path / "empty" / "dnf").write_text("")
    (tmp_path / "empty" / "dnf").chmod(0o755)
    assert "sudo dnf install java-21-openjdk-headless" in java_help()


def test_session_without_java_is_a_missing_dependency(fake_java):
    with pytest.raises(MissingDependencyError, match="Spark needs Java 17") as caught:
        local_session("never")
    assert "JAVA_HOME" in caught.value.help


@pytest.mark.parametrize(
    ("versions", "problem"),
    [
        ({"pyspark": "4.1.0", "pandas": "2.2.3", "pyarrow": "17.0.0"}, None),
        ({"pandas": "2.2.3", "pyarrow": "17.0.0"}, "the Python package pyspark is not installed"),
        (
            {"pyspark": "3.5.1", "pandas": "2.2.3", "pyarrow": "17.0.0"},
            "the Python package pyspark is 3.5.1, but has to be at least 4.1 and below 5",
        ),
        (
            {"pyspark": "4.1.0", "pandas": "3.0.0", "pyarrow": "17.0.0"},
            "the Python package pandas is 3.0.0, but has to be at least 2.2 and below 3",
        ),
        (
            {"pyspark": "4.1.0", "pandas": "2.3.0", "pyarrow": "16.1.0"},
            "the Python package pyarrow is 16.1.0, but has to be at least 17",
        ),
    ],
)
def test_packages_that_are_missing_or_do_not_fit(monkeypatch, versions, problem):
    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    if "pyspark" not in versions:
        monkeypatch.delitem(sys.modules, "pyspark")
    assert pyspark_problem() == problem
    if problem is not None:
        with pytest.raises(MissingDependencyError) as caught:
            local_session("never")
        assert caught.value.help.endswith("install PySpark with `pip install 'seglog[spark]'`")


def test_the_pyspark_of_an_unpacked_spark_is_no_installed_package(monkeypatch):
    known = metadata.version

    def version(name):
        if name == "pyspark":
            raise metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(metadata, "version", version)
    assert pyspark_problem() is None


def test_what_java_printed_is_without_the_warnings_of_a_good_start():
    lines = ["WARNING: Using incubator modules", "Picked up JAVA_TOOL_OPTIONS: -Xmx1g", "", " no room"]
    assert printed_text(lines) == "no room"
    assert printed_text(lines[:2]) == "it printed nothing"
    assert [end_text(code) for code in (3, -9, 137)] == [
        "it ended with exit code 3",
        "it was killed by SIGKILL",
        "it ended with exit code 137 (SIGKILL)",
    ]


# PySpark leaves the pipe to a Java that did not start to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_java_that_does_not_start_tells_what_it_printed(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'no room for a heap' >&2\nexit 1\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    said = "Java did not start for Spark: no room for a heap.*; it ended with exit code 1"
    with pytest.raises(MissingDependencyError, match=said):
        session.start_java(SparkConf())
    gc.collect()


KILLED_JAVA = r"""#!/bin/sh
case "$*" in
*-version*) echo 'java.specification.version = 17' >&2; exit 0 ;;
*launcher.Main*) printf '\0\n%s\0-of-the-launcher\0' "$0"; exit 0 ;;
esac
echo 'WARNING: Using incubator modules' >&2
kill -9 $$
"""
"""Answers as Java does until Spark itself is started in it."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_java_that_is_killed_at_start_is_not_called_missing(fake_java, monkeypatch):
    home = fake_java("jdk", "17")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(home))
    (home / "bin" / "java").write_text(KILLED_JAVA)
    with pytest.raises(MissingDependencyError) as caught:
        session.start_java(SparkConf())
    said, advice = str(caught.value), caught.value.help
    del caught  # its frames hold the pipe
    gc.collect()
    assert said == "Java did not start for Spark: it printed nothing; it was killed by SIGKILL"
    assert "install" not in advice

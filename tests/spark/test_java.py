"""A missing or old Java is said in a sentence, with what to install."""

from __future__ import annotations

import gc
import sys
from importlib import metadata

import pytest
from pyspark import SparkConf

from seglog.errors import MissingDependencyError
from seglog.spark import session
from seglog.spark.java import is_java_home_usable, java_help, java_problem
from seglog.spark.session import local_session, pyspark_problem
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


# PySpark leaves the pipe to a Java that did not start to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_java_that_does_not_start_tells_what_it_printed(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'no room for a heap' >&2\nexit 1\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="Java did not start for Spark: no room for a heap"):
        session.start_java(SparkConf())
    gc.collect()

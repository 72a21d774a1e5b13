"""Every session of a Python that has seglog knows the format, without a word about it."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from seglog.errors import MissingDependencyError
from seglog.spark.source.data_source import SeglogDataSource
from tests.support.machine.patience import patience_s
from tests.support.machine.spark_here import need_spark
from tests.support.material.golden import extract

CLONE = Path(__file__).parents[2]
SCRIPT = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.getOrCreate()
print("rows", session.read.format("seglog").load(sys.argv[1]).count())
"""


@pytest.fixture
def installed(tmp_path):
    """A folder with the packages that the wheel has, and nothing else of the clone."""
    folder = tmp_path / "site"
    folder.mkdir()
    project = tomllib.loads((CLONE / "pyproject.toml").read_text())
    for pattern in project["tool"]["setuptools"]["packages"]["find"]["include"]:
        if "*" not in pattern:
            (folder / pattern).symlink_to(CLONE / pattern)
    return folder


def test_the_wheel_has_a_package_that_spark_looks_for(installed):
    named = [info.name for info in pkgutil.iter_modules([str(installed)]) if info.name.startswith("pyspark_")]
    assert named == ["pyspark_seglog"]
    module = __import__("pyspark_seglog")
    assert module.DefaultSource is SeglogDataSource


def test_a_spark_that_is_too_old_is_said_wherever_it_finds_the_format(monkeypatch):
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "4.0.1" if name == "pyspark" else real(name))
    with pytest.raises(MissingDependencyError, match=r"pyspark is 4\.0\.1, but has to be at least 4\.1"):
        SeglogDataSource({"path": "/store"})


@pytest.mark.spark
def test_a_session_that_was_told_nothing_knows_the_format(spark: SparkSession, tmp_path):
    # A new session has what Spark found at its start, not what was registered with another session.
    frame = spark.newSession().read.format("seglog").load(str(extract("roll", tmp_path)))
    assert frame.count() == 400


@pytest.mark.spark
@pytest.mark.campaign
def test_a_plain_session_of_spark_submit_reads_stores(installed, tmp_path):
    need_spark()
    (tmp_path / "job.py").write_text(SCRIPT)
    submit = Path(pyspark.__path__[0]) / "bin" / "spark-submit"
    loopback = [f"--conf=spark.driver.{name}=127.0.0.1" for name in ("bindAddress", "host")]
    ran = subprocess.run(
        [
            str(submit),
            "--master=local[1]",
            "--conf=spark.ui.enabled=false",
            "--driver-java-options=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            *loopback,
            str(tmp_path / "job.py"),
            str(extract("roll", tmp_path)),
        ],
        env={**os.environ, "PYTHONPATH": str(installed), "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=patience_s(150),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "rows 400"

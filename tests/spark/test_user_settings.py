"""What the user said of Spark and Java counts, wherever it was said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from seglog.spark.user_settings import default_settings, java_options
from tests.support.machine.patience import patience_s
from tests.support.machine.spark_here import need_spark

SCRIPT = """
from seglog.spark.session import local_session
local_session("kept", conf={"spark.driver.extraJavaOptions": "-Dfrom.conf=3 -XX:+UseParallelGC"})
"""
JAVA = """#!/bin/sh
case "$*" in
    *launcher.Main* | *-version*) exec {real} "$@" ;;
esac
printf '%s\\n' "$@" > {said}
exit 1
"""


def test_settings_are_read_as_spark_reads_them(tmp_path):
    (tmp_path / "conf").mkdir()
    text = "# a comment\n\nspark.a  one two \nspark.b=three\n  spark.c : four\nspark.d\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(text)
    found = {"spark.a": "one two", "spark.b": "three", "spark.c": "four"}
    assert default_settings({}, tmp_path) == found
    assert default_settings({"SPARK_HOME": str(tmp_path)}, tmp_path / "other") == found
    assert default_settings({"SPARK_CONF_DIR": str(tmp_path / "conf")}, tmp_path / "other") == found
    assert default_settings({}, tmp_path / "other") == {}


def test_our_collector_stays_out_where_another_is_named():
    assert java_options(["-Dx=y"], is_brief=False) == ["-XX:+UseSerialGC"]
    assert java_options(["-XX:+UseZGC -Dx=y"], is_brief=True) == ["-XX:TieredStopAtLevel=1"]


@pytest.mark.spark
def test_java_is_started_with_what_the_user_said(tmp_path):
    need_spark()
    said = tmp_path / "said"
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    home = os.environ.get("JAVA_HOME")
    real = f"{home}/bin/java" if home else shutil.which("java")
    java.write_text(JAVA.format(real=real, said=said))
    java.chmod(0o755)
    defaults = (
        "spark.driver.defaultJavaOptions -Dfrom.defaults=1\nspark.driver.memory 700m\nspark.ui.enabled true\n"
    )
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    environment = {
        "JAVA_HOME": str(tmp_path / "home"),
        "SPARK_CONF_DIR": str(tmp_path),
        "SPARK_SUBMIT_OPTS": "-Dfrom.submit=2",
    }
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=patience_s(60),
        check=False,
    )
    assert "Java did not start for Spark" in ran.stderr
    words = said.read_text().splitlines()
    assert {"-Dfrom.defaults=1", "-Dfrom.submit=2", "-Dfrom.conf=3", "-Xmx700m", "-XX:+UseParallelGC"} <= {
        *words
    }
    assert not [word for word in words if "TieredStopAtLevel" in word or "SerialGC" in word]
    ours = [at for at, word in enumerate(words) if word.startswith("-Dlog4j2.configurationFile=")]
    assert ours < [words.index("-Dfrom.submit=2")] < [words.index("-Dfrom.conf=3")]
    assert not [word for word in words if word.startswith("spark.ui.enabled=")]

"""The programs of ``examples/`` run as they are, in an empty folder, and all but Spark's once more in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machine.patience import patience_s
from tests.support.machine.spark_here import need_spark

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))
OF_SPARK = [pytest.param(name, marks=pytest.mark.spark if "spark" in name else ()) for name in PROGRAMS]
LONGEST_LINES = 50


def command_of(program: str) -> list[str]:
    if program.startswith("test_"):
        plugin = ("-p", "seglog.pytest_plugin", "-p", "no:cacheprovider")
        return [sys.executable, "-m", "pytest", *plugin, program]
    return [sys.executable, program]


@pytest.mark.parametrize("program", OF_SPARK)
def test_an_example_runs_in_an_empty_folder_and_again(program: str, tmp_path: Path) -> None:
    if "seglog.spark" in (EXAMPLES / program).read_text():
        need_spark()
    shutil.copy(EXAMPLES / program, tmp_path)
    # An installed seglog would bring its plugin once more.
    environment = os.environ | {"HOME": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for run in ("first",) if "spark" in program else ("first", "second"):  # a start of Spark takes long
        done = subprocess.run(
            command_of(program),
            check=False,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience_s(300),
        )
        assert done.returncode == 0, f"the {run} run:\n{done.stdout}{done.stderr}"
        assert done.stdout


def test_the_page_of_the_examples_has_each_of_them() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert re.findall(r"^\| \[([a-z_]+\.py)\]", page, re.MULTILINE)
    assert sorted(re.findall(r"^\| \[([a-z_]+\.py)\]", page, re.MULTILINE)) == PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_example_is_short_and_says_what_it_shows(program: str) -> None:
    lines = (EXAMPLES / program).read_text().splitlines()
    assert lines[0].startswith('"""')
    assert 20 <= len(lines) <= LONGEST_LINES

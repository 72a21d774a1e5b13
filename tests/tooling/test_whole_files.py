"""Several processes share the tests: one that a test ends costs that test, and no other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.machine.patience import patience_s

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests.support.machine.whole_files import WholeFiles

def pytest_xdist_make_scheduler(config, log):
    return WholeFiles(config, log)
"""
ENDING = """
import os
def test_before(): pass
def test_that_ends_its_process(): os._exit(1)
def test_behind(): pass
"""
LAST = """
import os
def test_that_ends_its_process_as_the_last_of_a_file(): os._exit(1)
"""
ON_SPARK = """
import os
def test_one(request): record(request)
def test_two(request): record(request)
def record(request):
    with open("processes", "a") as file:
        file.write(f"{os.getpid()}\\n")
"""


def run_in_two_processes(folder):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=patience_s(60),
        check=False,
    )


def test_files_that_need_the_session_of_spark_are_one_process_s(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for number in range(4):
        (tmp_path / f"test_s{number}.py").write_text(f"{ON_SPARK}# spark: SparkSession\n")
        (tmp_path / f"test_c{number}.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    run = run_in_two_processes(tmp_path)
    assert "16 passed" in run.stdout, run.stdout
    processes = (tmp_path / "processes").read_text().split()
    assert (len(processes), len(set(processes))) == (8, 1)


def test_the_rest_of_a_file_runs_elsewhere_and_what_ended_a_process_is_not_run_again(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_a.py").write_text(ENDING)
    (tmp_path / "test_b.py").write_text(LAST)
    for number in range(4):
        (tmp_path / f"test_c{number}.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    run = run_in_two_processes(tmp_path)
    assert "2 failed, 10 passed" in run.stdout, run.stdout

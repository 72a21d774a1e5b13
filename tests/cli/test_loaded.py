"""A command in a process that is loaded already does what one does that Python starts."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seglog.errors import OutputError
from tests.support.command_line.loaded import CLOSED, Running, loaded
from tests.support.material import golden
from tests.support.rows import every_row


def test_output_errors_and_exit_code_are_those_of_a_process_with_a_start(
    command_line: list[str], tmp_path, monkeypatch
):
    golden.extract("tx", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    with every_row() as row:
        for words in (["info", "tx"], ["get", "tx", "nothing", "--json"], ["info", "--nosuch"]):
            with row(*words):
                started = subprocess.run([*command_line, *words], capture_output=True, check=False)
                found = loaded().run(*words)
                assert found.returncode == started.returncode
                assert (found.stdout, found.stderr) == (started.stdout, started.stderr)


def test_each_command_has_the_environment_the_folder_and_the_input_of_its_own(tmp_path):
    assert loaded().run("put", tmp_path / "s", "T", stdin=b"from a pipe").returncode == 0
    assert b"from a pipe" in loaded().run("get", tmp_path / "s", "T").stdout
    unset = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    without = loaded().run("version", "--json", environment=unset | {"PATH": ""}).stdout
    assert b'"java":null' in without
    assert loaded().run("version", stdout=CLOSED).returncode == OutputError.exit_code
    assert loaded().run("version").returncode == 0


def test_a_signal_that_ends_a_command_is_its_exit_code_and_the_next_one_runs(tmp_path):
    with running_bench(tmp_path) as running:
        os.kill(running.pid, signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL
    assert loaded().run("version").returncode == 0


def test_a_command_for_which_nobody_waits_is_killed(tmp_path):
    with pytest.raises(ZeroDivisionError), running_bench(tmp_path) as running:
        raise ZeroDivisionError
    with pytest.raises(ProcessLookupError):
        os.kill(running.pid, 0)


@contextmanager
def running_bench(folder: Path) -> Iterator[Running]:
    """Starts a command that takes minutes."""
    nothing = os.open(os.devnull, os.O_RDWR)
    with loaded().running(["bench", folder, "--seconds", 60], [nothing] * 3) as running:
        os.close(nothing)
        yield running

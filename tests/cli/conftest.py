"""Runs the command line inside of the process, or as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
from click.testing import CliRunner

from seglog.cli.main import commands
from tests.support.command_line import Ran, Seglog
from tests.support.machine.json_lines import check_lines, prints_its_kinds


@pytest.fixture(autouse=True)
def _kinds_of_lines(request: pytest.FixtureRequest) -> Iterator[None]:
    with prints_its_kinds(request.node.nodeid):
        yield


@pytest.fixture
def seglog() -> Seglog:
    """Calls a command in this process."""

    def run(*arguments: object, stdin: bytes | None = None) -> Ran:
        result = CliRunner().invoke(commands, [str(argument) for argument in arguments], input=stdin)
        check_lines(arguments, result.stdout, result.stderr)
        return Ran(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)

    return run


@pytest.fixture
def command_line() -> list[str]:
    """The words that start a process of the command line."""
    return [sys.executable, "-m", "seglog.cli.main"]


@pytest.fixture
def seglog_process(command_line: Sequence[str]) -> Seglog:
    """Calls a command in a process of its own."""

    def run(*arguments: object, stdin: bytes | None = None) -> Ran:
        done = subprocess.run(
            [*command_line, *map(str, arguments)], input=stdin or b"", capture_output=True, check=False
        )
        stdout, stderr = done.stdout.decode(), done.stderr.decode()
        check_lines(arguments, stdout, stderr)
        return Ran(done.returncode, stdout, stderr, done.stdout)

    return run

"""Runs the command line inside of the process, as a process that is loaded already, or from its start."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from seglog.cli.main import commands
from tests.support.command_line import Ran, Seglog
from tests.support.command_line.json_lines import check_lines, prints_its_kinds
from tests.support.command_line.loaded import loaded


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
    """The words that start a process of the command line, with Python's start."""
    return [sys.executable, "-m", "seglog.cli.main"]


@pytest.fixture
def seglog_process() -> Seglog:
    """Calls a command in a process of its own."""

    def run(*arguments: object, stdin: bytes | None = None) -> Ran:
        done = loaded().run(*arguments, stdin=stdin or b"")
        stdout, stderr = done.stdout.decode(), done.stderr.decode()
        check_lines(arguments, stdout, stderr)
        return Ran(done.returncode, stdout, stderr, done.stdout)

    return run

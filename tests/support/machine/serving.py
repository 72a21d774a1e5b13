"""A process that serves a store, as operators start it."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack
from typing import IO, Any

from tests.support.command_line.json_lines import check_line
from tests.support.machine.children import child
from tests.support.machine.patience import patience_s


class Serving:
    """A process of ``seglog serve``.

    Args:
        arguments: What it is told.
        port: Where it listens; 0 for one that is free.
        options: How it is started.

    Attributes:
        ready: What it says when it is ready.
        address: Where it is.
    """

    def __init__(self, arguments: list[str], port: int = 0, **options: Any) -> None:
        listens = ["--port", str(port), "--json"]
        command = [sys.executable, "-m", "seglog.cli.main", "serve", *arguments, *listens]
        options = {"stderr": subprocess.PIPE, **options}
        self._running = ExitStack()
        self.process = self._running.enter_context(
            child(command, stdout=subprocess.PIPE, text=True, **options)
        )
        line = self._out.readline()
        assert line, self.process.communicate()[1]
        self.ready: dict[str, Any] = check_line(line)
        self.address: str = self.ready["address"]

    @property
    def _out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def end(self, by: signal.Signals) -> tuple[int, list[dict[str, Any]]]:
        """Sends a signal, and returns the exit code and what was said until then."""
        self.process.send_signal(by)
        out, _ = self.process.communicate(timeout=patience_s(60))
        return self.process.returncode, [check_line(line) for line in out.splitlines()]

    def close(self) -> None:
        """Ends it however it goes."""
        self._running.close()

"""A client in a process of its own, which stays for all rounds; clocks are read around its work."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perf.clients.cpu_clock import cpu_s
from perf.clients.running import RunningBroker
from perf.clients.work import LIMIT_S, Work
from perf.figures.sample import Sample, SanityError, check
from tests.interop.judging import toolchain

LATENCIES: Final = ("p50_us", "p99_us")
"""Optional figures of single calls: the median and the 99th percentile."""
ROOT: Final = Path(__file__).resolve().parents[2]
_JAVA_MEMORY: Final = ("-XX:+UseG1GC", "-Xms512m", "-Xmx1g")


class Peer:
    """A client.

    Args:
        title: What tables call it.
        command: What runs it.
        root: Where it runs: the checkout that is measured.
    """

    def __init__(self, title: str, command: Sequence[str], root: Path = ROOT) -> None:
        self.title = title
        self._command = command
        self._root = root
        self._scratch = tempfile.TemporaryDirectory(prefix="seglog-client-")
        self._process: subprocess.Popen[str] | None = None

    def sample(self, work: Work, broker: RunningBroker | None) -> Sample:
        """Has it do a piece of work twice, and measures the second time.

        Args:
            work: The work.
            broker: What it works at; None where that is in its process.

        Raises:
            SanityError: It did something else.
        """
        process = self._started()
        pids = [process.pid] if broker is None else [process.pid, broker.pid]
        watchdog = threading.Timer(2 * LIMIT_S, process.kill)
        watchdog.start()
        try:
            line = (
                f"kind={work.kind} target={work.target} topic={work.topic} name={work.name}"
                f" messages={work.messages} senders={work.senders} body={work.body_bytes} batch={work.batch}"
            )
            self._say(process, line, "ready")
            before = 0 if broker is None else broker.stored(work.topic)
            begun = [cpu_s(pid) for pid in pids]
            self._say(process, "go", "over")
            taken = [cpu_s(pid) - before_s for pid, before_s in zip(pids, begun, strict=True)]
            found = json.loads(self._say(process, "check", None))
        finally:
            watchdog.cancel()
        check(work.messages, found["messages"], f"messages of {self.title}")
        if broker is None:
            return Sample(work.messages, found["wall_s"], taken[0])
        wanted = work.messages if work.kind.is_send else 0
        stored = broker.stored(work.topic) - before
        check(wanted, stored, f"messages that {self.title} stored at {work.target}")
        figures = {"broker_cpu_us": 1e6 * taken[1] / work.messages}
        figures |= {key: found[key] for key in LATENCIES if found.get(key)}
        return Sample(work.messages, found["wall_s"], taken[0], figures)

    def close(self) -> None:
        """Ends its process and removes its files."""
        self._end()
        self._scratch.cleanup()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            scratch = Path(self._scratch.name)
            with (scratch / "stderr").open("w") as stderr:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=self._root,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    text=True,
                    encoding="utf-8",
                    env=os.environ | {"HOME": str(scratch)},  # clients of RocketMQ write their logs there
                )
        return self._process

    def _say(self, process: subprocess.Popen[str], line: str, answer: str | None) -> str:
        """Sends a line, and returns the answer: ``answer``, or a line of JSON."""
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and what it said is reported below
            process.stdin.write(line + "\n")
            process.stdin.flush()
        for said in process.stdout:
            if said.startswith("{") if answer is None else said.rstrip() == answer:
                return said
        errors = Path(self._scratch.name, "stderr").read_text(errors="replace").strip()
        self._end()  # the next piece of work has a new one
        raise SanityError(f"{self.title} ended at {line!r}: {errors[-3000:]}")


def python_peer(title: str, client: str, root: Path = ROOT) -> Peer:
    """Returns a client that Python runs: ``in-process``, ``remote`` or ``pypi``."""
    return Peer(title, [sys.executable, "-m", "perf.clients.child", client], root)


def java_peer(title: str) -> Peer:
    """Returns RocketMQ's own client, on the JVM of a server."""
    command = toolchain.command_line(
        toolchain.build(), *_JAVA_MEMORY, "-Djudge.level=ERROR", main_class="seglog.judge.ClientBench"
    )
    return Peer(title, command)


def why_missing(module: str) -> str | None:
    """Says why a module of Python cannot be used here, None if it can.

    It is loaded in a process of its own: it has a library that may not suit this machine.
    """
    tried = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if tried.returncode == 0:
        return None
    said = tried.stderr.strip().splitlines()
    return said[-1] if said else f"importing it ended with {tried.returncode}"

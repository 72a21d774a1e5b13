"""Peers in Java, through ``perf/java``; like RocketMQ's, the JVM of one stays for all rounds of a case.

Each has one queue a directory, no keys, no properties, and no acknowledgement that several threads share.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perf.contestants.warm import warm_up
from perf.figures.sample import Sample, SanityError
from perf.plan.budget import Budget
from perf.plan.cases import FILL_BATCH, READS, Case, Workload
from perf.workloads.latency import SHARES
from tests.interop.judging import toolchain

_JAVA: Final = Path(__file__).resolve().parent.parent / "java"
_LIMIT_S: Final = 120
_WORKLOADS: Final = {
    Workload.PUT: "write",
    Workload.BATCH: "write",
    Workload.LATENCY: "write",
    Workload.SYNC: "write",
    Workload.PULL: "pull",
    Workload.RANDOM: "random",
}
_MEMORY: Final = ("-XX:+UseG1GC", "-Xms1g", "-Xmx2g")


@dataclass(frozen=True, slots=True)
class JavaLog:
    """A log in Java.

    Attributes:
        key: What results and aims call it; its project below ``perf/java``.
        title: What the report calls it.
        version: Of its library.
        main: Its class.
        has_views: Whether it hands out messages without a copy.
        options: What its JVM is started with, besides what all have.
    """

    key: str
    title: str
    version: str
    main: str
    has_views: bool
    options: tuple[str, ...] = ()

    def class_path(self) -> str:
        """Returns where its classes are; builds them the first time.

        Raises:
            toolchain.BuildError: It could not be resolved or compiled.
        """
        version = f"-D{self.key}.version={self.version}"
        name = f"{self.key}-{self.version}"
        return toolchain.build_project(_JAVA / self.key, name, version, shared=_JAVA / "shared")

    def why_missing(self) -> str | None:
        """Says why it cannot take part, None if it can; builds it the first time."""
        missing = toolchain.missing_tool()
        if missing is not None:
            return missing
        try:
            self.class_path()
        except toolchain.BuildError as error:
            return f"it could not be resolved or compiled: {str(error).splitlines()[0]}"
        return None


class JavaPeer:
    """A log in Java that takes part."""

    flushes_itself: Final = False

    def __init__(self, log: JavaLog) -> None:
        self.key = log.key
        self.title = f"{log.title} {log.version}"
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._warm = ""
        self._scratch = tempfile.TemporaryDirectory(prefix=f"seglog-{log.key}-")

    def knows(self, case: Case) -> bool:
        """One thread, one queue, and nothing but a body."""
        is_known = case.workload in _WORKLOADS and case.threads == case.queues == 1
        return is_known and (self._log.has_views or not case.is_view)

    def get_ready(self, case: Case, budget: Budget, directory: Path) -> None:
        """Starts the JVM of a case, and does its work for some seconds; a smoke test has one JVM."""
        if self._warm == case.name or budget.is_smoke:
            return
        self._end()
        warm_up(lambda made: self.sample(case, budget, made), budget, directory)
        self._warm = case.name

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Asks the JVM of this case."""
        is_timed = case.workload is Workload.LATENCY
        count = budget.latency_bytes if is_timed else budget.read_bytes
        result = self._ask(
            dir=directory,
            workload=_WORKLOADS[case.workload],
            body_bytes=case.body_bytes,
            batch_size=FILL_BATCH if case.workload in READS else case.batch_size,
            message_count=count // case.body_bytes,
            ragged=case.is_ragged,
            view=case.is_view,
            loop=case.is_loop,
            timed=is_timed,
            sync=case.workload is Workload.SYNC,
            seconds=budget.seconds,
            warm_up_seconds=budget.jvm_warm_up_seconds,
            max_bytes=budget.max_write_bytes(case.body_bytes),
        )
        figures = {key: result[key] for key in SHARES} if is_timed else {}
        return Sample(result["n"], result["seconds"], result["cpu_seconds"], figures)

    def _ask(self, **request: object) -> dict[str, Any]:
        if self._process is None:
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(_LIMIT_S, process.kill)
        watchdog.start()
        with contextlib.suppress(BrokenPipeError):  # it has ended, and what it said is reported below
            process.stdin.write(" ".join(f"{name}={java_text(it)}" for name, it in request.items()) + "\n")
            process.stdin.flush()
        try:
            for line in process.stdout:
                if line.startswith('{"n"'):
                    answer: dict[str, Any] = json.loads(line)
                    return answer
        finally:
            watchdog.cancel()
        self._end()
        said = Path(self._scratch.name, "stderr").read_text(errors="replace")[-3000:]
        raise SanityError(f"{self.title} ended without an answer to {request}:\n{said}")

    def _start(self) -> subprocess.Popen[str]:
        scratch = Path(self._scratch.name)
        places = [f"-Duser.home={scratch}", f"-Djava.io.tmpdir={scratch}"]
        java = toolchain.jdk_tool("java") or "java"
        classes = ["-cp", self._log.class_path(), self._log.main]
        with (scratch / "stderr").open("w") as stderr:
            return subprocess.Popen(
                [java, *self._log.options, *_MEMORY, *places, *classes],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
            )

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        """Ends its JVM and removes its files."""
        self._end()
        self._scratch.cleanup()


def java_text(value: object) -> str:
    """Returns a value as the other side of a peer reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# What Chronicle's own documentation asks of Java 17.
_EXPORTS: Final = (
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "jdk.unsupported/sun.misc",
    "jdk.compiler/com.sun.tools.javac.file",
)
_OPENS: Final = (
    "jdk.compiler/com.sun.tools.javac",
    *(f"java.base/java.{name}" for name in ("lang", "lang.reflect", "io", "util", "nio")),
    *(f"java.base/{name}" for name in ("sun.nio.ch", "jdk.internal.misc", "jdk.internal.ref")),
)
CHRONICLE: Final = JavaLog(
    "chronicle",
    "Chronicle",
    "2026.4",
    "seglog.perf.ChronicleLog",
    has_views=True,
    options=(
        *(f"--add-exports={name}=ALL-UNNAMED" for name in _EXPORTS),
        *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENS),
        *("-Dchronicle.analytics.disable=true", "-Dchronicle.announcer.disable=true"),
    ),
)
KAFKA: Final = JavaLog("kafka", "Kafka log", "4.1.1", "seglog.perf.KafkaLog", has_views=False)

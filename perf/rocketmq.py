"""RocketMQ's own DefaultMessageStore as a contestant, through the harness of ``tests/interop``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from perf.cases import Budget, Case, Sample, SanityError, Workload, check
from tests.interop import toolchain
from tests.interop.judge import Judge, JudgeError


class RocketMq:
    """A JVM for each sample."""

    _WORKLOADS: Final = {
        Workload.PUT: "append",
        Workload.BATCH: "batch",
        Workload.SYNC: "sync",
        Workload.VIEW: "pull32",
        Workload.PULL: "pull32",
        Workload.RANDOM: "random",
        Workload.REOPEN: "reopen",
    }
    _MAX_BATCH_BYTES: Final = 16 << 20
    """By default RocketMQ takes 4 MiB a batch, which 4096 messages of 1 KiB exceed."""
    _MIN_WARM_UP_SECONDS: Final = 2.0
    """A JVM is slow for a while; nobody keeps a broker for a second."""

    def __init__(self) -> None:
        self._judge = Judge()
        self.name = f"RocketMQ {self._judge.version}"

    def knows(self, case: Case) -> bool:
        """Everything but our survey."""
        return case.workload in self._WORKLOADS

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Runs a JVM, for a reopen one more before that."""
        try:
            return self._sample(case, budget, directory)
        except JudgeError as error:
            raise SanityError(f"RocketMQ in {case.name}: {error}") from error

    def _sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        count = budget.read_bytes // case.body_bytes
        if case.workload is Workload.REOPEN:
            count = budget.reopen_bytes // case.body_bytes
            self._judge.bench(
                directory, "fill", body_bytes=case.body_bytes, batch_size=256, message_count=count, halt=True
            )
        result = self._judge.bench(
            directory,
            self._WORKLOADS[case.workload],
            body_bytes=case.body_bytes,
            seconds=budget.seconds,
            warm_up_seconds=max(self._MIN_WARM_UP_SECONDS, budget.warm_up_seconds),
            batch_size=case.batch_size if case.workload is Workload.BATCH else 256,
            message_count=count,
            max_bytes=budget.max_write_bytes,
            threads=case.threads,
            usual=case.is_usual,
            enabledAppendPropCRC=case.is_usual,
            maxMessageSize=self._MAX_BATCH_BYTES,
        )
        if case.workload is Workload.REOPEN:
            check(count, result["n"], "messages that RocketMQ found after its kill")
        if result["n"] <= 0:
            raise SanityError(f"RocketMQ did nothing in {case.name}")
        return Sample(result["n"], result["seconds"], result["cpu_seconds"])

    def close(self) -> None:
        """Removes what its JVMs left."""
        self._judge.close()


def why_missing() -> str | None:
    """Says why RocketMQ cannot take part, None if it can; builds it the first time."""
    missing = toolchain.missing_tool()
    if missing is not None:
        return missing
    try:
        toolchain.build()
    except toolchain.BuildError as error:
        return f"the harness around it could not be built: {str(error).splitlines()[0]}"
    return None


def java_version() -> str:
    """Returns the version of the Java that runs RocketMQ."""
    said = subprocess.run(
        [toolchain.jdk_tool("java") or "java", "-version"], capture_output=True, text=True, check=True
    ).stderr
    found = re.search(r'"([^"]+)"', said)
    return found.group(1) if found else ""

"""RocketMQ's own DefaultMessageStore, through the judge of ``tests/interop``.

A JVM stays for all rounds of a case, so that its compilers have seen the work before each sample; a kill and
an open after it have a JVM of their own, as they do in life.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

from perf.contestants.warm import warm_up
from perf.figures.sample import Sample, SanityError, check
from perf.plan.budget import Budget
from perf.plan.cases import FILL_BATCH, LATENCY_FILE_BYTES, READS, Case, Workload
from perf.workloads.latency import SHARES
from perf.workloads.size import count_bytes
from perf.workloads.together import over_one
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES
from tests.interop.judging import toolchain
from tests.interop.judging.judge import Judge, JudgeError
from tests.interop.judging.questions import Line

_WORKLOADS: Final = {
    Workload.PUT: "write",
    Workload.BATCH: "write",
    Workload.TOGETHER: "write",
    Workload.LATENCY: "write",
    Workload.SIZE: "write",
    Workload.SYNC: "sync",
    Workload.FLIGHT: "async",
    Workload.PULL: "pull",
    Workload.RANDOM: "random",
    Workload.REOPEN: "reopen",
}
_NEVER_WARM: Final = frozenset({Workload.REOPEN, Workload.SIZE})
"""A process opens its store once; what loads classes is done before, by the judge. Bytes need no warm JVM."""
_MAX_BATCH_BYTES: Final = 16 << 20
"""By default RocketMQ takes 4 MiB a batch, which 4096 messages of 1 KiB exceed."""
_AS_LONG_AS_IT_TAKES_S: Final = 100


class RocketMq:
    """The store of one version."""

    key: Final = "rocketmq"
    flushes_itself: Final = True

    def __init__(self) -> None:
        self._judge: Judge | None = None
        self._warm = ""
        self.title = f"RocketMQ {toolchain.DEFAULT_VERSION}"

    def knows(self, case: Case) -> bool:
        """What a store does, but for our survey."""
        return case.workload in _WORKLOADS

    def get_ready(self, case: Case, budget: Budget, directory: Path) -> None:
        """Starts the JVM of a case, and does its work for some seconds; a smoke test has one JVM."""
        if self._judge is not None and (self._warm == case.name or budget.is_smoke):
            return
        self.close()
        # Where figures say nothing, a JVM that starts quickly is enough.
        self._judge = Judge(is_bench=not budget.is_smoke)
        if case.workload not in _NEVER_WARM:
            warm_up(lambda made: self.sample(case, budget, made), budget, directory)
        self._warm = case.name

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Asks the JVM of this case."""
        try:
            return self._sample(case, budget, directory)
        except JudgeError as error:
            raise SanityError(f"RocketMQ in {case.name}: {error}") from error

    def _sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        match case.workload:
            case Workload.REOPEN:
                return self._reopen(case, budget, directory)
            case Workload.TOGETHER:
                one = self._ask(case, budget, directory / "one")
                return over_one(one, self._ask(replace(case, threads=2), budget, directory / "two"))
            case Workload.SIZE:
                count = budget.size_messages
                limits = {"seconds": _AS_LONG_AS_IT_TAKES_S, "warm_up_seconds": 0}
                self._bench(case, budget, directory, message_count=count, **limits)
                return Sample(count, 1.0, 0.0, count_bytes(directory, count))
            case _:
                return self._ask(case, budget, directory)

    def _ask(self, case: Case, budget: Budget, directory: Path) -> Sample:
        options: dict[str, object] = {}
        if case.workload in READS:
            options = {"message_count": budget.read_bytes // case.body_bytes}
            if case.queues == 1:
                options["batch_size"] = FILL_BATCH
        if case.workload is Workload.LATENCY:
            options = {"message_count": budget.latency_bytes // case.body_bytes, "timed": True}
            options |= {"seconds": _AS_LONG_AS_IT_TAKES_S, "max_bytes": 1 << 40}
        result = self._bench(case, budget, directory, **options)
        if result["n"] <= 0:
            raise SanityError(f"RocketMQ did nothing in {case.name}")
        figures: dict[str, float] = {}
        if case.workload is Workload.LATENCY:
            figures = {key: result[key] for key in SHARES}
        elif result["log_bytes"]:
            stored_bytes = result["log_bytes"] + CQ_UNIT_BYTES * result["n"]
            figures = {"bytes_per_s": stored_bytes / result["seconds"]}
        return Sample(result["n"], result["seconds"], result["cpu_seconds"], figures)

    def _bench(self, case: Case, budget: Budget, directory: Path, **options: object) -> Line:
        known: dict[str, object] = {
            "workload": _WORKLOADS[case.workload],
            "body_bytes": case.body_bytes,
            "batch_size": case.batch_size,
            "threads": case.threads,
            "queues": case.queues,
            "usual": case.is_usual,
            "ragged": case.is_ragged,
            "view": case.is_view,
            "loop": case.is_loop,
            "seconds": budget.seconds,
            "warm_up_seconds": budget.jvm_warm_up_seconds,
            "max_bytes": budget.max_write_bytes(case.body_bytes),
        }
        config: dict[str, object] = {
            "messageIndexEnable": case.is_usual,
            "enabledAppendPropCRC": case.is_usual,
            "maxMessageSize": _MAX_BATCH_BYTES,
        }
        if case.workload is Workload.LATENCY:
            config["mappedFileSizeCommitLog"] = LATENCY_FILE_BYTES
        asked = known | options
        assert self._judge is not None
        return self._judge.bench(directory, str(asked.pop("workload")), config, **asked)

    def _reopen(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Counts the same for both of our ways to open: it has this one."""
        count = budget.reopen_bytes // case.body_bytes
        store = directory / "store"
        self._bench(
            case, budget, store, workload="fill", batch_size=FILL_BATCH, message_count=count, halt=True
        )
        result = self._bench(case, budget, store)
        check(count, result["n"], "messages that RocketMQ found after its kill")
        opened = {"open_s": result["seconds"], "quick_s": result["seconds"]}
        return Sample(result["n"], result["seconds"], result["cpu_seconds"], opened)

    def close(self) -> None:
        """Ends its JVM and removes its files."""
        if self._judge is not None:
            self._judge.close()
            self._judge = None


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
    """Returns the version of the Java that runs the peers."""
    said = subprocess.run(
        [toolchain.jdk_tool("java") or "java", "-version"], capture_output=True, text=True, check=True
    ).stderr
    found = re.search(r'"([^"]+)"', said)
    return found.group(1) if found else ""

"""Peers in Rust, through ``perf/rust``: a process for each sample.

Each has one queue a directory, no keys, no properties, and no acknowledgement that several threads share.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perf.contestants.java_peer import java_text
from perf.figures.sample import Sample, SanityError
from perf.plan.budget import Budget
from perf.plan.cases import FILL_BATCH, READS, Case, Workload
from tests.interop.judging import toolchain

PROJECT: Final = Path(__file__).resolve().parent.parent / "rust"
PROGRAM: Final = "seglog-peers"
_LIMIT_S: Final = 120
_WORKLOADS: Final = {
    Workload.PUT: "write",
    Workload.BATCH: "write",
    Workload.SYNC: "write",
    Workload.PULL: "pull",
    Workload.RANDOM: "random",
}


@dataclass(frozen=True, slots=True)
class RustPeer:
    """A log in Rust.

    Attributes:
        max_batch: The most messages that it takes in one call.
        has_views: Whether it hands out messages without a copy.
        has_places: Whether it reads at a place; otherwise it is not asked to read.
        has_sync: Whether it can return after its log is on the disk.
    """

    key: str
    title: str
    max_batch: int = 1 << 20
    has_views: bool = False
    has_places: bool = True
    has_sync: bool = True
    flushes_itself: bool = False

    def knows(self, case: Case) -> bool:
        """One thread, one queue, and nothing but a body."""
        if case.workload not in _WORKLOADS or case.threads != 1 or case.queues != 1:
            return False
        if case.workload in READS:
            return self.has_places and (self.has_views or not case.is_view)
        is_synced = case.workload is Workload.SYNC
        return case.batch_size <= self.max_batch and (self.has_sync or not is_synced)

    def get_ready(self, case: Case, budget: Budget, directory: Path) -> None:
        """Every sample has a process of its own."""

    def sample(self, case: Case, budget: Budget, directory: Path) -> Sample:
        """Runs the program to its end."""
        request = {
            "log": self.key,
            "dir": directory,
            "workload": _WORKLOADS[case.workload],
            "body_bytes": case.body_bytes,
            "batch_size": FILL_BATCH if case.workload in READS else case.batch_size,
            "message_count": budget.read_bytes // case.body_bytes,
            "ragged": case.is_ragged,
            "read": "own" if case.is_loop else "view" if case.is_view else "copy",
            "sync": case.workload is Workload.SYNC,
            "seconds": budget.seconds,
            "warm_up_seconds": budget.warm_up_seconds,
            "max_bytes": budget.max_write_bytes(case.body_bytes),
        }
        done = subprocess.run(
            [program(), *(f"{name}={java_text(it)}" for name, it in request.items())],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
        if done.returncode != 0:
            raise SanityError(f"{self.title} ended with {done.returncode}: {done.stderr[-3000:]}")
        return Sample(**json.loads(done.stdout))

    def close(self) -> None:
        """Nothing is kept."""


RUST_PEERS: Final = (
    RustPeer("commitlog", "commitlog 0.2.0", has_sync=False),
    RustPeer("walrus", "walrus 0.2.0", max_batch=2000, has_places=False),
    RustPeer("fjall", "fjall 3.1.13", has_views=True),
)


def program() -> Path:
    """Returns the program that holds them; builds it the first time.

    Raises:
        toolchain.BuildError: It could not be fetched or compiled.
    """
    return toolchain.build_rust(PROJECT, PROGRAM)


def why_missing() -> str | None:
    """Says why they cannot take part, None if they can; builds them the first time."""
    missing = toolchain.missing_cargo()
    if missing is not None:
        return missing
    try:
        program()
    except toolchain.BuildError as error:
        return f"it could not be fetched or compiled: {str(error).splitlines()[0]}"
    return None

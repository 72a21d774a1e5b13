"""What is measured, as a table; everybody who takes part reads it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class Workload(enum.Enum):
    """What a case does, over and over."""

    PUT = "put"
    """One message a call."""
    BATCH = "batch"
    """Many messages of one queue a call."""
    SYNC = "sync"
    """One message a call, on the disk when the call returns; from one thread or many."""
    VIEW = "view"
    """A pull of 32 after the other; records are handed out without a copy."""
    PULL = "pull"
    """A pull of 32 after the other, every byte copied."""
    RANDOM = "random"
    """One message anywhere, every byte copied."""
    REOPEN = "reopen"
    """Open a store whose writer was killed, read its last message and append one."""
    SURVEY = "survey"
    """Read and verify a whole store."""


PULL_COUNT: Final = 32


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the results.

    Attributes:
        is_usual: Messages have TAGS and KEYS, records ``__CRC32#``; otherwise neither.
        is_bytes: Bytes are counted instead of messages.
    """

    name: str
    title: str
    workload: Workload
    body_bytes: int
    batch_size: int = 1
    threads: int = 1
    is_usual: bool = False
    is_bytes: bool = False


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes >> 10} KiB" if size_bytes >= 1 << 10 else f"{size_bytes} B"


def _writes() -> list[Case]:
    cases: list[Case] = []
    for size in (128, 1024):
        text = _size_text(size)
        cases.append(Case(f"put-{size}", f"put, {text}", Workload.PUT, size))
        cases.append(
            Case(
                f"put-{size}-usual",
                f"put, {text}, tags and keys, record CRC",
                Workload.PUT,
                size,
                is_usual=True,
            )
        )
    for size in (128, 1024):
        cases += [
            Case(
                f"batch-{size}-{count}",
                f"put_batch of {count}, {_size_text(size)}",
                Workload.BATCH,
                size,
                count,
            )
            for count in (32, 256, 4096)
        ]
    return cases


CASES: Final = (
    *_writes(),
    Case("sync-1", "put on the disk, 1 KiB, 1 thread", Workload.SYNC, 1024),
    Case("sync-16", "put on the disk, 1 KiB, 16 threads", Workload.SYNC, 1024, threads=16),
    Case("view-32", "pull of 32, 1 KiB, as views", Workload.VIEW, 1024),
    Case("pull-32", "pull of 32, 1 KiB, bytes copied", Workload.PULL, 1024),
    Case("random", "get anywhere, 1 KiB, bytes copied", Workload.RANDOM, 1024),
    Case("reopen", "reopen after a kill, 1 KiB", Workload.REOPEN, 1024),
    Case("survey", "survey, 1 KiB", Workload.SURVEY, 1024, is_bytes=True),
)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work a sample is.

    Args:
        size: 1 for a smoke test, 4 for figures.
    """

    size: float

    @property
    def seconds(self) -> float:
        """How long writes and reads are measured."""
        return 0.25 * self.size

    @property
    def warm_up_seconds(self) -> float:
        """How long they run before."""
        return 0.1 * self.size

    @property
    def max_write_bytes(self) -> int:
        """Body bytes after which a write stops."""
        return int(self.size * (128 << 20))

    @property
    def read_bytes(self) -> int:
        """Body bytes of the store that is read."""
        return int(self.size * (16 << 20))

    @property
    def store_bytes(self) -> int:
        """Body bytes of the store that is surveyed."""
        return int(self.size * (64 << 20))

    @property
    def reopen_bytes(self) -> int:
        """Body bytes of the store that is opened again: 1 GiB where figures are wanted."""
        return int(self.size * (256 << 20))


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run did.

    Attributes:
        operations: Messages, or bytes where the case counts those.
        wall_s: How long it took.
        cpu_s: CPU time of the whole process meanwhile, its background threads included.
    """

    operations: int
    wall_s: float
    cpu_s: float

    @property
    def per_s(self) -> float:
        """Operations a second."""
        return self.operations / self.wall_s


class SanityError(Exception):
    """A bench did not do what it measured."""


def check(expected: object, found: object, what: str) -> None:
    """Does nothing if both are equal.

    Raises:
        SanityError: They are not.
    """
    if expected != found:
        raise SanityError(f"{what}: expected {expected}, found {found}")

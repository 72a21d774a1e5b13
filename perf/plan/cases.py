"""What is measured, as a table that all contestants read.

*Bare* messages have neither properties nor ``__CRC32#``, stand in one queue, and are not indexed. *Usual*
ones have TAGS, KEYS and UNIQ_KEY and ``__CRC32#``, stand in four queues, and can be found by both keys when
they count.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

PULL_COUNT: Final = 32
LATENCY_FILE_BYTES: Final = 64 << 20
"""Length of log files where single calls are timed."""
FILL_BATCH: Final = 256
USUAL_QUEUES: Final = 4


class Workload(enum.Enum):
    """What a case does, over and over."""

    PUT = "put"
    """One message a call."""
    BATCH = "batch"
    """Many messages of one queue a call."""
    TOGETHER = "together"
    """One message a call, from one thread and then from two."""
    LATENCY = "latency"
    """One message a call, each timed, across the ends of log files."""
    SYNC = "sync"
    """One message a call, on the disk when the call returns; from one thread or many."""
    FLIGHT = "flight"
    """Many messages on their way to the disk at once, started by one thread."""
    PULL = "pull"
    """A pull of 32 after the other, queue by queue in turn."""
    RANDOM = "random"
    """One message anywhere."""
    REOPEN = "reopen"
    """Open a store whose writer was killed, read its last message and append one."""
    SURVEY = "survey"
    """Read and verify a whole store."""
    SIZE = "size"
    """Put some messages and count the bytes that say something."""
    MEMORY = "memory"
    """Write a lot, then read it."""
    START = "start"
    """Start the interpreter, the import and the command."""


WRITES: Final = frozenset({Workload.PUT, Workload.BATCH, Workload.SYNC, Workload.FLIGHT})
READS: Final = frozenset({Workload.PULL, Workload.RANDOM})


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the results, or one for each of its columns.

    Attributes:
        body_bytes: Length of each body, on average where it is ragged.
        threads: Threads that put, or messages in flight.
        queues: Queues that messages go to in turn.
        is_ragged: Bodies are between 64 and 2048 bytes long.
        is_view: What is read is handed out; otherwise every byte of it is copied.
        is_loop: Messages are taken out of what is read one by one, and each body is copied to an object of
            the language, as in README. Otherwise single messages are not read.
        columns: Its figures, the most important one first.
    """

    name: str
    title: str
    workload: Workload
    body_bytes: int
    batch_size: int = 1
    threads: int = 1
    queues: int = 1
    is_usual: bool = False
    is_ragged: bool = False
    is_view: bool = False
    is_loop: bool = False
    columns: tuple[str, ...] = ("per_s",)


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes >> 10} KiB" if size_bytes >= 1 << 10 else f"{size_bytes} B"


def _puts() -> list[Case]:
    cases: list[Case] = []
    for size in (128, 1024):
        text = _size_text(size)
        cases.append(Case(f"put-{size}", f"put, {text}, bare", Workload.PUT, size))
        cases.append(
            Case(
                f"put-{size}-usual",
                f"put, {text}, usual",
                Workload.PUT,
                size,
                queues=USUAL_QUEUES,
                is_usual=True,
            )
        )
    return cases


def _batches() -> list[Case]:
    bodies = ((128, "128", "128 B"), (1024, "1024", "1 KiB"), (1056, "ragged", "64–2048 B"))
    return [
        Case(
            f"batch-{name}-{count}",
            f"put_batch of {count}, {text}",
            Workload.BATCH,
            size,
            batch_size=count,
            is_ragged=name == "ragged",
            columns=("per_s", "bytes_per_s"),
        )
        for size, name, text in bodies
        for count in (32, 256, 4096)
    ]


def _reads() -> list[Case]:
    cases: list[Case] = []
    for queues, where in ((1, "one queue"), (USUAL_QUEUES, f"{USUAL_QUEUES} interleaved queues")):
        text = f"pull of {PULL_COUNT}, 1 KiB, {where}"
        cases.append(
            Case(f"view-{queues}", f"{text}, views", Workload.PULL, 1024, queues=queues, is_view=True)
        )
        cases.append(Case(f"pull-{queues}", f"{text}, bytes copied", Workload.PULL, 1024, queues=queues))
    for size in (128, 1024):
        text = f"loop over pulls of {PULL_COUNT}, {_size_text(size)}, each body an object"
        cases.append(Case(f"loop-{size}", text, Workload.PULL, size, is_loop=True))
    one = "get of one anywhere, 1 KiB"
    cases.append(Case("random-view", f"{one}, view", Workload.RANDOM, 1024, is_view=True))
    cases.append(Case("random-copy", f"{one}, bytes copied", Workload.RANDOM, 1024))
    cases.append(Case("random-loop", f"{one}, its body an object", Workload.RANDOM, 1024, is_loop=True))
    return cases


def _sizes() -> list[Case]:
    columns = ("log_bytes", "queue_bytes", "index_bytes")
    return [
        Case("size-bare", "bytes used, 128 B, bare", Workload.SIZE, 128, columns=columns),
        Case(
            "size-usual",
            "bytes used, 128 B, usual",
            Workload.SIZE,
            128,
            queues=USUAL_QUEUES,
            is_usual=True,
            columns=columns,
        ),
    ]


_LATENCIES: Final = ("p50_us", "p99_us", "p999_us", "max_us")

CASES: Final = (
    *_puts(),
    Case("together", "put, 128 B, two threads", Workload.TOGETHER, 128, columns=("per_s", "over_one")),
    Case("latency", "put, 1 KiB, of single calls", Workload.LATENCY, 1024, columns=_LATENCIES),
    *_batches(),
    Case("sync-1", "put on the disk, 1 KiB, 1 thread", Workload.SYNC, 1024),
    Case("sync-16", "put on the disk, 1 KiB, 16 threads", Workload.SYNC, 1024, threads=16),
    Case("sync-64", "put on the disk, 1 KiB, 64 threads", Workload.SYNC, 1024, threads=64),
    Case("flight-512", "put on the disk, 1 KiB, 512 in flight", Workload.FLIGHT, 1024, threads=512),
    *_reads(),
    Case(
        "reopen",
        "reopen after a kill, 1 KiB",
        Workload.REOPEN,
        1024,
        columns=("open_s", "sync_s", "quick_s"),
    ),
    Case("survey", "survey of a store, 1 KiB", Workload.SURVEY, 1024, columns=("bytes_per_s",)),
    *_sizes(),
    Case("memory", "write and read, 1 KiB", Workload.MEMORY, 1024, columns=("anonymous_mb",)),
    Case("start", "start", Workload.START, 0, columns=("import_ms", "help_ms")),
)

CASE: Final = {case.name: case for case in CASES}

_LIKE_OTHERS: Final = frozenset(
    {"put-1024", "put-1024-usual", "batch-1024-256", "sync-64"}
    | {"view-4", "pull-1", "random-view", "loop-1024"}
    | {case.name for case in CASES if case.workload is Workload.BATCH and case.batch_size != FILL_BATCH}
)
SMOKE: Final = tuple(case for case in CASES if case.name not in _LIKE_OTHERS)
"""Enough cases to see that all of them work."""

"""``python -m perf.bench_spark``: Spark's jobs over a store beside the bare kernel; prints two tables.

All take turns within each round over the same store in the page cache, and ratios are formed within a round.
*kernel* is the walk that the jobs stand on, with all checksums, on two threads and without Spark. The session
is warm: every job ran once before. ``binaryFile`` is what people do without seglog: Spark reads whole files,
and Python takes record after record apart; it gets the first part of the log only, which takes as long.

CPU seconds are those of the driver, its Java and all Python workers together: they say more than a rate does
where other programs take turns on the machine. Memory is anonymous memory (``RssAnon``), the most that was
seen of each process while jobs ran: pages of mapped files count as memory only until others need it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perf.figures.page import Page
from perf.figures.sample import check
from perf.figures.spread import Spread
from perf.sampling.spark_memory import MemoryWatch, processes
from perf.stores.binary_file_peer import audit_by_hand, cut_front
from perf.stores.spark_store import BODY_BYTES, TOPICS, make_store
from seglog.storage.directory.directory_listing import list_store
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.kernels.walk import QueueTable, Stop, walk
from seglog.storage.survey.store_survey import survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KERNEL: Final = "kernel"
_THREADS: Final = 2
_WINDOW_BYTES: Final = 8 << 20
_GIB: Final = 1 << 30
_MIN_SIZE: Final = 0.001
_PEER: Final = "binaryFile"
_PEER_BYTES: Final = 256 << 20
_SLOPE: Final = (0.25, 0.5)
"""Parts of the size that the slope is taken from, beside the whole."""
CORES: Final = 2


@dataclass(frozen=True, slots=True)
class Made:
    """A store to work on.

    Attributes:
        root: The store.
        messages: How many it has.
        size_bytes: Length of its log.
    """

    root: Path
    messages: int
    size_bytes: int


Job = Callable[[Made, "SparkSession"], int]
"""Does something over a whole store; returns how many messages it saw."""


def walk_all(made: Made, _session: SparkSession) -> int:
    """Walks the log with the kernel, a thread for each core, in a process of its own."""
    return _kernel_pool().submit(_walk_log, made).result()


@cache
def _kernel_pool() -> ProcessPoolExecutor:
    """Returns the process: the kernel's memory must not count as the driver's."""
    return ProcessPoolExecutor(1, get_context("spawn"))


def _walk_log(made: Made) -> int:
    log, files = made.root / COMMIT_LOG, list_store(RealFiles(), made.root).log_files
    with ThreadPoolExecutor(_THREADS) as pool:
        return sum(
            pool.map(
                lambda file: _walk_file(log / segment_file_name(file.first_offset), file.first_offset), files
            )
        )


def _walk_file(path: Path, first_offset: int) -> int:
    queues, records, at = QueueTable(), 0, 0
    end = path.stat().st_size
    buffer = memoryview(bytearray(_WINDOW_BYTES))
    with path.open("rb", buffering=0) as file:
        while at < end:
            file.seek(at)
            window = buffer[: file.readinto(buffer)]
            found = walk(window, first_offset + at, first_offset + end, queues)
            records += len(found.rows)
            at += found.position
            if found.stop is not Stop.MORE:
                break
    return records


def audit(made: Made, session: SparkSession) -> int:
    """``seglog spark audit``."""
    from seglog.spark.audit.stores import audit_store

    report = audit_store(made.root, spark=session)
    check(report.is_clean, True, "a clean report of an intact store")
    return report.records


def read(made: Made, session: SparkSession) -> int:
    """Every usual column of every message."""
    return _count(session.read.format("seglog").load(str(made.root)))


def read_records(made: Made, session: SparkSession) -> int:
    """Every message as the bytes of its record."""
    return _count(session.read.format("seglog").schema("record binary").load(str(made.root)))


def read_narrow(made: Made, session: SparkSession) -> int:
    """One narrow column of every message."""
    return _count(session.read.format("seglog").schema("queueOffset bigint").load(str(made.root)))


def _count(frame: DataFrame) -> int:
    """Has all rows made, and returns how many there were."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    seen = Observation()
    counted = frame.observe(seen, count(lit(1)).alias("rows"))
    counted.write.format("noop").mode("overwrite").save()
    return int(seen.get["rows"])


def reconcile(made: Made, session: SparkSession) -> int:
    """``seglog spark reconcile --messages``: a verdict for each message and group."""
    from seglog.spark.reconcile.outcome import reconcile_all

    counts = reconcile_all(session, [made.root], messages=True).counts
    check(counts is not None and counts.adds_up, True, "verdicts that add up")
    return 0 if counts is None else sum(counts.messages.values())


def compact(made: Made, session: SparkSession) -> int:
    """``seglog spark compact --apply`` of all topics, with the check of what came out."""
    from seglog.spark.compact.compact import Compaction
    from seglog.spark.compact.policy import Policy

    policies = dict.fromkeys(TOPICS, Policy(compact=True))
    plan = Compaction(made.root, policies, allow_undelivered=True).apply(session).plan
    return 0 if plan is None else sum(topic.kept + topic.dropped for topic in plan.topics)


def put_back(made: Made) -> None:
    """Takes a compaction back, so that the next finds the same."""
    from seglog.spark.compact.swap import undo_swap

    undo_swap(RealFiles(), made.root)


JOBS: Final[Mapping[str, Job]] = {
    KERNEL: walk_all,
    "audit": audit,
    "read": read,
    "read narrow": read_narrow,
    "read records": read_records,
    "reconcile": reconcile,
    "compact": compact,
}


def taken_s(job: Job, made: Made, session: SparkSession) -> float:
    """Returns how long a job took.

    Raises:
        SanityError: It did not see every message.
    """
    begun = time.perf_counter()
    seen = job(made, session)
    taken = time.perf_counter() - begun
    if job is compact:
        put_back(made)
    check(seen, made.messages, "messages that a job saw")
    return taken


def rates(
    made: Made, session: SparkSession, jobs: Mapping[str, Job], rounds: int, parts: Path
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Returns bytes a second of each job in each round, those of the peer at last, and CPU seconds a GB."""
    found: dict[str, list[float]] = {name: [] for name in (*jobs, _PEER)}
    burnt: dict[str, list[float]] = {name: [] for name in (*jobs, _PEER)}
    parts.mkdir()
    part_bytes = cut_front(made.root / COMMIT_LOG, parts, _PEER_BYTES)
    for number in range(rounds + 1):
        for name, job in jobs.items():
            before = cpu_s()
            taken = taken_s(job, made, session)
            if number:
                found[name].append(made.size_bytes / taken)
                burnt[name].append((cpu_s() - before) / made.size_bytes * 1e9)
        if number:
            begun, before = time.perf_counter(), cpu_s()
            audit_by_hand(session, parts)
            found[_PEER].append(part_bytes / (time.perf_counter() - begun))
            burnt[_PEER].append((cpu_s() - before) / part_bytes * 1e9)
    return found, burnt


def cpu_s() -> float:
    """Returns the CPU seconds that all of them, and workers that ended, have used so far."""
    ticks = 0
    for _kind, number in processes(os.getpid()):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
            own, ended = fields[11:13], fields[13:15]
            ticks += sum(map(int, own if number == str(os.getpid()) else own + ended))
    return ticks / os.sysconf("SC_CLK_TCK")


def _stores(folder: Path, size_bytes: int, body_bytes: int) -> list[Made]:
    """Makes the stores in a separate process, so that its memory does not count as the driver's."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_make_stores, folder, size_bytes, body_bytes).result()


def _make_stores(folder: Path, size_bytes: int, body_bytes: int) -> list[Made]:
    sizes = [int(size_bytes * part) for part in _SLOPE] + [size_bytes]
    made = []
    for size in sizes:
        root = folder / str(size)
        messages = make_store(root, size, body_bytes)
        made.append(Made(root, messages, survey(root, RealFiles()).max_phy_offset))
    return made


def _row(name: str, taken: Sequence[float], kernel: Sequence[float], burnt: Sequence[float]) -> str:
    ratios = Spread.of([mine / theirs for mine, theirs in zip(taken, kernel, strict=True)])
    cells = (Spread.of([each / 1e9 for each in taken]), ratios, Spread.of(burnt))
    return f"| {name} | {' | '.join(cell.text() if cell else '–' for cell in cells)} |"


def measure(folder: Path, size_gib: float, rounds: int, names: Sequence[str], body_bytes: int) -> list[str]:
    """Makes stores, measures, and returns the lines of the report."""
    from seglog.spark.session import local_session

    stores = _stores(folder, int(size_gib * _GIB), body_bytes)
    jobs = {name: job for name, job in JOBS.items() if name == KERNEL or name in names}
    session = local_session("seglog bench", f"local[{CORES}]")
    try:
        largest = stores[-1]
        with MemoryWatch(os.getpid()) as memory:
            found, burnt = rates(largest, session, jobs, rounds, folder / "parts")
            slope = {
                name: [taken_s(job, made, session) for made in stores]
                for name, job in jobs.items()
                if name != KERNEL
            }
    finally:
        session.stop()
    gib = f"{largest.size_bytes / _GIB:.2f} GiB"
    return [
        f"{largest.messages:,} messages, a log of {gib}; `local[{CORES}]`; {rounds} rounds, medians (span).",
        "",
        "| job | GB/s | of the kernel's | CPU s/GB |",
        "| --- | --- | --- | --- |",
        *(_row(name, taken, found[KERNEL], burnt[name]) for name, taken in found.items()),
        "",
        "Seconds by the size of the log:",
        "",
        f"| job | {' | '.join(f'{made.size_bytes / _GIB:.2f} GiB' for made in stores)} |",
        f"| --- |{' --- |' * len(stores)}",
        *(f"| {name} | {' | '.join(f'{each:.2f}' for each in taken)} |" for name, taken in slope.items()),
        "",
        "Most anonymous memory: "
        + ", ".join(f"{name} {size / (1 << 20):,.0f} MiB" for name, size in sorted(memory.most.items()))
        + ".",
    ]


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_spark", description=__doc__)
    parser.add_argument("--size", type=float, default=4, help="GiB of log")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--body", type=int, default=BODY_BYTES, help="bytes of a body")
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS), metavar="JOB")
    parser.add_argument("--folder", type=Path, help="where the stores go; a temporary one by default")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables there too")
    options = parser.parse_args(arguments)
    if options.size < _MIN_SIZE or options.rounds < 1:
        parser.error(f"--size must be {_MIN_SIZE} or more, and --rounds 1 or more")
    page = Page("perf.bench_spark", arguments, options.write)
    folder = Path(tempfile.mkdtemp(prefix="seglog-bench-", dir=options.folder))
    try:
        lines = measure(folder, options.size, options.rounds, options.jobs, options.body)
    finally:
        shutil.rmtree(folder)
    page.say("Spark jobs beside the kernel", lines)


if __name__ == "__main__":
    main(sys.argv[1:])

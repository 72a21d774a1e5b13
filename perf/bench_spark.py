"""``python -m perf.bench_spark``: Spark's jobs over a store beside the bare kernel; prints two tables.

All take turns within each round over the same store in the page cache, and ratios are formed within a round.
*kernel* is the walk that the jobs stand on, with all checksums, on two threads and without Spark. The session
is warm: every job ran once before. ``binaryFile`` is what people do without seglog: Spark reads whole files,
and Python takes record after record apart; it gets the first part of the log only, which takes as long.

Memory is the highest that each process had (``VmHWM``) when all rounds were over.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perf.figures import machine
from perf.figures.sample import check
from perf.figures.spread import Spread
from perf.stores.binary_file_peer import audit_by_hand, cut_front
from perf.stores.spark_store import TOPICS, make_store
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
    """Walks the log with the kernel, a thread for each core."""
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
) -> dict[str, list[float]]:
    """Returns the bytes a second of each job in each round, those of the peer at last."""
    found: dict[str, list[float]] = {name: [] for name in (*jobs, _PEER)}
    parts.mkdir()
    part_bytes = cut_front(made.root / COMMIT_LOG, parts, _PEER_BYTES)
    for number in range(rounds + 1):
        for name, job in jobs.items():
            taken = taken_s(job, made, session)
            if number:
                found[name].append(made.size_bytes / taken)
        if number:
            begun = time.perf_counter()
            audit_by_hand(session, parts)
            found[_PEER].append(part_bytes / (time.perf_counter() - begun))
    return found


def peak_bytes(session: SparkSession) -> dict[str, int]:
    """Returns the most memory that this process, its Java and the largest of Spark's Python workers had."""
    found = {"driver": _peak_of("self"), "Java": 0, "worker": 0}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or entry.name == str(os.getpid()):
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            if b"pyspark" in command or b"java" in command.split(b"\0")[0]:
                kind = "worker" if b"pyspark.daemon" in command else "Java"
                if _is_ours(int(entry.name)):
                    found[kind] = max(found[kind], _peak_of(entry.name))
        except OSError:
            continue  # it ended meanwhile
    return found


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return False


def _peak_of(name: str) -> int:
    lines = Path(f"/proc/{name}/status").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


def _stores(folder: Path, size_bytes: int) -> list[Made]:
    """Makes the stores in a process of its own: what that takes is no memory of the driver."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_make_stores, folder, size_bytes).result()


def _make_stores(folder: Path, size_bytes: int) -> list[Made]:
    sizes = [int(size_bytes * part) for part in _SLOPE] + [size_bytes]
    made = []
    for size in sizes:
        root = folder / str(size)
        messages = make_store(root, size)
        made.append(Made(root, messages, survey(root, RealFiles()).max_phy_offset))
    return made


def _row(name: str, taken: Sequence[float], kernel: Sequence[float]) -> str:
    ratios = Spread.of([mine / theirs for mine, theirs in zip(taken, kernel, strict=True)])
    rate = Spread.of([each / 1e9 for each in taken])
    return f"| {name} | {rate.text() if rate else '–'} | {ratios.text() if ratios else '–'} |"


def measure(folder: Path, size_gib: float, rounds: int, names: Sequence[str]) -> list[str]:
    """Makes stores, measures, and returns the lines of the report."""
    from seglog.spark.session import local_session

    stores = _stores(folder, int(size_gib * _GIB))
    jobs = {name: job for name, job in JOBS.items() if name == KERNEL or name in names}
    session = local_session("seglog bench", f"local[{CORES}]")
    try:
        largest = stores[-1]
        found = rates(largest, session, jobs, rounds, folder / "parts")
        slope = {
            name: [taken_s(job, made, session) for made in stores]
            for name, job in jobs.items()
            if name != KERNEL
        }
        memory = peak_bytes(session)
    finally:
        session.stop()
    gib = f"{largest.size_bytes / _GIB:.2f} GiB"
    return [
        f"{largest.messages:,} messages, a log of {gib}; `local[{CORES}]`; {rounds} rounds, medians (span).",
        "",
        "| job | GB/s | of the kernel's |",
        "| --- | --- | --- |",
        *(_row(name, taken, found[KERNEL]) for name, taken in found.items()),
        "",
        "Seconds by the size of the log:",
        "",
        f"| job | {' | '.join(f'{made.size_bytes / _GIB:.2f} GiB' for made in stores)} |",
        f"| --- |{' --- |' * len(stores)}",
        *(f"| {name} | {' | '.join(f'{each:.2f}' for each in taken)} |" for name, taken in slope.items()),
        "",
        "Most memory: "
        + ", ".join(f"{name} {size / (1 << 20):,.0f} MiB" for name, size in memory.items())
        + ".",
    ]


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_spark", description=__doc__)
    parser.add_argument("--size", type=float, default=4, help="GiB of log")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS), metavar="JOB")
    parser.add_argument("--folder", type=Path, help="where the stores go; a temporary one by default")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables there too")
    options = parser.parse_args(arguments)
    if options.size < _MIN_SIZE or options.rounds < 1:
        parser.error(f"--size must be {_MIN_SIZE} or more, and --rounds 1 or more")
    load = os.getloadavg()[0]
    folder = Path(tempfile.mkdtemp(prefix="seglog-bench-", dir=options.folder))
    try:
        lines = measure(folder, options.size, options.rounds, options.jobs)
    finally:
        shutil.rmtree(folder)
    ran = f"`python -m perf.bench_spark {' '.join(arguments)}".rstrip() + "`"
    measured = f"{machine.describe()}, load {load:.1f} to {os.getloadavg()[0]:.1f}"
    text = "\n".join([f"{ran}, {datetime.now(UTC).date().isoformat()}; {measured}", "", *lines])
    print(text)
    if options.write is not None:
        options.write.write_text(f"# Spark jobs beside the kernel\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

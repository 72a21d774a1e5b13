"""``python -m perf.bench_check``: ``seglog check`` beside the bare verify kernel; prints a table.

Both read the same bytes from the page cache in each round, one after the other, each in a process of its own:
the kernel walks the maps of the log's files in two threads and computes every checksum, a check does all
that it does. Its time is that of the process, with the start of Python; peak memory counts what it has
mapped. CPU time, user and system, says more than the clock where others use the machine too. Records have a
body of 1 KiB, a record CRC, and three keys (UNIQ_KEY, KEYS, TAGS) or none; they belong to four queues of each
of four topics; files have their default lengths.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from perf.figures.page import Page
from perf.figures.spread import Spread
from seglog.storage.format.names import COMMIT_LOG
from seglog.storage.kernels import _native
from seglog.storage.store import MessageStore
from seglog.storage.writes.values import NewMessage

THREADS: Final = 2
_TOPICS: Final = ("Orders", "Payments", "Audit", "Clicks")
_QUEUES: Final = 4
_BATCH: Final = 64
_BODY_BYTES: Final = 1024
_POOL_BYTES: Final = 1 << 20
_STEP_BYTES: Final = 4 << 20
_MIN_GIB: Final = 0.01
_MAKE_KEYED: Final = "make-keyed"
_MAKE_PLAIN: Final = "make-plain"
_WALK: Final = "walk"
_CHECK: Final = "from seglog.cli.main import main; main()"


@dataclass(frozen=True, slots=True)
class Run:
    """The costs of one process.

    Attributes:
        records: How many records it saw.
        memory_mib: Its peak resident memory.
    """

    records: int
    wall_s: float
    cpu_s: float
    memory_mib: float


def make_store(root: Path, size_bytes: int, *, has_keys: bool) -> int:
    """Puts messages until the log is so long; returns how many."""
    pool = random.Random(1).randbytes(_POOL_BYTES)
    count = 0
    with MessageStore.open(root, record_crc=True) as store:
        while store.max_phy_offset < size_bytes:
            topic = _TOPICS[count // _BATCH // _QUEUES % len(_TOPICS)]
            numbers = range(count, count + _BATCH)
            batch = [_message(pool, number, has_keys=has_keys) for number in numbers]
            store.put_batch(topic, batch, queue_id=count // _BATCH % _QUEUES)
            count += _BATCH
    return count


def _message(pool: bytes, number: int, *, has_keys: bool) -> NewMessage:
    at = number * 4099 % (_POOL_BYTES - _BODY_BYTES)
    body = pool[at : at + _BODY_BYTES]
    if not has_keys:
        return NewMessage(body)
    unique = {"UNIQ_KEY": f"7F0000010ABC18B4AAC2{number:012X}"}
    return NewMessage(body, tags=f"Tag{number % 8}", keys=f"order-{number:09}", properties=unique)


def walk_bare(root: Path) -> int:
    """Verifies the log with the kernel alone; returns how many records there are."""
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(_walk_file, sorted((root / COMMIT_LOG).iterdir())))


def _walk_file(path: Path) -> int:
    rows = memoryview(np.empty(_STEP_BYTES, np.uint8))  # type: ignore[arg-type]  # numpy is a buffer
    with path.open("rb") as file:
        log = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    first, count, at = int(path.name), 0, 0
    while at < len(log):
        until = min(at + _STEP_BYTES, len(log))
        taken, _more, _begin, position, _queues = _native.walk_stretch(
            log, first, at, until, True, False, rows
        )
        if position == at:
            break
        count += taken
        at = position
    return count


def step(root: Path, name: str, size_bytes: int) -> dict[str, float]:
    """Does one thing in a process of its own.

    That of the bench stays small: a process counts its parent's memory as its own peak.
    """
    command = [sys.executable, "-m", "perf.bench_check", "--step", name, "--store", str(root)]
    command += ["--size", str(size_bytes)]
    told: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return told


def _do_step(name: str, root: Path, size_bytes: int) -> None:
    begun_s, begun_cpu_s = time.monotonic(), time.process_time()
    make = partial(make_store, root, size_bytes, has_keys=name == _MAKE_KEYED)
    records = walk_bare(root) if name == _WALK else make()
    wall_s, cpu_s = time.monotonic() - begun_s, time.process_time() - begun_cpu_s
    print(json.dumps({"records": records, "wall_s": wall_s, "cpu_s": cpu_s}))


def run_bare(root: Path) -> Run:
    """Runs the kernel; its time is that of the walk, without the start of Python."""
    told = step(root, _WALK, 0)
    return Run(int(told["records"]), told["wall_s"], told["cpu_s"], 0)


def run_check(root: Path) -> Run:
    """Runs a check.

    Raises:
        SystemExit: It found something.
    """
    command = [sys.executable, "-c", _CHECK, "check", str(root), "--json"]
    begun_s = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        out = process.stdout.read() if process.stdout is not None else b""
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - begun_s
    told = json.loads(out.splitlines()[-1]) if out else {}
    if process.returncode or not told.get("clean"):
        raise SystemExit(f"the check found something: {told}")
    return Run(told["records"], wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measure(directory: Path, size_bytes: int, rounds: int, *, has_keys: bool) -> str:
    """Makes a store and measures it; returns a row of the table.

    Raises:
        SystemExit: A contestant did not see every record.
    """
    root = directory / "store"
    try:
        count = step(root, _MAKE_KEYED if has_keys else _MAKE_PLAIN, size_bytes)["records"]
        run_bare(root)  # the first run fills the page cache
        pairs = [(run_bare(root), run_check(root)) for _ in range(rounds)]
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if seen := [run.records for pair in pairs for run in pair if run.records != count]:
        raise SystemExit(f"there are {count} records, and somebody saw {seen[0]}")
    gigabytes = size_bytes / 1e9
    columns = [
        [gigabytes / bare.wall_s for bare, _ in pairs],
        [gigabytes / check.wall_s for _, check in pairs],
        [bare.wall_s / check.wall_s for bare, check in pairs],
        [bare.cpu_s for bare, _ in pairs],
        [check.cpu_s for _, check in pairs],
        [bare.cpu_s / check.cpu_s for bare, check in pairs],
        [check.memory_mib for _, check in pairs],
    ]
    spreads = (f"{spread:.2f} ({low:.2f}–{high:.2f})" for spread, low, high in map(_of, columns))
    return (
        f"| {'three keys' if has_keys else 'no keys'}, {count:,.0f} records | " + " | ".join(spreads) + " |"
    )


def _of(values: list[float]) -> tuple[float, float, float]:
    spread = Spread.of(values) or Spread(0, 0, 0)
    return spread.middle, spread.low, spread.high


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_check", description=__doc__)
    parser.add_argument("--size", type=float, default=8, help="of the log, in GiB")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--directory", type=Path, help="where there is room for the store")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--step", choices=[_MAKE_KEYED, _MAKE_PLAIN, _WALK], help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.step is not None:
        _do_step(options.step, options.store, int(options.size))
        return
    if options.size < _MIN_GIB or options.rounds < 1:
        parser.error(f"--size must be {_MIN_GIB} or more, and --rounds 1 or more")
    page = Page("perf.bench_check", arguments, options.write)
    size_bytes = int(options.size * (1 << 30))
    with tempfile.TemporaryDirectory(prefix="seglog-check-", dir=options.directory) as name:
        rows = [
            measure(Path(name), size_bytes, options.rounds, has_keys=has_keys) for has_keys in (True, False)
        ]
    lines = [
        f"Logs of {options.size:g} GiB in the page cache, {options.rounds} rounds; medians (span).",
        "",
        "| store | kernel, GB/s | check, GB/s | ratio | kernel, CPU s | check, CPU s | ratio | check, MiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
    ]
    page.say("A check beside the bare verify kernel", lines)


if __name__ == "__main__":
    main(sys.argv[1:])

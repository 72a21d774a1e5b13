"""``python -m perf.bench_views``: a queue as numpy arrays, and verifying by seals; prints a table.

The store is made by :mod:`perf.stores.made_store`, with queue files of RocketMQ's default length, so that the
units of 10 million messages lie in 34 files. Everything is in the page cache when it is measured.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from perf.figures.page import Page
from perf.stores.made_store import FIRST_MS, MESSAGES_A_MS, TOPIC, make_store, record_dtype
from seglog.doctor.check.verify import verify_store
from seglog.storage.format.queue.consume_queue import Units
from seglog.storage.format.record.tags import tags_code
from seglog.storage.reads.queue_view import QueueView
from seglog.storage.store import MessageStore
from seglog.storage.writes.writer import Writer

_MESSAGES_AT_SIZE_1: Final = 100_000
_BODY_BYTES: Final = 40
_VERIFY_BODY_BYTES: Final = 1024
_VERIFY_SEGMENT_BYTES: Final = 64 << 20
_MIN_SIZE: Final = 0.01
"""A tenth of the messages has the tag that is looked for; of fewer none would."""

_NOTES: Final = """\
Medians (lowest–highest); CPU is that of all threads, and
the steadier figure where others use the machine. Everything is in the page cache. `units()` copies as soon
as the units lie in several files, 300,000 in each."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The measured work, the number of rounds, and the amount done."""

    title: str
    wall_s: tuple[float, ...]
    cpu_s: tuple[float, ...]
    amount: int
    unit: str

    def row(self) -> str:
        """Returns a row of the table: median time, spread, and rate of the median."""
        middle = median(self.wall_s)
        rate = f"{self.amount / middle / 1e9:.2f} GB/s"
        if self.unit != "B":
            rate = f"{middle / self.amount * 1e9:.1f} ns"
        spread = f"{min(self.wall_s) * 1e3:,.1f}–{max(self.wall_s) * 1e3:,.1f}"
        return f"| {self.title} | {middle * 1e3:,.1f} ({spread}) | {median(self.cpu_s) * 1e3:,.1f} | {rate} |"


def measure(title: str, rounds: int, amount: int, unit: str, task: Callable[[], object]) -> Figure:
    """Returns the times of some rounds."""
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(rounds):
        begun, begun_cpu = time.perf_counter(), time.process_time()
        task()
        wall.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - begun_cpu)
    return Figure(title, tuple(wall), tuple(cpu), amount, unit)


def bench_views(root: Path, count: int, rounds: int) -> list[Figure]:
    """Measures reading a queue of ``count`` messages as arrays, and checks what comes out."""
    make_store(root, count, _BODY_BYTES, 1 << 30)
    with MessageStore.open(root) as store:
        _rest(store)
        # A function of its own: what it reads must be gone before the store closes.
        return _measure_view(store.queue(TOPIC, 0), count, rounds)


def _rest(store: MessageStore) -> None:
    """Stops the background of a store that was just made: it would index ten million messages meanwhile."""
    side = store._core
    if isinstance(side, Writer):
        side._indexer.stop()
        side._sealer.stop()


def _measure_view(view: QueueView, count: int, rounds: int) -> list[Figure]:
    code, since_ms = tags_code("T3"), FIRST_MS + count // MESSAGES_A_MS // 2
    units, times, bodies = view.units(), view.timestamps(), view.bodies()

    def one_expression() -> Units:
        chosen: Units = units[(units["tags_code"] == code) & (times >= since_ms)]
        return chosen

    def from_files() -> Units:
        read = view.units()
        chosen: Units = read[(read["tags_code"] == code) & (view.timestamps() >= since_ms)]
        return chosen

    def tag_in_the_maps() -> int:
        return sum(int((part["tags_code"] == code).sum()) for _start, part in view.iter_units())

    found = (len(one_expression()), len(from_files()), tag_in_the_maps(), len(bodies.pack()[1]))
    if found != (count // 20, count // 20, count // 10, count * _BODY_BYTES):
        raise SystemExit(f"the view does not show what was written: {found}")
    tasks: dict[str, Callable[[], object]] = {
        "filter by tag and time in one expression, arrays in memory": one_expression,
        "the same from the files: units, times out of the log, filter": from_files,
        "count a tag in the maps, nothing copied": tag_in_the_maps,
        "units()": view.units,
        "timestamps()": view.timestamps,
        "read_columns(), 13 columns": view.read_columns,
        "bodies(), 40 B, not copied": view.bodies,
        "bodies().pack(), 40 B": bodies.pack,
    }
    return [measure(title, rounds, count, "unit", task) for title, task in tasks.items()]


def bench_verify(root: Path, size_bytes: int, rounds: int) -> list[Figure]:
    """Measures sealing and verifying segments of 64 MiB with messages of 1 KiB."""
    each = (_VERIFY_SEGMENT_BYTES - 8) // record_dtype(_VERIFY_BODY_BYTES).itemsize
    segments = max(1, size_bytes // _VERIFY_SEGMENT_BYTES)
    # One message behind the last full segment: what is not sealed must not count.
    make_store(root, segments * each + 1, _VERIFY_BODY_BYTES, _VERIFY_SEGMENT_BYTES)
    total = segments * _VERIFY_SEGMENT_BYTES

    def verify() -> None:
        report = verify_store(root)
        if not report.is_clean or len(report.by_seal) != segments:
            raise SystemExit(f"the store does not verify: {report.findings}")

    return [
        measure("verify by records, and seal", 1, total, "B", lambda: verify_store(root, seal=True)),
        measure("verify by seals", rounds, total, "B", verify),
    ]


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_views", description=__doc__)
    parser.add_argument("--size", type=float, default=100, help="1: 100,000 messages; 100: 10 million")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", type=Path, help="where stores are made; size 100 needs 4 GB at a time")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args(arguments)
    if options.size < _MIN_SIZE or options.rounds < 1:
        parser.error(f"--size must be {_MIN_SIZE} or more, and --rounds 1 or more")
    count = int(options.size * _MESSAGES_AT_SIZE_1)
    page = Page("perf.bench_views", arguments, options.write)
    with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=options.dir) as directory:
        figures = bench_views(Path(directory) / "views", count, options.rounds)
    with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=options.dir) as directory:
        figures += bench_verify(Path(directory) / "verify", int(options.size * (20 << 20)), options.rounds)
    lines = [
        f"{count:,} messages, {options.rounds} rounds. {_NOTES}",
        "",
        "| | ms | CPU ms | for one, or rate |",
        "| --- | --- | --- | --- |",
        *[figure.row() for figure in figures],
    ]
    page.say("A queue as numpy, and verifying by seals", lines, more=f", numpy {np.__version__}")


if __name__ == "__main__":
    main(sys.argv[1:])

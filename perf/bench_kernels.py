"""``python -m perf.bench_kernels``: the native kernels beside the Python ones; prints two tables.

Logs lie in memory, so these are the CPU's shares of opening and verifying, and of putting. Kernels take turns
within each round, and ratios are formed within a round. *Bare* records have neither properties nor a checksum
of their own, *usual* ones TAGS, KEYS, UNIQ_KEY and ``__CRC32#``; those of logs belong to four queues.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from perf.figures.page import Page
from seglog.storage.format.record.host import Host
from seglog.storage.kernels import NATIVE, PYTHON, _native, walk
from seglog.storage.kernels.pending_record import PythonPendingRecord

KERNELS: Final = (PYTHON, NATIVE)
_LOG_BYTES_AT_SIZE_1: Final = 8 << 20
_QUEUES: Final = 4
_BODY_SIZES: Final = (128, 1024)
_USUAL: Final = b"KEYS\x01order-1234567\x02UNIQ_KEY\x017F0000010ABC18B4AAC20000000A0001\x02TAGS\x01TagA\x02"
_HOST: Final = Host(b"\x7f\0\0\1", 10911)
_MIN_SIZE: Final = 0.01
_NOW_MS: Final = 1_800_000_000_000
_DRAFTS_A_ROUND: Final = 5000
DRAFTS: Final[dict[str, type[PythonPendingRecord | _native.PendingRecord]]] = {
    PYTHON: PythonPendingRecord,
    NATIVE: _native.PendingRecord,
}


@dataclass(frozen=True, slots=True)
class Log:
    """A log in memory.

    Attributes:
        content: Its bytes.
        count: How many records they are.
    """

    title: str
    content: memoryview
    count: int


def title_of(body_bytes: int, *, usual: bool, size_bytes: int) -> str:
    """Returns the subject of a row."""
    return f"{body_bytes} B, {'usual' if usual else 'bare'}, {size_bytes} B a record"


def new_draft(
    kernels: str, queue_id: int, body: bytes, *, usual: bool
) -> PythonPendingRecord | _native.PendingRecord:
    """Returns a record that lacks its place and time."""
    properties = _USUAL if usual else b""
    return DRAFTS[kernels](
        b"TopicTest", queue_id, body, properties, 0, 0, 0, _NOW_MS, _HOST, _HOST, 0, 0, usual
    )


def make_log(body_bytes: int, *, usual: bool, size_bytes: int) -> Log:
    """Returns a log of equal records with random bodies, of about the size."""
    out = bytearray(size_bytes)
    view = memoryview(out)
    at = count = 0
    while True:
        draft = new_draft(PYTHON, count % _QUEUES, os.urandom(body_bytes), usual=usual)
        if at + draft.size_bytes > size_bytes:
            title = title_of(body_bytes, usual=usual, size_bytes=draft.size_bytes)
            return Log(title, memoryview(bytes(view[:at])), count)
        draft.write(view, at, count // _QUEUES, at, _NOW_MS)
        at += draft.size_bytes
        count += 1


def walk_s(log: Log, kernels: str) -> float:
    """Returns the CPU seconds of one walk.

    Raises:
        SystemExit: It did not see every record.
    """
    walk.native_walk = _native.walk if kernels == NATIVE else None
    begun = time.process_time()
    result = walk.walk(log.content, 0, 1 << 40, walk.QueueTable())
    taken = time.process_time() - begun
    if (len(result.rows), result.position) != (log.count, len(log.content)):
        raise SystemExit(f"the walk of the {kernels} kernels saw {len(result.rows)} of {log.count} records")
    return taken


def draft_s(kernels: str, body: bytes, buffer: memoryview, *, usual: bool) -> float:
    """Returns the CPU seconds of making a record and writing it."""
    begun = time.process_time()
    for number in range(_DRAFTS_A_ROUND):
        new_draft(kernels, 0, body, usual=usual).write(buffer, 0, number, number, _NOW_MS)
    return (time.process_time() - begun) / _DRAFTS_A_ROUND


def draft_row(body_bytes: int, *, usual: bool, rounds: int) -> str:
    """Measures making records, and returns a row of the table.

    Raises:
        SystemExit: The kernels do not make the same bytes.
    """
    body = os.urandom(body_bytes)
    size_bytes = new_draft(PYTHON, 0, body, usual=usual).size_bytes
    buffers = {kernels: memoryview(bytearray(size_bytes)) for kernels in KERNELS}
    taken: dict[str, list[float]] = {kernels: [] for kernels in KERNELS}
    for _ in range(rounds):
        for kernels in KERNELS:
            taken[kernels].append(draft_s(kernels, body, buffers[kernels], usual=usual) * 1e9)
    if buffers[PYTHON] != buffers[NATIVE]:
        raise SystemExit("the kernels do not make the same record")
    ratios = [slow / fast for slow, fast in zip(taken[PYTHON], taken[NATIVE], strict=True)]
    title = title_of(body_bytes, usual=usual, size_bytes=size_bytes)
    return f"| {title} | {spread(taken[PYTHON], 0)} | {spread(taken[NATIVE], 0)} | {spread(ratios, 1)} |"


def spread(values: Sequence[float], digits: int) -> str:
    """Returns the median, and the lowest and highest value."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def row(log: Log, rounds: int, times: int) -> str:
    """Measures one log, and returns a row of the table.

    Args:
        log: What is walked.
        rounds: How many.
        times: How often the native kernels walk within a round, to be measured as long as the others.
    """
    taken: dict[str, list[float]] = {kernels: [] for kernels in KERNELS}
    for _ in range(rounds):
        taken[PYTHON].append(walk_s(log, PYTHON))
        taken[NATIVE].append(sum(walk_s(log, NATIVE) for _ in range(times)) / times)
    rates = {kernels: [log.count / each / 1e6 for each in taken[kernels]] for kernels in KERNELS}
    gigabytes = {
        kernels: median([len(log.content) / each / 1e9 for each in taken[kernels]]) for kernels in KERNELS
    }
    ratios = [slow / fast for slow, fast in zip(taken[PYTHON], taken[NATIVE], strict=True)]
    return (
        f"| {log.title} | {spread(rates[PYTHON], 3)} | {gigabytes[PYTHON]:.2f} | {spread(rates[NATIVE], 1)}"
        f" | {gigabytes[NATIVE]:.2f} | {spread(ratios, 1)} |"
    )


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_kernels", description=__doc__)
    parser.add_argument("--size", type=float, default=1, help="1: logs of 8 MiB, the window of a scan")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args(arguments)
    if options.size < _MIN_SIZE or options.rounds < 1:
        parser.error(f"--size must be {_MIN_SIZE} or more, and --rounds 1 or more")
    page = Page("perf.bench_kernels", arguments, options.write)
    size_bytes = int(options.size * _LOG_BYTES_AT_SIZE_1)
    rows = [
        row(make_log(body_bytes, usual=usual, size_bytes=size_bytes), options.rounds, 10)
        for body_bytes in _BODY_SIZES
        for usual in (False, True)
    ]
    draft_rows = [
        draft_row(body_bytes, usual=usual, rounds=options.rounds)
        for body_bytes in _BODY_SIZES
        for usual in (False, True)
    ]
    lines = [
        f"Logs of {size_bytes:,} bytes in memory, {options.rounds} rounds, CPU time; medians (span).",
        "",
        "| body, records | Python, M records/s | GB/s | native, M records/s | GB/s | ratio |",
        "| --- | --- | --- | --- | --- | --- |",
        *rows,
        "",
        "A record made from its values (topic, body and properties as bytes), and written into the log:",
        "",
        "| body, records | Python, ns | native, ns | ratio |",
        "| --- | --- | --- | --- |",
        *draft_rows,
    ]
    page.say("Native kernels beside Python", lines, more=f"; CRC-32 by {_native.CRC32_WAY}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""``seglog bench``: measures the speed of a disk, in a folder that is removed afterwards."""

from __future__ import annotations

import math
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import click

from seglog.cli.admin.amounts import Size
from seglog.cli.admin.bench_measures import LEAST_SPACE_BYTES, Measure, measures
from seglog.cli.ui import options, render
from seglog.errors import InvalidArgumentError

_PREFIX: Final = "seglog-bench-"
_MOST_BODY_BYTES: Final = 1 << 20
_HALF: Final = 0.5
_NEARLY_ALL: Final = 0.99


@click.command
@click.argument("folder", metavar="FOLDER", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--seconds",
    type=click.FloatRange(0.01, 3600),
    default=2.0,
    show_default=True,
    help="How long each of the five measures lasts, at most.",
)
@click.option(
    "--space",
    "space_bytes",
    type=Size(),
    default="512MiB",
    show_default=True,
    help="What is written to the disk at most; 64MiB at least.",
)
@click.option(
    "--body", "body_bytes", type=Size(), default="1k", show_default=True, help="Size of a message's body."
)
@options.as_json
def command(*, folder: Path, seconds: float, space_bytes: int, body_bytes: int, as_json: bool) -> None:
    """Measure what the disk of FOLDER gives to a store: puts, syncs and reads.

    Works in a folder of its own in FOLDER, such as the place of your store, and removes it at the end, also
    after Ctrl-C and SIGTERM. FOLDER itself is not changed, and may be a store in use.
    """
    _check(folder, seconds, space_bytes, body_bytes)
    with _ended_by_sigterm(), tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder) as place:
        taken = []
        for measure in measures(Path(place), seconds, space_bytes, body_bytes, time.perf_counter):
            if as_json:
                render.emit(_fields(measure, body_bytes))
            taken.append(measure)
    if not as_json:
        render.table(
            ("what", "times", "a second", "bytes a second", "median", "99 %"),
            [_row(measure) for measure in taken],
            numbers=("times", "a second", "bytes a second", "median", "99 %"),
        )
        render.say("reads are of what was written just now: of the page cache, as far as that has it")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Makes SIGTERM raise an exception, so that the folder is removed; by default it ends the process."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check(folder: Path, seconds: float, space_bytes: int, body_bytes: int) -> None:
    """Refuses arguments that cannot be measured.

    Raises:
        InvalidArgumentError: A time is no number, there is too little space, or a body is empty or too large.
    """
    if not math.isfinite(seconds):  # a range check would accept NaN
        raise InvalidArgumentError("--seconds: found no number", help="give --seconds 2, say")
    if space_bytes < LEAST_SPACE_BYTES:
        least = render.size_text(LEAST_SPACE_BYTES)
        raise InvalidArgumentError(
            f"--space: found {render.size_text(space_bytes)}, expected {least} or more",
            help="give --space 64MiB or more",
        )
    if not 0 < body_bytes <= _MOST_BODY_BYTES:
        most = render.size_text(_MOST_BODY_BYTES)
        raise InvalidArgumentError(
            f"--body: found {render.size_text(body_bytes)}, expected 1 byte to {most}",
            help="give --body 1k, say",
        )
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < space_bytes:
        raise InvalidArgumentError(
            f"{folder}: found {render.size_text(free_bytes)} free, expected {render.size_text(space_bytes)}",
            help="free space there, or give a smaller --space",
        )


def _fields(measure: Measure, body_bytes: int) -> dict[str, object]:
    return {
        "kind": "measure",
        "name": measure.name,
        "operations": measure.operations,
        "bytes": measure.size_bytes,
        "bodyBytes": body_bytes,
        "seconds": round(measure.took_s, 6),
        "perSecond": round(measure.per_second, 1),
        "bytesPerSecond": round(measure.bytes_per_second),
        "p50Us": _microseconds(measure.within_s(_HALF)),
        "p99Us": _microseconds(measure.within_s(_NEARLY_ALL)),
    }


def _microseconds(taken_s: float | None) -> float | None:
    return None if taken_s is None else round(taken_s * 1e6, 1)


def _row(measure: Measure) -> tuple[render.Cell, ...]:
    return (
        measure.title,
        render.count_text(measure.operations),
        render.count_text(round(measure.per_second)),
        render.size_text(measure.bytes_per_second),
        _time_text(measure.within_s(_HALF)),
        _time_text(measure.within_s(_NEARLY_ALL)),
    )


def _time_text(taken_s: float | None) -> str | None:
    return None if taken_s is None else f"{taken_s * 1e3:.3f} ms"

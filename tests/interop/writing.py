"""Runs the writer process, and ends it as a test wants: cleanly or with SIGKILL."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seglog.storage.format.index import IndexGeometry
from tests.interop.judge import DEFAULT_GEOMETRY, SMALL_GEOMETRY, Geometry, Line

ROOT = Path(__file__).parents[2]
LIMIT_S = 60


@dataclass(frozen=True)
class Written:
    """What a writer process had acknowledged when it ended.

    Attributes:
        queued: What must be served, in the order of writing.
        logged: Records of the log that no queue holds.
        max_phy_offset: End of the log at the ``ready`` line.
    """

    queued: list[Line]
    logged: list[Line]
    max_phy_offset: int


def store_options(geometry: Geometry) -> dict[str, Any]:
    """Returns the options of ``MessageStore.open`` for a geometry; RocketMQ's sizes are the defaults."""
    if geometry == DEFAULT_GEOMETRY:
        return {}
    return {
        "segment_size_bytes": geometry.segment_size_bytes,
        "queue_file_size_bytes": geometry.queue_file_size_bytes,
        "index_geometry": IndexGeometry(geometry.index_slots, geometry.index_entries),
    }


def write_store(
    path: Path,
    geometry: Geometry = SMALL_GEOMETRY,
    *,
    killed: bool = False,
    killed_after: int = 0,
    record_crc: bool | None = None,
) -> Written:
    """Lets a process of its own write a store of every kind of record.

    Args:
        path: Where.
        geometry: File sizes.
        killed: End it with SIGKILL while it waits, instead of cleanly.
        killed_after: End it with SIGKILL in the middle of writing, after so many further messages.
        record_crc: As in ``MessageStore.open``.
    """
    options = {"geometry": asdict(geometry), "record_crc": record_crc, "endless": killed_after > 0}
    command = [sys.executable, "-m", "tests.interop.writer", str(path), json.dumps(options)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [*_until_ready(process.stdout)]
        lines += [json.loads(text) for text in itertools.islice(process.stdout, killed_after)]
        if killed or killed_after:
            process.kill()
        process.stdin.close()
        # What it acknowledged before the signal reached it counts; a line that the signal cut does not.
        lines += [json.loads(text) for text in process.stdout if text.endswith("\n")]
        process.wait(LIMIT_S)
    assert process.returncode == (-9 if killed or killed_after else 0)
    (ready,) = (line for line in lines if line["kind"] == "ready")
    return Written(
        queued=[line for line in lines if line["kind"] == "queued"],
        logged=[line for line in lines if line["kind"] == "logged"],
        max_phy_offset=ready["maxPhyOffset"],
    )


def _until_ready(stdout: Iterable[str]) -> Iterator[Line]:
    for text in stdout:
        line: Line = json.loads(text)
        yield line
        if line["kind"] == "ready":
            return
    raise AssertionError("the writer ended early; what it said is above")

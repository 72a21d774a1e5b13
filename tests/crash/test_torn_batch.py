"""A process that dies in the middle of a batch leaves messages from its beginning, and nothing behind them.

What is written past the map of the log ends at a limit of the file's length, what is written through it at a
page that is not there; the kernel then kills the process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.kernels import NATIVE, PYTHON
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.machine.kernels import native
from tests.support.material.stores import SMALL_INDEX, read_all

ROOT = Path(__file__).resolve().parents[2]
SEGMENT_BYTES = 1 << 20

WRITER = """
    import os, resource, signal, sys
    from pathlib import Path
    from seglog.clock import VirtualClock
    from seglog.storage.writes.flush import Durability
    from seglog.storage.format.index.index import IndexGeometry
    from seglog.storage.store import MessageStore

    root, durability, log, body_bytes = sys.argv[1], Durability(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    is_past_map = sys.argv[5] == "past the map"
    store = MessageStore.open(
        root, segment_size_bytes=1 << 20, queue_file_size_bytes=20000, index_geometry=IndexGeometry(50, 200),
        record_crc=False, clock=VirtualClock(1_800_000_000_000))
    for _ in range(2):
        store.put_batch("T", [b"early"] * 2)
    middle = 8 * 4096
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if is_past_map:
        resource.setrlimit(resource.RLIMIT_FSIZE, (middle, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    else:
        os.truncate(log, middle)
    store.put_batch("T", [b"%d:" % n + bytes(body_bytes) for n in range(10, 74)], durability=durability)
"""


@pytest.mark.parametrize(
    ("kernels", "durability", "body_bytes", "way", "death"),
    [
        (NATIVE, "sync", 500, "past the map", signal.SIGXFSZ),
        (NATIVE, "sync", 1800, "past the map", signal.SIGXFSZ),
        (NATIVE, "async", 500, "map", signal.SIGBUS),
        (NATIVE, "async", 1800, "past the map", signal.SIGXFSZ),  # a large batch
        (PYTHON, "async", 500, "map", signal.SIGBUS),
        (PYTHON, "async", 1800, "map", signal.SIGBUS),
    ],
)
def test_death_in_a_batch_leaves_only_its_first_messages(
    tmp_path, kernels, durability, body_bytes, way, death
):
    if kernels == NATIVE:
        native()
    root = tmp_path / "store"
    log = root / COMMIT_LOG / segment_file_name(0)
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(root), durability, str(log)]
    ran = subprocess.run(
        [*command, str(body_bytes), way],
        cwd=ROOT,
        env={**os.environ, "SEGLOG_KERNEL": kernels},
        capture_output=True,
        check=False,
    )
    assert -ran.returncode == death, ran.stderr
    os.truncate(log, SEGMENT_BYTES)
    found = survey(root, RealFiles())
    assert found.holes == []
    assert [finding for finding in found.findings if finding.severity is Severity.LOSS] == []
    with MessageStore.open(root, **SMALL_INDEX) as store:
        bodies = [message.body.partition(b":")[0] for message in read_all(store, "T", 0)]
        assert bodies[:4] == [b"early"] * 4
        assert bodies[4:] == [b"%d" % number for number in range(10, 10 + len(bodies) - 4)]
        assert store.put("T", b"late").queue_offset == len(bodies)

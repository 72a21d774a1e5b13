"""Another process cuts a file of an open store: a clear error instead of SIGBUS, and the next open works."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from seglog.storage.store import MessageStore
from tests.support.machine.patience import patience_s

ROOT = Path(__file__).resolve().parents[3]

# Fills a store, has another process cut a file of it, and goes on; dies by SIGBUS where nothing prevents it.
PROGRAM = """
    import asyncio, subprocess, sys
    from seglog.errors import StoreFailedError, TruncatedError
    from seglog.storage.store import MessageStore

    root, cut, size, kind = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]

    def puts(store):
        for number in range(60):
            store.put("T", b"%d" % number + bytes(2000))

    def gets(store):
        at = store.min_offset("T", 0)
        while at < store.max_offset("T", 0):
            result = store.get("T", 0, at)
            [message.body for message in result]
            at = result.next_offset

    store = MessageStore.open(
        root, segment_size_bytes=65536, queue_file_size_bytes=200_000, flush_interval_ms=5)
    puts(store)
    gets(store)
    subprocess.run(["truncate", "-s", size, root + "/" + cut], check=True)
    try:
        if kind == "put":
            puts(store)
        elif kind == "put_async":
            async def flight():
                await asyncio.gather(*(store.put_async("T", bytes(2000)) for _ in range(60)))
            asyncio.run(flight())
        elif kind == "reader":
            with MessageStore.open(root, read_only=True) as reader:
                gets(reader)
        else:
            gets(store)
        print("served")
    except (TruncatedError, StoreFailedError) as error:
        print(type(error).__name__, error)
    try:
        store.close()
        print("closed")
    except (TruncatedError, StoreFailedError) as error:
        print("close", type(error).__name__)
"""


def run(root, cut, size, kind):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(root), cut, size, kind],
        cwd=ROOT, capture_output=True, text=True, timeout=patience_s(100), check=False,
    )  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("size", ["0", "4096"])
@pytest.mark.parametrize("kind", ["put", "put_async"])
@pytest.mark.parametrize(
    "cut", ["commitlog/00000000000000065536", "consumequeue/T/0/00000000000000000000"], ids=["log", "queue"]
)
def test_writer_stops_with_a_clear_error(tmp_path, cut, size, kind):
    ran = run(tmp_path / "store", cut, size, kind)
    assert ran.returncode == 0, (ran.returncode, ran.stderr)
    assert ran.stdout.startswith("StoreFailedError writing failed"), ran.stdout
    assert f"/{Path(cut).name} +{size}: cut-by-others" in ran.stdout
    assert ran.stdout.endswith("close StoreFailedError\n")
    with MessageStore.open(tmp_path / "store") as again:
        assert again.recovery.mode == "abnormal"
        assert again.put("T", b"goes on").queue_offset >= 30


@pytest.mark.parametrize(
    "cut",
    [
        "commitlog/00000000000000000000",
        "commitlog/00000000000000065536",
        "consumequeue/T/0/00000000000000000000",
    ],
    ids=["first of the log", "last of the log", "queue"],
)
def test_reads_of_the_writing_process_fail_clearly(tmp_path, cut):
    ran = run(tmp_path / "store", cut, "4096", "get")
    assert ran.returncode == 0, (ran.returncode, ran.stderr)
    assert ran.stdout.startswith("TruncatedError"), ran.stdout
    assert f"{Path(cut).name} +4096: cut-by-others: found 4096" in ran.stdout


@pytest.mark.parametrize("size", ["0", "4096"])
def test_reader_serves_what_is_left(tmp_path, size):
    ran = run(tmp_path / "store", "commitlog/00000000000000065536", size, "reader")
    assert ran.returncode == 0, (ran.returncode, ran.stderr)
    assert ran.stdout.startswith("served")

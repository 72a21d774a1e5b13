"""Real file systems that lose power, and a real disk that loses a write: what was acknowledged is there.

The file systems are shut down under the writer, which drops all that is not on the disk, journal included,
and mounted again. ``pytest --full`` does it a hundred times as often.
"""

from __future__ import annotations

import itertools
import os
import select
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from seglog.errors import StoreFailedError
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from seglog.storage.writes.flush import Durability
from tests.support.machine.children import child
from tests.support.machine.disks import disk, drop_caches, fill, thin_disk, why_not
from tests.support.material.stores import new_clock, read_all, served
from tests.support.narrow import not_none
from tests.support.scale import chance, scaled

ROOT = Path(__file__).resolve().parents[2]
SYNC = Durability.SYNC

# Numbers its messages and reports each once it is acknowledged; ends when the disk is gone.
WRITER = """
    import asyncio, os, sys, threading
    from seglog.errors import SeglogError
    from seglog.storage.writes.flush import Durability
    from seglog.storage.format.index.index import IndexGeometry
    from seglog.storage.store import MessageStore

    root, kind, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    durability = Durability.ASYNC if kind == "async" else Durability.SYNC
    store = MessageStore.open(
        root, segment_size_bytes=65536, queue_file_size_bytes=2000, index_geometry=IndexGeometry(50, 200),
        durability=durability, flush_interval_ms=5)
    os.write(1, b"ready\\n")

    def put(number):
        result = store.put("T%d" % (number % 3), b"%d:" % number + b"x" * (number % 1500))
        os.write(1, b"%d %d\\n" % (number, result.phy_offset))

    async def put_async(number):
        result = await store.put_async("T%d" % (number % 3), b"%d:" % number + b"x" * (number % 1500))
        os.write(1, b"%d %d\\n" % (number, result.phy_offset))

    async def flights(number):
        while True:
            await asyncio.gather(*(put_async(number + i) for i in range(64)))
            number += 64

    def one_by_one(number, step):
        while True:
            put(number)
            number += step

    try:
        if kind == "asyncio":
            asyncio.run(flights(number))
        elif kind == "threads":
            for n in range(3):
                threading.Thread(target=one_by_one, args=(number + n, 4), daemon=True).start()
            one_by_one(number + 3, 4)
        else:
            one_by_one(number, 1)
    except SeglogError:
        os._exit(7)
"""


@pytest.fixture
def folder():
    """A folder in memory for the images: what a disk has is up to the file system in them."""
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as name:
        yield Path(name)


def live_and_lose_power(mounted, kind, number, delay_s):
    """Lets a writer run on a disk until its power goes; returns what it acknowledged before, and after.

    A machine without power acknowledges nothing. Here the process goes on for a moment, and ext4 lets a sync
    succeed that meets the shutdown half-way, whose extent it then cannot convert.
    """
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(mounted.path / "store"), kind, str(number)]
    with child(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as writer:
        try:
            assert not_none(writer.stdout).readline() == b"ready\n"
            before = _drain(not_none(writer.stdout).fileno(), delay_s)
            mounted.lose_power()
        finally:
            writer.kill()
            after = not_none(writer.stdout).read()
    whole, _newline, part = before.rpartition(b"\n")
    return _acks(whole), _acks((part + after).rpartition(b"\n")[0])


def _drain(descriptor, seconds):
    """Returns what comes through a pipe within some time; ends when nothing is left for the moment."""
    read = b""
    end = time.monotonic() + seconds
    while select.select([descriptor], [], [], max(0, end - time.monotonic()))[0]:
        more = os.read(descriptor, 65536)
        read += more
        if not more or time.monotonic() > end + 1:
            break
    return read


def _acks(lines):
    return {int(number): int(phy_offset) for number, phy_offset in map(bytes.split, lines.splitlines())}


@pytest.mark.parametrize("file_system", ["ext4", "xfs"])
def test_nothing_acknowledged_is_lost_with_the_power(folder, file_system):
    if (reason := why_not(file_system)) is not None:
        pytest.skip(reason)
    draw = chance("real disk", file_system)
    first = draw.randrange(4)
    acked: dict[int, int] = {}
    found: dict[int, int] = {}
    with disk(folder, file_system, 320) as mounted:
        for turn in itertools.count():
            if turn >= scaled(4, 250) and len(acked) > 100:
                break
            kind = ("one", "asyncio", "threads", "async")[(first + turn) % 4]
            news, late = live_and_lose_power(mounted, kind, 1_000_000 * turn, 0.3 * draw.random())
            everything = news | late
            mounted.unmount()
            mounted.mount()
            before = found
            with MessageStore.open(mounted.path / "store") as store:
                assert store.recovery.mode == "abnormal"
                found = {
                    int(message.body.partition(b":")[0]): message.phy_offset
                    for queue in served(store).values()
                    for message in queue
                }
            assert before.items() <= found.items(), "what was served and closed is gone"
            if kind == "async":
                # A flush may be a moment away, but what is lost is what came last.
                there = [phy_offset for number, phy_offset in everything.items() if number in found]
                gone = [phy_offset for number, phy_offset in everything.items() if number not in found]
                assert not gone or not there or max(there) < min(gone)
                news = {number: phy_offset for number, phy_offset in news.items() if number in found}
            acked |= news
            assert acked.items() <= found.items(), f"turn {turn}, {kind}"
            # Where queue units outlived their messages, their offsets are not given again, and it is told.
            assert {f.code for f in survey(mounted.path / "store", RealFiles()).findings} <= {"tombstones"}


def test_disk_that_loses_a_write_and_says_so_once_gets_no_second_chance(folder):
    if (reason := why_not("ext4")) is not None:
        pytest.skip(reason)
    with thin_disk(folder) as (mounted, ballast):
        path = mounted.path
        store = MessageStore.open(
            path / "store", segment_size_bytes=1 << 20, clock=new_clock(), durability=SYNC
        )
        acked = [store.put("T", b"%d" % number + bytes(5000)).queue_offset for number in range(5)]
        fill(ballast)
        refused = 0
        for attempt in range(20):
            if attempt == 10:
                ballast.unlink()  # the disk is as good as new, and a sync would succeed
            try:
                store.put("T", b"%d" % (5 + attempt) + bytes(5000))
                assert not refused, "acknowledged after a failed sync"
                acked.append(5 + attempt)
            except StoreFailedError as error:
                refused += 1
                assert "sync of commitlog/" in str(error)  # noqa: PT017 - one of many attempts
        assert refused >= 10
        assert [message.queue_offset for message in read_all(store, "T", 0)][: len(acked)] == acked
        with pytest.raises(StoreFailedError):
            store.close()
        assert (path / "store" / "abort").exists()
        mounted.unmount()  # the file system may have turned read-only, and its cache is not to be believed
        mounted.mount()
        with MessageStore.open(path / "store") as again:
            assert again.recovery.mode == "abnormal"
            kept = [int(message.body.rstrip(b"\0")) for message in read_all(again, "T", 0)]
            assert kept[: len(acked)] == acked
            put = again.put("T", b"next", durability=SYNC)
        drop_caches()
        with MessageStore.open(path / "store") as again:
            assert read_all(again, "T", 0)[-1].phy_offset == put.phy_offset


def test_sync_again_after_a_failed_one_would_have_lied(folder):
    """The disk of the test above does what the latch is there for; else that test would show nothing."""
    if (reason := why_not("ext4")) is not None:
        pytest.skip(reason)
    with thin_disk(folder) as (mounted, ballast):
        path = mounted.path
        file = RealFiles().create(path / "file", 1 << 20)
        file.reserve(0, 1 << 20)
        file.sync()
        fill(ballast)
        file.write_at(b"new", 8192)
        with pytest.raises(OSError, match=r"No space left|Input/output"):
            file.sync()
        ballast.unlink()
        file.sync()
        file.close()
        assert (path / "file").read_bytes()[8192:8195] == b"new"
        drop_caches()
        assert (path / "file").read_bytes()[8192:8195] == bytes(3)

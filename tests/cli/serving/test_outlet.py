"""What is written to a descriptor keeps no thread waiting, and what could not be written is counted."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from seglog.cli.serving.outlet import CLOSE_S, Outlet
from tests.support.machine.patience import wait_until


def missing(count: int) -> str:
    return f"{count} missing\n"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe, reading end first; a test may close either."""
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


def all_of(reading: int) -> list[str]:
    """Returns the lines that come until the pipe has no writer."""
    with open(reading, closefd=False) as lines:
        return lines.read().splitlines()


def fill(writing: int) -> int:
    """Writes into a pipe until nothing more fits; returns how many bytes did."""
    os.set_blocking(writing, False)
    size_bytes = 0
    with suppress(BlockingIOError):
        while True:
            size_bytes += os.write(writing, b"#" * 512)
    os.set_blocking(writing, True)
    return size_bytes


def test_lines_come_in_the_order_in_which_they_were_given(pipe):
    reading, writing = pipe
    wanted = [f"{number} {'x' * (number % 7_000)}" for number in range(500)]
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.extend(all_of(reading)))
    reader.start()
    with Outlet(writing, "out", missing, most_bytes=1 << 24) as outlet:
        for line in wanted:
            outlet.put(f"{line}\n")
    os.close(writing)
    reader.join()
    assert got == wanted


def test_lines_that_nobody_reads_are_counted_where_they_would_stand(pipe):
    reading, writing = pipe
    filled_bytes = fill(writing)
    outlet = Outlet(writing, "out", missing, most_bytes=1_000)
    began_s = time.monotonic()
    for number in range(10_000):
        outlet.put(f"{number:09}\n")
    assert time.monotonic() - began_s < 30
    got: list[str] = []

    def read() -> None:
        assert os.read(reading, filled_bytes)
        got.extend(all_of(reading))

    reader = threading.Thread(target=read)
    reader.start()
    wait_until(lambda: not outlet._waiting_bytes)
    outlet.put("after\n")
    outlet.close()
    os.close(writing)
    reader.join()
    lines = [line.lstrip("#") for line in got if line.lstrip("#")]
    kept = [line for line in lines if line.isdigit()]
    counts = [int(line.partition(" ")[0]) for line in lines if line.endswith("missing")]
    assert kept == sorted(kept)
    assert kept[:99] == [f"{number:09}" for number in range(99)]
    assert len(kept) + sum(counts) == 10_000
    assert counts
    assert lines[-1] == "after"


def test_a_close_does_not_wait_for_who_does_not_read(pipe):
    fill(pipe[1])
    outlet = Outlet(pipe[1], "out", missing)
    outlet.put("x\n")
    began_s = time.monotonic()
    outlet.close()
    assert CLOSE_S * 0.7 <= time.monotonic() - began_s < CLOSE_S + 20
    assert not outlet._thread.is_alive()
    outlet.put("y\n")  # it is closed: nothing takes it


def test_nothing_is_lost_where_only_the_machine_is_slow(pipe):
    """The thread gets the interpreter later than a close would wait for a reader."""
    reading, writing = pipe
    before_s, stop = sys.getswitchinterval(), threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(100))

    spinning = [threading.Thread(target=spin) for _ in range(4)]
    sys.setswitchinterval(CLOSE_S / 5)
    try:
        outlet = Outlet(writing, "out", missing)
        for each in spinning:
            each.start()
        outlet.put("last\n")
        outlet.close()
    finally:
        stop.set()
        sys.setswitchinterval(before_s)
        for each in spinning:
            each.join()
    os.close(writing)
    assert all_of(reading) == ["last"]


def test_a_reader_that_has_gone_is_said_once_and_nothing_is_kept_for_it(pipe, caplog):
    os.close(pipe[0])
    with caplog.at_level(logging.WARNING, "seglog"):
        outlet = Outlet(pipe[1], "stdout", missing)
        outlet.put("x\n")
        outlet._thread.join()
        outlet.put("y\n")
        outlet.close()
    assert [record.getMessage() for record in caplog.records] == [
        "stdout has no reader any more; nothing is written there from now on"
    ]
    assert not outlet._waiting


def test_what_a_full_disk_has_not_taken_is_counted_once_there_is_room(pipe):
    reading, writing = pipe
    full = os.open("/dev/full", os.O_WRONLY)
    outlet = Outlet(full, "out", missing)
    for _ in range(3):
        outlet.put("x\n")
    wait_until(lambda: outlet._missing_count == 3)
    os.dup2(writing, full)
    os.close(writing)
    outlet.put("after\n")
    outlet.close()
    os.close(full)
    assert all_of(reading) == ["3 missing", "after"]


def test_a_descriptor_that_does_not_wait_gets_all(pipe):
    reading, writing = pipe
    fill(writing)
    os.set_blocking(writing, False)
    got: list[str] = []
    with Outlet(writing, "out", missing) as outlet:
        outlet.put("\n" + "x" * 20_000 + "\n")
        reader = threading.Thread(target=lambda: got.extend(all_of(reading)))
        reader.start()
    os.close(writing)
    reader.join()
    assert got[1:] == ["x" * 20_000]

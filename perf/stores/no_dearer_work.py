"""One cell of :mod:`perf.bench_no_dearer`, run as a program: ``no_dearer_work.py ROW FOLDER COUNT``.

It imports the ``seglog`` that ``PYTHONPATH`` leads to, and of this repository nothing else: an older version
is measured by the same program. Prints seconds, CPU seconds and the count of what was done as JSON.
"""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

# By names that older versions have too.
from seglog import Durability, MessageStore
from seglog.doctor.check import check_store

COUNTING: Final = "SEGLOG_PERF_COUNTS"
"""A variable of the environment that is set while callgrind runs this program."""
TOPIC: Final = "bench"
QUEUES: Final = 4
_BODY: Final = b"b" * 128
_LONG_BODY: Final = b"b" * 1024
_NEVER_MS: Final = 3_600_000
_PULL: Final = 32
_BATCH: Final = 256


def open_store(folder: Path) -> MessageStore:
    """Opens a store whose flushes are those that the work asks for."""
    return MessageStore.open(folder, segment_size_bytes=64 << 20, flush_interval_ms=_NEVER_MS)


def fill(folder: Path, count: int) -> None:
    """Makes a store of messages with keys, and leaves it as a kill does."""
    store = open_store(folder)
    for number in range(count):
        store.put(TOPIC, _BODY, queue_id=number % QUEUES, keys=f"k{number}")
    store.flush()
    store.query(TOPIC, "k0")  # the index is at the end
    os._exit(0)


def fill_small(folder: Path, count: int) -> None:
    """Makes a store of few messages, in one file of the log, and leaves it as a kill does."""
    store = open_store(folder)
    for number in range(count):
        store.put(TOPIC, _BODY, queue_id=number % QUEUES)
    store.flush()
    os._exit(0)


def fill_queues(folder: Path, count: int) -> None:
    """Makes a store of many queues with one message each, and leaves it as a kill does."""
    store = MessageStore.open(
        folder, segment_size_bytes=64 << 20, queue_file_size_bytes=600_000, flush_interval_ms=_NEVER_MS
    )
    for number in range(count):
        store.put(f"{TOPIC}{number // 100}", _BODY, queue_id=number % 100)
    store.flush()
    os._exit(0)


def put(folder: Path, count: int) -> Callable[[], None]:
    """Puts one by one."""
    store = open_store(folder)
    store.put(TOPIC, _BODY)

    def work() -> None:
        for _ in range(count):
            store.put(TOPIC, _BODY)

    return work


def batch(folder: Path, count: int) -> Callable[[], None]:
    """Puts batches; the count is that of messages."""
    store = open_store(folder)
    messages = [_BODY] * _BATCH
    store.put_batch(TOPIC, messages)

    def work() -> None:
        for _ in range(count // _BATCH):
            store.put_batch(TOPIC, messages)

    return work


def sync(folder: Path, count: int) -> Callable[[], None]:
    """Puts one by one, each on the disk before the next."""
    store = open_store(folder)
    store.put(TOPIC, _LONG_BODY, durability=Durability.SYNC)

    def work() -> None:
        for _ in range(count):
            store.put(TOPIC, _LONG_BODY, durability=Durability.SYNC)

    return work


def sync_batch(folder: Path, count: int) -> Callable[[], None]:
    """Puts batches of 32, each on the disk before the next; the count is that of messages."""
    store = open_store(folder)
    messages = [_LONG_BODY] * _PULL
    store.put_batch(TOPIC, messages, durability=Durability.SYNC)

    def work() -> None:
        for _ in range(count // _PULL):
            store.put_batch(TOPIC, messages, durability=Durability.SYNC)

    return work


def pull(folder: Path, count: int) -> Callable[[], None]:
    """Pulls 32 after 32 and takes every body."""
    store = open_store(folder)
    end = store.max_offset(TOPIC, 0)
    store.get(TOPIC, 0, 0)

    def work() -> None:
        done = 0
        while done < count:
            at = done % (end - _PULL)
            for message in store.get(TOPIC, 0, at, _PULL):
                done += len(message.body) and 1

    return work


def random_get(folder: Path, count: int) -> Callable[[], None]:
    """Gets one message anywhere."""
    store = open_store(folder)
    end = store.max_offset(TOPIC, 0)
    chance = random.Random(1)
    places = [chance.randrange(end) for _ in range(count)]
    store.get(TOPIC, 0, 0)

    def work() -> None:
        for place in places:
            for message in store.get(TOPIC, 0, place, 1):
                _ = message.body

    return work


def query(folder: Path, count: int) -> Callable[[], None]:
    """Finds messages by key."""
    return _query(open_store(folder), count)


def query_read_only(folder: Path, count: int) -> Callable[[], None]:
    """Finds messages by key in a store that is open for reading."""
    return _query(MessageStore.open(folder, read_only=True), count)


def _query(store: MessageStore, count: int) -> Callable[[], None]:
    store.query(TOPIC, "k0")

    def work() -> None:
        for number in range(count):
            if len(store.query(TOPIC, f"k{number * 7}")) != 1:
                raise SystemExit("a key was not found")

    return work


def reopen(folder: Path, _count: int) -> Callable[[], None]:
    """Opens what a kill left; all of the log is walked."""

    def work() -> None:
        MessageStore.open(folder, recovery_step_bytes=0)

    return work


def check(folder: Path, _count: int) -> Callable[[], None]:
    """Checks a store."""

    def work() -> None:
        check_store(folder)

    return work


ROWS: Final[dict[str, Callable[[Path, int], Callable[[], None]]]] = {
    "put": put,
    "batch": batch,
    "sync": sync,
    "sync batch": sync_batch,
    "pull": pull,
    "random get": random_get,
    "query": query,
    "query read only": query_read_only,
    "reopen": reopen,
    "reopen small": reopen,
    "open queues": reopen,
    "check": check,
}
"""What is measured, by name; from ``pull`` on of a store that was filled before."""
FILLS: Final[dict[str, Callable[[Path, int], None]]] = {
    "fill": fill,
    "fill small": fill_small,
    "fill queues": fill_queues,
}
"""What makes the stores that are read."""


def count_instructions(state: str) -> None:
    """Has callgrind count from here on, or no more; only if it runs this program."""
    if COUNTING in os.environ:
        command = ["callgrind_control", "-i", state, str(os.getpid())]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main(row: str, folder: Path, count: int) -> None:
    """Does the work of a row, or fills a store."""
    if row in FILLS:
        FILLS[row](folder, count)
    work = ROWS[row](folder, count)
    gc.collect()  # a collection of what imports made would fall within the work of one version only
    gc.freeze()
    count_instructions("on")
    cpu, begun = time.process_time(), time.perf_counter()
    work()
    count_instructions("off")
    print(json.dumps([time.perf_counter() - begun, time.process_time() - cpu]), flush=True)
    os._exit(0)  # a store is left as it is: closing it is not measured


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))

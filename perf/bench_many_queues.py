"""``python -m perf.bench_many_queues``: a broker with very many queues and groups; prints a table.

A process that may have 1,024 files open makes the store; another one opens it, commits every offset
and saves them. Each group has offsets in up to 100 queues.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from perf.figures.page import Page
from seglog.broker.broker import Broker
from seglog.broker.tables.topics import TopicConfig
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import SendMessageHeader
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.names import CONFIG, CONSUME_QUEUE

OPEN_FILES: Final = 1_024
QUEUES_A_GROUP: Final = 100
_QUEUES_A_TOPIC: Final = 100
_BODY: Final = bytes(100)

Figures = dict[str, float]

_ROWS: Final = {
    "open_s": ("open the broker", "s", 1.0),
    "open_cpu_s": ("CPU time of that", "s", 1.0),
    "bytes_a_queue": ("memory for each queue, with its offsets", "KiB", 1024),
    "disk_bytes_a_queue": ("disk for each queue of a message", "KiB", 1024),
    "commit_s": ("commit every offset", "s", 1.0),
    "save_s": ("save them, with their history", "s", 1.0),
    "commit_and_save_cpu_s": ("CPU time of both", "s", 1.0),
    "save_again_s": ("save again after one more commit", "s", 1.0),
    "queues_s": ("list the queues", "s", 1.0),
}


def make(root: Path, queues: int, groups: int) -> None:
    """Makes a store with a message in each queue, and groups with offsets."""
    topics = [f"topic{number}" for number in range(-(-queues // _QUEUES_A_TOPIC))]
    places = [(topic, queue_id) for topic in topics for queue_id in range(min(_QUEUES_A_TOPIC, queues))][
        :queues
    ]
    with Broker.open(root, background=False) as broker:
        for topic in topics:
            broker.topics.put(TopicConfig(topic, _QUEUES_A_TOPIC, _QUEUES_A_TOPIC))
        for topic, queue_id in places:
            header = SendMessageHeader("pg", topic, "TBW102", 4, queue_id, 0, 0, 0)
            broker.dispatch(Request(RequestCode.SEND_MESSAGE_V2, header, _BODY))
        for group in range(groups):
            broker.groups.put(SubscriptionGroup(f"group{group}"))
            for number in range(min(QUEUES_A_GROUP, len(places))):
                topic, queue_id = places[(group * 7 + number) % len(places)]
                broker.offsets.commit(f"group{group}", topic, queue_id, 0, "client")


def measure(root: Path) -> Figures:
    """Measures the store once, and switches every offset between 0 and 1."""
    gc.collect()
    before_bytes, begun_cpu, begun = _anonymous_bytes(), time.process_time(), time.perf_counter()
    broker = Broker.open(root, background=False)
    figures: Figures = {"open_s": time.perf_counter() - begun, "open_cpu_s": time.process_time() - begun_cpu}
    with broker:
        gc.collect()
        begun = time.perf_counter()
        count = len(broker.store.queues())
        figures["queues_s"] = time.perf_counter() - begun
        figures["bytes_a_queue"] = (_anonymous_bytes() - before_bytes) / count
        offsets = broker.offsets.all()
        begun_cpu, begun = time.process_time(), time.perf_counter()
        for (group, topic, queue_id), offset in offsets.items():
            broker.offsets.commit(group, topic, queue_id, 1 - offset, "client")
        figures["commit_s"] = time.perf_counter() - begun
        begun = time.perf_counter()
        broker.persist()
        figures["save_s"] = time.perf_counter() - begun
        figures["commit_and_save_cpu_s"] = time.process_time() - begun_cpu
        (group, topic, queue_id), offset = next(iter(offsets.items()))
        broker.offsets.commit(group, topic, queue_id, offset, "client")
        begun = time.perf_counter()
        broker.persist()
        figures["save_again_s"] = time.perf_counter() - begun
    figures["queues"], figures["offsets"] = count, len(offsets)
    figures["disk_bytes_a_queue"] = _disk_bytes(root / CONSUME_QUEUE) / count
    figures["config_bytes"] = _disk_bytes(root / CONFIG)
    return figures


def in_child(what: str, root: Path, queues: int, groups: int) -> Figures:
    """Makes or measures a store in a process of its own with few descriptors."""
    command = [sys.executable, "-m", "perf.bench_many_queues", "--child", what, "--dir", str(root)]
    command += ["--queues", str(queues), "--groups", str(groups)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: Figures = json.loads(done.stdout or "{}")
    return found


def _child(what: str, root: Path, queues: int, groups: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    if what == "make":
        make(root, queues, groups)
    else:
        print(json.dumps(measure(root)))


def _anonymous_bytes() -> int:
    """Returns the memory of this process, after glibc has returned freed memory to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("this kernel does not say how much memory is anonymous")


def _disk_bytes(folder: Path) -> int:
    entries = (folder, *folder.rglob("*"))
    return sum(entry.stat().st_blocks * 512 for entry in entries)


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_many_queues", description=__doc__)
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", type=Path, help="where the store is made")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--child", choices=["make", "measure"], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        _child(options.child, options.dir, options.queues, options.groups)
        return
    page = Page("perf.bench_many_queues", arguments, options.write)
    with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=options.dir) as directory:
        root = Path(directory) / "store"
        in_child("make", root, options.queues, options.groups)
        rounds = [in_child("measure", root, options.queues, options.groups) for _ in range(options.rounds)]
    lines = [
        (
            f"{options.queues:,} queues, {options.groups:,} groups, {int(rounds[0]['offsets']):,} offsets;"
            f" {options.rounds} rounds, medians (lowest–highest). At most {OPEN_FILES:,} files are open."
            f" All config files together take {rounds[0]['config_bytes'] / 1e6:.1f} MB."
        ),
        "",
        "| | | |",
        "| --- | --- | --- |",
        *[_row(name, [figures[name] for figures in rounds]) for name in _ROWS],
    ]
    page.say("Very many queues and groups", lines)


def _row(name: str, values: Sequence[float]) -> str:
    title, unit, scale = _ROWS[name]
    low, middle, high = (pick(values) / scale for pick in (min, median, max))
    return f"| {title} | {middle:.3g} ({low:.3g}–{high:.3g}) | {unit} |"


if __name__ == "__main__":
    main(sys.argv[1:])

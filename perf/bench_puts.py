"""``python -m perf.bench_puts``: how long single puts take across new files, and puts on the disk by asyncio.

The first table is about the worst puts, not the mean: one thread puts over many rolls of the log, and the
puts that began a new file are counted once more by themselves.
The second has hundreds of puts in flight on shared syncs, from an event loop and from threads, and the
ratio of the two. ``--against CHECKOUT`` measures another checkout in turn with this one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

_ROOT: Final = Path(__file__).resolve().parent.parent
_BODY: Final = bytes(1024)
_SEGMENT_BYTES: Final = 32 << 20
_LIMIT_S: Final = 600
IN_FLIGHT: Final = (1, 16, 512)
PERCENTILES: Final = (50.0, 99.0, 99.9, 100.0)


def rolls(directory: Path, size: float) -> dict[str, float]:
    """Puts over rolls of the log; returns percentiles of one put in µs, and of those that began a file."""
    from seglog.storage.store import MessageStore

    taken: list[int] = []
    rolled: list[int] = []
    with MessageStore.open(directory, segment_size_bytes=_SEGMENT_BYTES) as store:
        segment = 0
        for _ in range(int(size * 80_000)):
            begun = time.perf_counter_ns()
            put = store.put("Timed", _BODY)
            taken.append(time.perf_counter_ns() - begun)
            if put.phy_offset // _SEGMENT_BYTES != segment:
                segment = put.phy_offset // _SEGMENT_BYTES
                rolled.append(taken[-1])
    if len(rolled) != segment:
        raise SystemExit(f"{segment} files, but {len(rolled)} puts that began one")
    taken.sort()
    found = {f"p{at:g}": taken[min(len(taken) - 1, int(len(taken) * at / 100))] / 1e3 for at in PERCENTILES}
    return found | {"roll": median(rolled) / 1e3, "worst roll": max(rolled) / 1e3}


def rates(directory: Path, seconds: float) -> dict[str, float]:
    """Returns acknowledged SYNC puts a second, by way and number in flight."""
    from seglog.storage.flush import Durability
    from seglog.storage.store import MessageStore

    found: dict[str, float] = {}
    with MessageStore.open(directory, durability=Durability.SYNC) as store:
        for count in IN_FLIGHT:
            found[f"threads {count}"] = _by_threads(store.put, count, seconds)
            if hasattr(store, "put_async"):
                found[f"asyncio {count}"] = asyncio.run(_by_tasks(store, count, seconds))
        if sum(queue.max_offset for queue in store.queues()) < sum(found.values()) * seconds / 2:
            raise SystemExit("fewer messages than acknowledgements")
    return found


def _by_threads(put: object, count: int, seconds: float) -> float:
    assert callable(put)
    done: list[int] = []
    end = time.perf_counter() + seconds

    def work() -> None:
        mine = 0
        while time.perf_counter() < end:
            put("T", _BODY)
            mine += 1
        done.append(mine)

    threads = [threading.Thread(target=work) for _ in range(count)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - begun)


async def _by_tasks(store: object, count: int, seconds: float) -> float:
    from seglog.storage.store import MessageStore

    assert isinstance(store, MessageStore)
    done = 0
    end = time.perf_counter() + seconds

    async def work() -> None:
        nonlocal done
        while time.perf_counter() < end:
            await store.put_async("T", _BODY)
            done += 1

    begun = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(count)))
    return done / (time.perf_counter() - begun)


def _child(kind: str, size: float, checkout: Path, folder: Path | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=folder) as directory:
        request = json.dumps({"kind": kind, "size": size, "directory": directory, "checkout": str(checkout)})
        done = subprocess.run(
            [sys.executable, "-m", "perf.bench_puts", "--child", request],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"no figures: {done.stderr}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _serve(request: dict[str, str | float]) -> None:
    """Measures in this process, with the seglog of the checkout that was asked for."""
    sys.path.insert(0, str(request["checkout"]))
    directory, size = Path(str(request["directory"])) / "store", float(request["size"])
    print(json.dumps(rolls(directory, size) if request["kind"] == "rolls" else rates(directory, size / 2)))


def _cell(values: Sequence[float], digits: int = 0) -> str:
    return f"{median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_puts", description=__doc__)
    parser.add_argument(
        "--size", type=float, default=4, help="1: 80,000 puts over 2 rolls, half a second each"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="the seglog of another checkout too")
    parser.add_argument("--dir", type=Path, help="where stores are made")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        _serve(json.loads(options.child))
        return
    checkouts = {"seglog": _ROOT}
    if options.against is not None:
        checkouts["other checkout"] = options.against.resolve()
    found: dict[str, dict[str, list[dict[str, float]]]] = {name: {} for name in checkouts}
    load = os.getloadavg()[0]
    for _ in range(options.rounds):
        for kind in ("rolls", "rates"):
            for name, checkout in checkouts.items():
                taken = _child(kind, options.size, checkout, options.dir)
                found[name].setdefault(kind, []).append(taken)
    print(
        f"`python -m perf.bench_puts {' '.join(arguments)}`: {options.rounds} rounds, {os.cpu_count()} cores,"
    )
    print(f"Python {platform.python_version()}, load {load:.1f} to {os.getloadavg()[0]:.1f};")
    print("medians of the rounds (lowest–highest).")
    print(
        f"\n| µs a put, files of {_SEGMENT_BYTES >> 20} MiB | p50 | p99 | p99.9 | max | at a roll | worst |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    columns = [*(f"p{at:g}" for at in PERCENTILES), "roll", "worst roll"]
    for name, kinds in found.items():
        cells = [_cell([taken[column] for taken in kinds["rolls"]]) for column in columns]
        print(f"| {name} | {' | '.join(cells)} |")
    print(
        "\n| SYNC puts a second, 1 KiB | threads | asyncio | asyncio / threads |\n| --- | --- | --- | --- |"
    )
    for name, kinds in found.items():
        for count in IN_FLIGHT:
            threads = [taken[f"threads {count}"] for taken in kinds["rates"]]
            tasks = [taken[f"asyncio {count}"] for taken in kinds["rates"] if f"asyncio {count}" in taken]
            ratio = _cell([a / b for a, b in zip(tasks, threads, strict=True)], 2) if tasks else "–"
            tasks_cell = _cell(tasks) if tasks else "–"
            print(f"| {name}, {count} in flight | {_cell(threads)} | {tasks_cell} | {ratio} |")


if __name__ == "__main__":
    main(sys.argv[1:])

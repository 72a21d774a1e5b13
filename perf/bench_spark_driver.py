"""``python -m perf.bench_spark_driver``: memory of Spark's jobs by the number of messages; prints a table.

Each job is a command of ``seglog spark``, run as users run it, so that its driver is a process of its own;
its anonymous memory (``RssAnon``) is looked at ten times a second. Messages are small: a store of so many
bytes has the more of them, and what the driver keeps for each would show. Every job is checked for having
seen all messages.

A compaction is taken back, and what it made goes; the store goes before the archive is restored, so that
both need not be there at once. With ``--keep`` store and archive stay in ``--folder``, and a later run takes
them up: the jobs of a large store may then be measured one by one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from perf.figures import machine
from perf.figures.sample import SanityError, check
from perf.sampling.spark_memory import MemoryWatch
from perf.stores.spark_store import SMALL_BODY_BYTES, TOPICS, make_small

CORES: Final = 2
_KINDS: Final = ("driver", "Java", "worker")
_SEGLOG: Final = (sys.executable, "-c", "from seglog.cli.main import main; main()", "spark")
_FEWEST: Final = 1000
_ROOT: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are.

    Attributes:
        folder: All of them.
        messages: How many the store has.
        groups: How many groups it has.
    """

    folder: Path
    messages: int
    groups: int

    @property
    def store(self) -> Path:
        """The store."""
        return self.folder / f"store-{self.messages}"

    @property
    def archive(self) -> Path:
        """Its archive."""
        return self.folder / f"archive-{self.messages}"

    @property
    def restored(self) -> Path:
        """The store that is made of that."""
        return self.folder / f"restored-{self.messages}"


@dataclass(frozen=True, slots=True)
class Found:
    """One run of a job.

    Attributes:
        job: Its name.
        messages: How many messages it saw.
        elapsed_s: How long it took.
        cpu_s: CPU seconds of driver, Java and workers together.
        most: The most anonymous memory of one process of each kind, in bytes.
    """

    job: str
    messages: int
    elapsed_s: float
    cpu_s: float
    most: Mapping[str, int]


def reconcile(at: Places) -> Found:
    """A verdict for each message and group, counted."""
    found, said = _run(at, "reconcile", str(at.store), "--messages", "--json")
    check((said["addsUp"], said["verdicts"]), (True, at.messages * at.groups), "verdicts that add up")
    return found


def compact(at: Places) -> Found:
    """A compaction of all topics, which is taken back."""
    topics = [word for topic in TOPICS for word in ("--topic", topic)]
    asked = ("--apply", "--allow-undelivered", "--json")
    found, said = _run(at, "compact", str(at.store), *topics, *asked)
    check(said["result"], "compacted", "a compaction")
    check(sum(one["kept"] + one["dropped"] for one in said["topics"]), at.messages, "messages decided on")
    subprocess.run([*_SEGLOG, "compact", str(at.store), "--undo"], check=True, capture_output=True, cwd=_ROOT)
    return found


def archive(at: Places) -> Found:
    """All of the store into an archive."""
    found, said = _run(at, "archive", str(at.store), str(at.archive), "--json")
    check(said["messages"], at.messages, "messages that were archived")
    return found


def restore(at: Places) -> Found:
    """A store of the archive."""
    found, said = _run(at, "restore", str(at.archive), str(at.restored), "--apply", "--json")
    check(said["messages"], at.messages, "messages that were restored")
    shutil.rmtree(at.restored)
    return found


JOBS: Final[Mapping[str, Callable[[Places], Found]]] = {
    "reconcile": reconcile,
    "compact": compact,
    "archive": archive,
    "restore": restore,
}
"""In the order in which they run."""


def _run(at: Places, job: str, *arguments: str) -> tuple[Found, dict[str, Any]]:
    """Runs a command, and returns what it took and the last object that it printed.

    Raises:
        SanityError: It failed.
    """
    spilled = at.folder / "spark"
    settings = ("--master", f"local[{CORES}]", "--conf", f"spark.local.dir={spilled}")
    begun = time.monotonic()
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [*_SEGLOG, job, *arguments, *settings], stdout=said, stderr=errors, cwd=_ROOT
        )
        with MemoryWatch(child.pid) as watch:
            code = child.wait()
        elapsed_s = time.monotonic() - begun
        said.seek(0)
        errors.seek(0)
        lines = said.read().decode().splitlines()
        if code or not lines:
            raise SanityError(f"seglog spark {job} ended with {code}: {errors.read().decode()}")
    shutil.rmtree(spilled, ignore_errors=True)
    last: dict[str, Any] = json.loads(lines[-1])
    return Found(job, at.messages, elapsed_s, watch.cpu_s, watch.most), last


def measure(at: Places, jobs: Sequence[str], *, keep: bool) -> list[Found]:
    """Runs jobs over a store of so many messages; makes what they need and is not there."""
    found = []
    needs_store = set(jobs) - {"restore"} or not at.archive.exists()
    if needs_store and not at.store.exists():
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            pool.submit(make_small, at.store, at.messages, at.groups).result()
    for name, job in JOBS.items():
        if name == "restore" and name in jobs:
            if not at.archive.exists():
                archive(at)
            if not keep:
                shutil.rmtree(at.store, ignore_errors=True)
        if name in jobs:
            found.append(job(at))
            print(_row(found[-1]), file=sys.stderr, flush=True)
    if not keep:
        shutil.rmtree(at.store, ignore_errors=True)
        shutil.rmtree(at.archive, ignore_errors=True)
    return found


def _row(one: Found) -> str:
    cells = [f"{one.most.get(kind, 0) / (1 << 20):,.0f} MiB" for kind in _KINDS]
    return f"| {one.job} | {one.messages:,} | {' | '.join(cells)} | {one.cpu_s:,.0f} | {one.elapsed_s:,.0f} |"


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_spark_driver", description=__doc__)
    parser.add_argument("--messages", type=int, nargs="+", default=[2_500_000, 10_000_000])
    parser.add_argument("--groups", type=int, default=20, help="groups of consumers")
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS), metavar="JOB")
    parser.add_argument("--folder", type=Path, help="where all goes; a temporary one by default")
    parser.add_argument("--keep", action="store_true", help="leave them there")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args(arguments)
    if min(options.messages) < _FEWEST or options.groups < 1:
        parser.error(f"--messages must be {_FEWEST} or more, and --groups 1 or more")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="seglog-bench-"))
    try:
        found = [
            one
            for messages in options.messages
            for one in measure(Places(folder, messages, options.groups), options.jobs, keep=options.keep)
        ]
    finally:
        if options.folder is None:
            shutil.rmtree(folder)
    ran = f"`python -m perf.bench_spark_driver {' '.join(arguments)}".rstrip() + "`"
    lines = [
        f"{ran}, {datetime.now(UTC).date().isoformat()}; {machine.describe()}",
        "",
        f"Keys and bodies of {SMALL_BODY_BYTES} bytes; {options.groups} groups; `local[{CORES}]`.",
        "",
        f"| job | messages | {' | '.join(_KINDS)} | CPU s | s |",
        f"| --- | --- |{' --- |' * len(_KINDS)} --- | --- |",
        *map(_row, found),
    ]
    text = "\n".join(lines)
    print(text)
    if options.write is not None:
        options.write.write_text(f"# Memory of Spark jobs by messages\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

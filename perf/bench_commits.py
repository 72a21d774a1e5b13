"""``python -m perf.bench_commits``: commits per second that are on the disk when the call returns.

A job worker takes a message and commits, again and again: our LitePullConsumer of a broker in the process
with SYNC durability; and SQLite (WAL, ``synchronous=FULL``), where the next job is a SELECT and the commit an
UPDATE. Each thread is a worker with a group or a row of its own. They take turns. The folder must be on a
disk: every commit waits for it.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from perf.figures.page import Page
from perf.figures.spread import spread_text
from seglog import Broker, ConsumeFrom, Durability, LitePullConsumer, Producer

_OURS: Final = "seglog, LitePullConsumer"
_BODY: Final = b"x" * 100
_POLL_S: Final = 60.0


def run_threads(works: Sequence[Callable[[], None]]) -> float:
    """Runs functions in threads of their own at once; returns the seconds that all of them took."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    begun_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken_s = time.perf_counter() - begun_s
    if failures:
        raise failures[0]
    return taken_s


def seglog_commits(folder: Path, workers: int, jobs: int) -> float:
    """Returns commits per second of workers of one broker."""
    with Broker.open(folder / "store", durability=Durability.SYNC) as broker:
        with Producer(broker) as producer:
            for worker in range(workers):
                producer.send_batch(f"jobs-{worker}", [_BODY] * (jobs + 1), queue_id=0)
        consumers = [
            LitePullConsumer(broker, f"g-{worker}", f"jobs-{worker}", consume_from=ConsumeFrom.FIRST)
            for worker in range(workers)
        ]

        def work(consumer: LitePullConsumer) -> Callable[[], None]:
            def commit_each() -> None:
                for _job in range(jobs):
                    assert len(consumer.poll(_POLL_S, 1)) == 1
                    consumer.commit()

            return commit_each

        for consumer in consumers:
            assert consumer.poll(_POLL_S, 1)  # it has joined its group and its queue
        taken_s = run_threads([work(consumer) for consumer in consumers])
        for consumer in consumers:
            consumer.close()
    return workers * jobs / taken_s


def sqlite_commits(folder: Path, workers: int, jobs: int) -> float:
    """Returns commits per second of workers of one database."""
    path = folder / "jobs.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute(
            "CREATE TABLE jobs (topic INTEGER, number INTEGER, body BLOB, PRIMARY KEY (topic, number))"
        )
        made.execute("CREATE TABLE offsets (name INTEGER PRIMARY KEY, next INTEGER)")
        for worker in range(workers):
            made.execute("INSERT INTO offsets VALUES (?, 0)", (worker,))
            rows = [(worker, number, _BODY) for number in range(jobs)]
            made.executemany("INSERT INTO jobs VALUES (?, ?, ?)", rows)
        made.commit()

    def work(worker: int) -> Callable[[], None]:
        def commit_each() -> None:
            with closing(sqlite3.connect(path, timeout=_POLL_S, isolation_level=None)) as own:
                own.execute("PRAGMA synchronous=FULL")
                for number in range(jobs):
                    ask = "SELECT body FROM jobs WHERE topic = ? AND number = ?"
                    assert own.execute(ask, (worker, number)).fetchone() == (_BODY,)
                    own.execute("UPDATE offsets SET next = ? WHERE name = ?", (number + 1, worker))

        return commit_each

    return workers * jobs / run_threads([work(worker) for worker in range(workers)])


_PEERS: Final[dict[str, Callable[[Path, int, int], float]]] = {
    _OURS: seglog_commits,
    "SQLite": sqlite_commits,
}


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_commits", description=__doc__)
    parser.add_argument("--jobs", type=int, default=300, help="of each worker and sample")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 16], metavar="COUNT")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir", type=Path, help="where stores are made; on a disk")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args(arguments)
    if options.jobs < 1 or options.rounds < 1 or min(options.threads) < 1:
        parser.error("--jobs, --rounds and --threads must be 1 or more")
    page = Page("perf.bench_commits", arguments, options.write)
    lines = ["| workers | who | commits/s | × |", "| --- | --- | --- | --- |"]
    for workers in options.threads:
        rounds: list[dict[str, float]] = []
        for _round in range(options.rounds):
            found: dict[str, float] = {}
            for title, commits in _PEERS.items():
                with tempfile.TemporaryDirectory(dir=options.dir) as folder:
                    found[title] = commits(Path(folder), workers, options.jobs)
            rounds.append(found)
        for title in _PEERS:
            times = "–" if title == _OURS else spread_text([each[_OURS] / each[title] for each in rounds])
            rates = spread_text([each[title] for each in rounds])
            lines.append(f"| {workers} | {title} | {rates} | {times} |")
    page.say(
        "Commits that are on the disk", [*lines, "", "× is ours over that of the row, in the same round."]
    )


if __name__ == "__main__":
    main(sys.argv[1:])

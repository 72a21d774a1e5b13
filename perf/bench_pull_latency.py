"""``python -m perf.bench_pull_latency``: from the put of a message to the waiting pull; prints a table.

One thread puts a message, once the other is asleep; the time runs from just before the put until the other
has the message in its hands. Beside a pull that is held by the broker stands the store's own ``wait_for``,
and the get that follows it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from typing import Final

from perf.figures import machine
from seglog.broker.answers.held_answer import HeldAnswer
from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.later import Deferred
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.format.record.tags import tags_code
from seglog.storage.writes.writer import Writer

_TOPIC: Final = "Bench"
_BODY: Final = bytes(128)
_PROPERTIES: Final = encode_properties({"TAGS": "wanted", "size": "7"})
_HOLD_MS: Final = 600_000
_ASLEEP_S: Final = 0.000_5
"""Time for a thread to fall asleep after it has reported that it waits."""
_OTHERS: Final = 5_000
_HOLD: Final = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND

Wait = Callable[[int], object]
"""Returns once the message at a queue offset is in hand."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Microseconds from put to message in hand."""

    title: str
    rounds: int
    p50_us: float
    p90_us: float
    p99_us: float
    max_us: float

    def row(self) -> str:
        """Returns a row of the table."""
        return (
            f"| {self.title} | {self.p50_us:,.0f} | {self.p90_us:,.0f} | {self.p99_us:,.0f}"
            f" | {self.max_us:,.0f} |"
        )


def measure(broker: Broker, title: str, wait: Wait, rounds: int) -> Latency:
    """Returns the times of some rounds.

    Args:
        broker: Messages are put into its store.
        title: What waits.
        wait: Waits in a thread of its own.
        rounds: Messages.
    """
    store = broker.store
    core = store._core
    if not isinstance(core, Writer):
        raise TypeError("a broker's store is open for writing")
    first = store.max_offset(_TOPIC, 0)
    began_ns = 0
    taken_us: list[float] = []
    done = threading.Semaphore(0)

    def waiter() -> None:
        for number in range(rounds):
            wait(first + number)
            taken_us.append((time.perf_counter_ns() - began_ns) / 1e3)
            done.release()

    thread = threading.Thread(target=waiter)
    thread.start()
    for _ in range(rounds):
        while (_TOPIC, 0) not in core.waiters.waiting:
            time.sleep(_ASLEEP_S / 10)
        time.sleep(_ASLEEP_S)
        began_ns = time.perf_counter_ns()
        store.append(_TOPIC, 0, _BODY, _PROPERTIES, tags_code("wanted"))
        if not done.acquire(timeout=10):
            raise SystemExit(f"{title}: a message did not arrive")
    thread.join()
    hundredths = quantiles(taken_us, n=100, method="inclusive")
    return Latency(title, rounds, hundredths[49], hundredths[89], hundredths[98], max(taken_us))


def _request(
    offset: int, subscription: str = "*", language: str | None = None, topic: str = _TOPIC
) -> Request:
    header = PullMessageHeader(
        "group", topic, 0, offset, 32, int(_HOLD), 0, _HOLD_MS, 0, subscription, language
    )
    return Request(RequestCode.PULL_MESSAGE, header)


def _in_hand(answer: Response) -> None:
    if answer.code is not ResponseCode.SUCCESS:
        raise SystemExit(f"a pull was answered with {answer.code.name}: {answer.remark}")


def held_by_thread(broker: Broker, subscription: str = "*", language: str | None = None) -> Wait:
    """Returns a thread's way to wait: it stays in the call."""
    return lambda offset: _in_hand(broker.dispatch(_request(offset, subscription, language)))


def held_by_loop(broker: Broker, loop: asyncio.AbstractEventLoop) -> Wait:
    """Returns the way of an event loop, as a server waits: the pull is parked, and answered in the loop."""

    async def pull(offset: int) -> None:
        answer = broker.answer(_request(offset))
        _in_hand(await answer if isinstance(answer, Deferred) else answer)

    return lambda offset: loop.run_until_complete(pull(offset))


def bare(broker: Broker) -> Wait:
    """Returns the way without a broker."""

    def wait(offset: int) -> None:
        if not broker.store.wait_for(_TOPIC, 0, offset, _HOLD_MS):
            raise SystemExit("the message did not arrive")
        if len(broker.store.get(_TOPIC, 0, offset, 32)) != 1:
            raise SystemExit("the message cannot be read")

    return wait


@contextmanager
def others(broker: Broker, topic: str, subscription: str) -> Iterator[None]:
    """Holds many other pulls meanwhile, all with one filter that no message matches."""
    offset = broker.store.max_offset(topic, 0)
    parked = []
    for _ in range(_OTHERS):
        held = broker.answer(_request(offset, subscription, topic=topic))
        if not isinstance(held, HeldAnswer):
            raise SystemExit("a pull at the end of a queue was not held")
        parked.append(held)
    try:
        yield
    finally:
        for one in parked:
            one.cancel()


def bench(root: Path, rounds: int) -> list[Latency]:
    """Measures every way to wait."""
    config = BrokerConfig(enable_property_filter=True, default_topic_queue_nums=1)
    loop = asyncio.new_event_loop()
    with Broker.open(root, config=config) as broker:
        broker.topics.create_for_send(_TOPIC, "TBW102", 1)
        broker.topics.create_for_send("Other", "TBW102", 1)
        broker.store.put("Other", _BODY)
        broker.store.put(_TOPIC, _BODY)
        found = [
            measure(broker, "`store.wait_for` and `get`, no broker", bare(broker), rounds),
            measure(broker, "a held pull, its thread waits", held_by_thread(broker), rounds),
            measure(broker, "a parked pull, an event loop waits", held_by_loop(broker, loop), rounds),
            measure(broker, "a held pull with a tag", held_by_thread(broker, "wanted"), rounds),
            measure(broker, "a held pull with SQL92", held_by_thread(broker, "size > 5", "SQL92"), rounds),
        ]
        with others(broker, "Other", "*"):
            title = f"a held pull, and {_OTHERS:,} at another queue"
            found.append(measure(broker, title, held_by_thread(broker), rounds))
        # They are swept every five seconds, so not all of them stay: the queue grows.
        with others(broker, _TOPIC, "unwanted"):
            title = f"a held pull, and {_OTHERS:,} with another tag at its queue"
            found.append(measure(broker, title, held_by_thread(broker), rounds))
    loop.close()
    return found


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_pull_latency", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000, help="messages for each way to wait")
    parser.add_argument("--dir", type=Path, help="where the store is made")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments)
    if options.rounds < 100:
        parser.error("--rounds must be 100 or more, or there is no 99th of a hundred")
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=options.dir) as directory:
        figures = bench(Path(directory), options.rounds)
    ran = f"`python -m perf.bench_pull_latency {' '.join(arguments)}".rstrip() + "`"
    loads = f"load {load:.1f} to {os.getloadavg()[0]:.1f}"
    day = datetime.now(UTC).date().isoformat()
    lines = [
        f"{ran}, {day}; {machine.describe()}, {loads}",
        "",
        f"{options.rounds:,} messages of {len(_BODY)} bytes for each way to wait, one at a time;",
        "microseconds from just before the put until the message is in hand.",
        "",
        "| | p50 | p90 | p99 | max |",
        "| --- | --- | --- | --- | --- |",
        *[figure.row() for figure in figures],
    ]
    print("\n".join(lines))
    if options.write is not None:
        text = "\n".join(["# How soon a held pull has its message", *lines, ""])
        options.write.write_text(text, encoding="utf-8")
    if options.json is not None:
        value = {"ran": ran, "day": day, "machine": str(machine.describe()), "load": loads}
        text = json.dumps({**value, "ways": [asdict(figure) for figure in figures]}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

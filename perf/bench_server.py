"""``python -m perf.bench_server``: ``seglog serve`` beside RocketMQ's own broker, with RocketMQ's own client.

One process of Java's client, whose JVM is warm, works at both brokers in turns; each is first in every other
round. Each piece of work is done twice in a row, of which the second time is measured. Both brokers
acknowledge a message once it is in their memory-mapped log, and write that to the disk in their own time.
RocketMQ is a name server and a broker (their options are in :mod:`perf.clients.real_broker`), ours is one
process. Beside the rates are what a call took, the CPU time of the broker a message, what its process holds
in memory after the same load, and how long it took to start.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perf.clients.call import take_rounds
from perf.clients.our_server import our_server
from perf.clients.peer import Peer, java_peer
from perf.clients.real_broker import BROKER_OPTIONS, real_broker
from perf.clients.running import RunningBroker
from perf.clients.seglog_client import fill
from perf.clients.work import BATCH, BODY_BYTES, PACE_PER_S, TITLES, Kind, Work
from perf.contestants import rocketmq
from perf.figures.page import Page
from perf.figures.sample import Sample
from perf.figures.spread import spread_text
from tests.interop.judging import toolchain

_OURS: Final = "seglog serve"
_THEIRS: Final = f"RocketMQ {toolchain.DEFAULT_VERSION}"
_FULL: Final = "Full"
_PACED_S: Final = 4
_COLUMNS: Final = ("per_s", "p50_us", "p99_us", "broker_cpu_us")
_MEMORY: Final = re.compile(r"^(VmRSS|RssAnon):\s+(\d+) kB$", re.MULTILINE)
_MAKE: Final[dict[str, Callable[[Path], AbstractContextManager[RunningBroker]]]] = {
    _OURS: our_server,
    _THEIRS: real_broker,
}


@dataclass(frozen=True, slots=True)
class Case:
    """A piece of work at each broker.

    Attributes:
        kind: Which.
        senders: Threads, for :data:`Kind.TOGETHER`.
    """

    kind: Kind
    senders: int = 1

    @property
    def title(self) -> str:
        """Its name in the table."""
        return f"send, {self.senders} threads" if self.kind is Kind.TOGETHER else TITLES[self.kind]

    def messages(self, of_each: int) -> int:
        """Returns how many messages it takes: at a steady pace as many as some seconds have."""
        return min(of_each, _PACED_S * PACE_PER_S) if self.kind is Kind.PACED else of_each


CASES: Final = (
    Case(Kind.SEND),
    Case(Kind.TOGETHER, 4),
    Case(Kind.TOGETHER, 16),
    Case(Kind.FLIGHT),
    Case(Kind.BATCH),
    Case(Kind.CONSUME),
    Case(Kind.ORDERLY),
    Case(Kind.PACED),
)
Samples = dict[tuple[Case, str], Sample]
"""Samples of a round, by work and broker."""


@dataclass(slots=True)
class Bench:
    """Both brokers and their client.

    Attributes:
        messages: Of a sample.
        cases: What is measured.
        brokers: By title.
        peer: The client.
    """

    messages: int
    cases: Sequence[Case]
    brokers: dict[str, RunningBroker]
    peer: Peer
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def prepare(self) -> None:
        """Creates the topics, fills the consumed one, and warms up the client and both brokers."""
        for broker in self.brokers.values():
            fill(broker.name_server, _FULL, self.messages)
            fill(broker.name_server, "Sent", 1)
            for topic in (_FULL, "Sent"):
                broker.wait_for_topic(topic)
        for case in self.cases:
            for title in self.brokers:
                self._sample(case, title)

    def round(self, number: int) -> Samples:
        """Does each piece of work at each broker.

        Args:
            number: Of the round; which broker is first depends on it.
        """
        titles = list(self.brokers)[:: 1 if number % 2 else -1]
        return {(case, title): self._sample(case, title) for case in self.cases for title in titles}

    def _sample(self, case: Case, title: str) -> Sample:
        broker, messages, number = self.brokers[title], case.messages(self.messages), next(self._numbers)
        topic = "Sent" if case.kind.is_send else _FULL
        if case.kind is Kind.PACED:
            topic = f"Paced{number}"  # nothing else is in it
            fill(broker.name_server, topic, 1)
            broker.wait_for_topic(topic)
        name = f"{case.kind}-{number}"
        return self.peer.sample(
            Work(case.kind, broker.name_server, topic, name, messages, case.senders), broker
        )


def memory_mib(pid: int) -> tuple[float, float]:
    """Returns the memory of a process, with and without pages of its files, in MiB."""
    found = dict(_MEMORY.findall(Path(f"/proc/{pid}/status").read_text()))
    return int(found["VmRSS"]) / 1024, int(found["RssAnon"]) / 1024


def start_s(make: Callable[[Path], AbstractContextManager[RunningBroker]], folder: Path) -> float:
    """Returns the seconds from the start of a broker until a client's first message is acknowledged."""
    with tempfile.TemporaryDirectory(dir=folder) as root:
        begun_s = time.perf_counter()
        with make(Path(root)) as broker:
            fill(broker.name_server, "First", 1)
            return time.perf_counter() - begun_s


def table(rounds: Sequence[Samples], cases: Sequence[Case]) -> list[str]:
    """Returns the rows of the table: figures of both, and ours as a multiple of theirs, round by round."""
    rows = []
    for case in cases:
        for title in (_OURS, _THEIRS):
            cells = [case.title, title]
            for column in _COLUMNS:
                taken = [
                    (each[case, _OURS].figure(column), each[case, _THEIRS].figure(column)) for each in rounds
                ]
                both = [(ours, theirs) for ours, theirs in taken if ours is not None and theirs is not None]
                cells.append(spread_text([pair[title == _THEIRS] for pair in both]))
                if title == _OURS and column != "broker_cpu_us":
                    cells[-1] += f" ×{spread_text([ours / theirs for ours, theirs in both])}" if both else ""
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_server", description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000, help="of each sample")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir", type=Path, help="where stores are made")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables there too")
    parser.add_argument("--works", nargs="+", type=Kind, choices=list(Kind), help="only these")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if case.kind in (options.works or Kind)]
    if options.messages < BATCH or options.rounds < 1:
        parser.error(f"--messages must be {BATCH} or more, and --rounds 1 or more")
    why = rocketmq.why_missing()
    if why is not None:
        parser.error(f"RocketMQ is not here: {why}")
    page = Page("perf.bench_server", arguments, options.write)
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=options.dir))
        )
        starts = [
            {title: start_s(make, folder) for title, make in _MAKE.items()} for _ in range(options.rounds)
        ]
        brokers: dict[str, RunningBroker] = {}
        for number, (title, make) in enumerate(_MAKE.items()):
            root = folder / str(number)
            root.mkdir()
            brokers[title] = stack.enter_context(make(root))
        peer = java_peer("the client")
        stack.callback(peer.close)
        bench = Bench(options.messages, cases, brokers, peer)
        bench.prepare()
        rounds = take_rounds(options.rounds, bench.round)
        memory = {title: memory_mib(broker.pid) for title, broker in brokers.items()}
    lines = [
        f"{options.messages:,} messages of {BODY_BYTES:,} bytes a sample, after as many in the same process;",
        f"{options.rounds} rounds; medians (lowest–highest), × those of RocketMQ in the same round.",
        f"RocketMQ's broker: {BROKER_OPTIONS}, asynchronous flush; ours: the defaults.",
        "",
        "| work | broker | messages/s | p50 of a call, µs | p99, µs | broker's CPU, µs a message |",
        "| --- | --- | --- | --- | --- | --- |",
        *table(rounds, cases),
        "",
        "| broker | start to first acknowledged send, s | memory after all of it, MiB | anonymous, MiB |",
        "| --- | --- | --- | --- |",
    ]
    for title, (resident, anonymous) in memory.items():
        begun = spread_text([each[title] for each in starts])
        lines.append(f"| {title} | {begun} | {resident:,.0f} | {anonymous:,.0f} |")
    lines.append(
        "\nA call of *send and consume* ends in the listener. RocketMQ starts a name server and a broker."
    )
    page.say("The server beside RocketMQ's broker", lines, java=rocketmq.java_version())


if __name__ == "__main__":
    main(sys.argv[1:])

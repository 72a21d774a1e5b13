"""``python -m perf.bench_consume``: what a consumer takes for a message, a second and core of its process.

Ours in the process of its broker, at ``seglog serve`` and at RocketMQ's broker, beside RocketMQ's own client
at both servers, whose JVM is warm. Each client has a process that stays for all rounds; they take turns
within a round, and each consumes the topic twice in a row, each time as a new group, of which the second time
is measured. Messages a second and core are those a second of CPU time of the client's process, user and
system; in process that holds the broker too. Listeners take the body of each message, and what they were
given is compared with what was sent.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perf.clients.call import Call
from perf.clients.our_server import our_server
from perf.clients.peer import Peer, java_peer, python_peer
from perf.clients.real_broker import real_broker
from perf.clients.running import RunningBroker
from perf.clients.seglog_client import fill
from perf.clients.work import Kind, Work
from perf.figures.sample import Sample
from perf.figures.spread import spread_text
from tests.interop.judging import toolchain

_BODY_BYTES: Final = 128
_BATCHES: Final = (1, 32)
_TOPIC: Final = "Full"
_SEGLOG: Final = "seglog"
_JAVA: Final = f"Java {toolchain.DEFAULT_VERSION}"
_OURS: Final = "seglog serve"
_THEIRS: Final = f"RocketMQ {toolchain.DEFAULT_VERSION}"
_IN_PROCESS: Final = "in process"


@dataclass(frozen=True, slots=True)
class Case:
    """A row: the consumer, its broker, and its settings.

    Attributes:
        kind: Side by side, or in order.
        batch: Most messages that the listener is given at a time.
        client: Whose.
        broker: Where; in the process of the client, or a server.
    """

    kind: Kind
    batch: int
    client: str
    broker: str

    @property
    def work(self) -> str:
        """Its name in the table."""
        how = "side by side" if self.kind is Kind.CONSUME else "in order"
        return f"{how}, {self.batch} at a time"


_PLACES: Final = (
    (_SEGLOG, _IN_PROCESS),
    (_SEGLOG, _OURS),
    (_JAVA, _OURS),
    (_SEGLOG, _THEIRS),
    (_JAVA, _THEIRS),
)
CASES: Final = tuple(
    Case(kind, batch, *place)
    for kind in (Kind.CONSUME, Kind.ORDERLY)
    for batch in _BATCHES
    for place in _PLACES
)
Round = Mapping[Case, Sample]


def reference(case: Case) -> Case:
    """Returns the reference of a row: Java's client at its own broker, with the same work."""
    return Case(case.kind, case.batch, _JAVA, _THEIRS)


@dataclass(slots=True)
class Bench:
    """Who takes part.

    Attributes:
        messages: Of each sample.
        folder: Where stores are.
        brokers: By title; none where nothing but the process of the client is measured.
        peers: By client and broker.
    """

    messages: int
    folder: Path
    brokers: dict[str, RunningBroker]
    peers: dict[tuple[str, str], Peer]
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def cases(self) -> tuple[Case, ...]:
        """The rows that can be measured with these contestants."""
        return tuple(case for case in CASES if (case.client, case.broker) in self.peers)

    def prepare(self) -> None:
        """Fills the topic at the servers, and warms up Java's compilers."""
        for broker in self.brokers.values():
            fill(broker.name_server, _TOPIC, self.messages, _BODY_BYTES)
            broker.wait_for_topic(_TOPIC)
        for case in self.cases:
            if case.client == _JAVA:
                self._sample(case)

    def round(self) -> Round:
        """Takes a sample of each case."""
        return {case: self._sample(case) for case in self.cases}

    def _sample(self, case: Case) -> Sample:
        broker = self.brokers.get(case.broker)
        work = Work(
            case.kind,
            str(self.folder) if broker is None else broker.name_server,
            _TOPIC,
            f"g{next(self._numbers)}",
            self.messages,
            body_bytes=_BODY_BYTES,
            batch=case.batch,
        )
        return self.peers[case.client, case.broker].sample(work, broker)


def per_core(sample: Sample) -> float:
    """Returns messages a second of CPU time of the client's process."""
    return sample.operations / sample.cpu_s


def table(rounds: Sequence[Round]) -> list[str]:
    """Returns the rows of the table; shares are formed within a round."""
    rows = []
    for case in rounds[0]:
        taken = [each[case] for each in rounds]
        java = reference(case)
        shares = [per_core(each[case]) / per_core(each[java]) for each in rounds if java in each]
        cells = [
            case.work,
            case.client,
            case.broker,
            spread_text(list(map(per_core, taken))),
            spread_text(shares) if shares and case != java else "–",
            spread_text([sample.figure("per_s") for sample in taken]),
            spread_text([sample.figure("broker_cpu_us") for sample in taken]),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    call = Call.of("perf.bench_consume", __doc__, 100_000, arguments)
    peers = {(_SEGLOG, _IN_PROCESS): python_peer(_SEGLOG, "in-process")}
    with ExitStack() as stack:
        folder = stack.enter_context(call.folder())
        brokers: dict[str, RunningBroker] = {}
        if call.why_alone is None:
            for title, make in ((_OURS, our_server), (_THEIRS, real_broker)):
                root = folder / title.partition(" ")[0]
                root.mkdir()
                brokers[title] = stack.enter_context(make(root))
                peers[_SEGLOG, title] = python_peer(_SEGLOG, "remote")
                peers[_JAVA, title] = java_peer(_JAVA)
        for peer in peers.values():
            stack.callback(peer.close)
        bench = Bench(call.messages, folder, brokers, peers)
        bench.prepare()
        rounds = call.take(bench.round)
    lines = [
        f"{call.messages:,} messages of {_BODY_BYTES} bytes a sample, after as many in the same process;",
        f"{call.rounds} rounds; medians (lowest–highest). A core is a second of CPU time of the client;",
        "Java's is that of its client at RocketMQ.",
        "",
        "| consumed | client | broker | a second and core | × Java's | a second | broker's CPU, µs |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *table(rounds),
    ]
    if call.why_alone is not None:
        lines.append(f"\nLeft out: RocketMQ, its client, and servers: {call.why_alone}.")
    call.say("What a consumer takes for a message", lines)


if __name__ == "__main__":
    main(sys.argv[1:])

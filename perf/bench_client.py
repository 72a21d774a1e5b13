"""``python -m perf.bench_client``: CPU time that clients take for a message, at RocketMQ's own broker.

Ours, in the process of its broker and over loopback, beside RocketMQ's own client, whose JVM is warm, and
``rocketmq`` 0.4.4 from PyPI. Each client has a process that stays for all rounds; they take turns within a
round, and each does a piece of work twice in a row, of which the second time is measured. CPU time is that of
the whole process of the client, user and system, and the broker's beside it; in process both are one. Sends
are counted at the broker, and what consumers are given is compared with what was sent.
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
from perf.clients.peer import Peer, java_peer, python_peer, why_missing
from perf.clients.real_broker import real_broker
from perf.clients.running import RunningBroker
from perf.clients.seglog_client import fill
from perf.clients.work import BODY_BYTES, TITLES, Kind, Work
from perf.figures.sample import Sample, SanityError
from perf.figures.spread import spread_text
from tests.interop.judging import toolchain

_HERE: Final = "in-process"
_OURS: Final = "remote"
_JAVA: Final = "java"
_PYPI: Final = "pypi"
_TITLES: Final = {
    _HERE: "seglog, in process (with its broker)",
    _OURS: "seglog",
    _JAVA: f"Java {toolchain.DEFAULT_VERSION}",
    _PYPI: "PyPI rocketmq 0.4.4",
}
_FULL: Final = "Full"
_KINDS: Final = (Kind.SEND, Kind.TOGETHER, Kind.FLIGHT, Kind.CONSUME, Kind.ORDERLY)
Round = Mapping[tuple[Kind, str], Sample]
"""Samples of a round, by work and contestant."""


@dataclass(slots=True)
class Bench:
    """The contestants and the results.

    Attributes:
        messages: Of each sample.
        folder: Where stores are.
        broker: RocketMQ's, None where there is none.
        peers: By their keys.
        left_out: Why a client is missing, by title.
    """

    messages: int
    folder: Path
    broker: RunningBroker | None
    peers: dict[str, Peer]
    left_out: dict[str, str] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def round(self) -> Round:
        """Has each client do each piece of work."""
        samples: dict[tuple[Kind, str], Sample] = {}
        for kind in _KINDS:
            for key in list(self.peers):
                if key == _HERE and kind in (Kind.TOGETHER, Kind.FLIGHT):
                    continue  # a send has ended when the call has: nothing is in flight
                sample = self._sample(kind, key)
                if sample is not None:
                    samples[kind, key] = sample
        return samples

    def _sample(self, kind: Kind, key: str) -> Sample | None:
        topic = f"Sent-{key}" if kind.is_send else _FULL
        name = f"{kind}-{key}-{next(self._numbers)}"
        broker, peer = self.broker, self.peers[key]
        if broker is None or key == _HERE:
            work = Work(kind, str(self.folder), topic, name, self.messages)
            return peer.sample(work, None)
        work = Work(kind, broker.name_server, topic, name, self.messages)
        try:
            return peer.sample(work, broker)
        except SanityError as error:
            if key != _PYPI:
                raise
            self.left_out[f"{_TITLES[key]}, {TITLES[kind]}"] = str(error).splitlines()[-1]
            print(error, file=sys.stderr, flush=True)
            return None

    def prepare(self) -> None:
        """Creates the topics, fills the consumed one, and warms up Java's compilers."""
        if self.broker is None:
            return
        fill(self.broker.name_server, _FULL, self.messages)
        topics = [f"Sent-{key}" for key in self.peers if key != _HERE]
        for topic in topics:
            fill(self.broker.name_server, topic, 1)
        for topic in [_FULL, *topics]:
            self.broker.wait_for_topic(topic)
        for kind in _KINDS:
            self._sample(kind, _JAVA)

    def close(self) -> None:
        """Ends the clients."""
        for peer in self.peers.values():
            peer.close()


def table(rounds: Sequence[Round]) -> list[str]:
    """Returns the rows of the table."""
    rows = []
    for kind, key in [(kind, key) for kind in _KINDS for key in _TITLES]:
        taken = [each[kind, key] for each in rounds if (kind, key) in each]
        if not taken:
            continue
        beside = [
            each[kind, key].cpu_s / each[kind, _JAVA].cpu_s
            for each in rounds
            if (kind, key) in each and (kind, _JAVA) in each
        ]
        cells = [
            TITLES[kind],
            _TITLES[key],
            spread_text([sample.figure("cpu_us") for sample in taken]),
            "–" if key in (_HERE, _JAVA) else spread_text(beside),
            spread_text([sample.figure("per_s") for sample in taken]),
            spread_text([sample.figure("broker_cpu_us") for sample in taken]),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    call = Call.of("perf.bench_client", __doc__, 20_000, arguments)
    peers = {_HERE: python_peer(_TITLES[_HERE], _HERE)}
    left_out: dict[str, str] = {}
    with ExitStack() as stack:
        folder = stack.enter_context(call.folder())
        broker = None
        if call.why_alone is None:
            broker = stack.enter_context(real_broker(folder))
            peers[_OURS] = python_peer(_TITLES[_OURS], _OURS)
            peers[_JAVA] = java_peer(_TITLES[_JAVA])
            why_no_pypi = why_missing("rocketmq.client")
            if why_no_pypi is None:
                peers[_PYPI] = python_peer(_TITLES[_PYPI], _PYPI)
            else:
                left_out[_TITLES[_PYPI]] = why_no_pypi
        else:
            left_out["RocketMQ, and what is measured at it"] = call.why_alone
        bench = Bench(call.messages, folder, broker, peers, left_out)
        stack.callback(bench.close)
        bench.prepare()
        rounds = call.take(bench.round)
    lines = [
        f"{call.messages:,} messages of {BODY_BYTES:,} bytes a sample, after as many in the same process;",
        f"{call.rounds} rounds; medians (lowest–highest). Broker: RocketMQ {toolchain.DEFAULT_VERSION}.",
        "",
        "| work | client | its CPU, µs a message | × Java's | messages/s | broker's CPU, µs a message |",
        "| --- | --- | --- | --- | --- | --- |",
        *table(rounds),
        *[f"\nLeft out: {who}: {why}." for who, why in left_out.items()],
    ]
    call.say("What a client takes for a message", lines)


if __name__ == "__main__":
    main(sys.argv[1:])

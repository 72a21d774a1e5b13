"""``python -m perf.bench_broker_puts``: sends through the embedded broker beside puts into the bare store.

Both get the same messages, bodies and properties as a producer encodes them, on one thread, each into a new
store of its own; they take turns within a round, and the share is formed within a round. A send is a
request that is made and goes through a local link to the broker's handler, with which ``Producer.send``
ends; a put is the call that the handler ends in. Rates are of time that goes by, shares of the CPU time of
the sending thread: others use the machine too.
``SEGLOG_KERNEL=python`` measures both without native kernels.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from perf.figures.page import Page
from seglog.broker.broker import Broker
from seglog.client.links.local_link import LocalLink
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import SendMessageHeader
from seglog.storage.format.record.tags import tags_code
from seglog.storage.store import MessageStore
from seglog.storage.writes.values import RawMessage

_TOPIC: Final = "Puts"
_SIZES: Final = (128, 1_024)
_BATCH: Final = 32
_IDS: Final = "7F0000010000A0B50000{:012X}"

Put = Callable[[int], None]
Way = Callable[[Path, bytes], AbstractContextManager[Put]]


@contextmanager
def bare(root: Path, body: bytes) -> Iterator[Put]:
    """Puts the broker's records into a store directly."""
    with MessageStore.open(root) as store:
        append, code = store.append, tags_code("TagA")

        def put(number: int) -> None:
            properties = f"UNIQ_KEY\x01{_IDS.format(number)}\x02TAGS\x01TagA\x02{_STAMP}".encode()
            append(_TOPIC, 0, body, properties, code, born_timestamp_ms=1)

        yield put


@contextmanager
def brokered(root: Path, body: bytes) -> Iterator[Put]:
    """Sends through a broker."""
    with Broker.open(root) as broker:
        invoke = LocalLink(broker).invoke

        def put(number: int) -> None:
            properties = f"UNIQ_KEY\x01{_IDS.format(number)}\x02TAGS\x01TagA\x02".encode()
            header = SendMessageHeader("pg", _TOPIC, "TBW102", 4, 0, 0, 1, 0, properties)
            answer = invoke(Request(RequestCode.SEND_MESSAGE_V2, header, body))
            if answer.code is not ResponseCode.SUCCESS:
                raise SystemExit(f"a send was refused: {answer.code.name} {answer.remark}")

        yield put


@contextmanager
def bare_batches(root: Path, body: bytes) -> Iterator[Put]:
    """Puts batches into a store."""
    with MessageStore.open(root) as store:
        append, code = store.append_batch, tags_code("TagA")

        def put(number: int) -> None:
            append(_TOPIC, 0, [RawMessage(body, each, code) for each in _batch_of(number)])

        yield put


@contextmanager
def brokered_batches(root: Path, body: bytes) -> Iterator[Put]:
    """Sends batches through a broker."""
    with Broker.open(root) as broker:
        invoke = LocalLink(broker).invoke

        def put(number: int) -> None:
            batch = MessageBatch([BatchMessage(body, each) for each in _batch_of(number)])
            header = SendMessageHeader("pg", _TOPIC, "TBW102", 4, 0, 0, 1, 0, is_batch=True)
            answer = invoke(Request(RequestCode.SEND_BATCH_MESSAGE, header, batch))
            if answer.code is not ResponseCode.SUCCESS:
                raise SystemExit(f"a batch was refused: {answer.code.name} {answer.remark}")

        yield put


def _batch_of(number: int) -> list[bytes]:
    """Returns the properties of the messages of a batch."""
    first = number * _BATCH
    return [
        f"UNIQ_KEY\x01{_IDS.format(each)}\x02TAGS\x01TagA\x02".encode()
        for each in range(first, first + _BATCH)
    ]


_STAMP: Final = "CLUSTER\x01DefaultCluster\x02MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02"
_WAYS: Final = {1: (bare, brokered), _BATCH: (bare_batches, brokered_batches)}


def calls_per_s(way: Way, folder: Path, body: bytes, calls: int) -> tuple[float, float]:
    """Returns how many calls a second go one way into a new store, and how many a second of CPU time."""
    with tempfile.TemporaryDirectory(dir=folder) as directory, way(Path(directory), body) as put:
        for number in range(calls // 20):
            put(number)
        begun, begun_cpu = time.perf_counter(), time.thread_time()
        for number in range(calls):
            put(number)
        return calls / (time.perf_counter() - begun), calls / (time.thread_time() - begun_cpu)


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_broker_puts", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="messages a measurement")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dir", type=Path, help="where stores are made")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args(arguments)
    page = Page("perf.bench_broker_puts", arguments, options.write)
    rows: list[str] = []
    with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=options.dir) as directory:
        for size, (batch, ways) in itertools.product(_SIZES, _WAYS.items()):
            body = os.urandom(size)
            rounds = [
                [calls_per_s(way, Path(directory), body, options.count // batch) for way in ways]
                for _ in range(options.rounds)
            ]
            shares = [100 * sent / put for (_, put), (_, sent) in rounds]
            columns = [_spread([batch * wall for wall, _ in column]) for column in zip(*rounds, strict=True)]
            rows.append(f"| {size:,} B | {batch} | {' | '.join(columns)} | {_spread(shares)} % |")
    lines = [
        f"{options.count:,} messages, {options.rounds} rounds; medians (lowest–highest). Wanted are 70 %.",
        "",
        "A send is a request that is ready, given to a link: it is what a broker adds to a put.",
        "Applications call `Producer.send`: *seglog, in process* in [RESULTS-client.md](RESULTS-client.md).",
        "",
        "| body | messages a call | bare store, messages/s | requests to the broker, messages/s | share |",
        "| --- | --- | --- | --- | --- |",
        *rows,
    ]
    page.say("What a broker adds to a put", lines)


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):,.0f} ({min(values):,.0f}–{max(values):,.0f})"


if __name__ == "__main__":
    main(sys.argv[1:])

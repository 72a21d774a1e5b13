"""A loop ends around a consumer that was not closed: one line names it; what was at work comes again."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import warnings
from pathlib import Path

from seglog import AsyncPushConsumer, Broker, Message, Producer
from tests.consumer.scenes import play, variants
from tests.support.consumers import until_idle_in_loop
from tests.support.machine.patience import wait_until_in_loop
from tests.support.rows import every_row

SCENE = """
import asyncio, gc, json, logging, sys
from seglog import AsyncLitePullConsumer, AsyncOrderlyConsumer, AsyncPushConsumer
from seglog import Broker, ConsumeFrom, Producer


async def listener(message):
    seen.append(message)
    if how == "catches":
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return
    if how != "quick":
        await asyncio.sleep(60 if how == "sleeps" else 0.001)
    done.append((message.queue_id, message.queue_offset))


def plain(message):
    seen.append(message)
    done.append((message.queue_id, message.queue_offset))


async def main():
    global consumer
    if kind == "AsyncLitePullConsumer":
        consumer = AsyncLitePullConsumer(broker, "g", "T", consume_from=ConsumeFrom.FIRST)
        seen.extend(await consumer.poll(10))
        return
    made = {"AsyncPushConsumer": AsyncPushConsumer, "AsyncOrderlyConsumer": AsyncOrderlyConsumer}[kind]
    given = plain if how == "plain" else listener
    consumer = made(broker, "g", "T", given, consume_from=ConsumeFrom.FIRST)
    await consumer.start()
    while len(seen) < 4:
        await asyncio.sleep(0.001)


def scene(*words):
    global path, kind, how, seen, done, broker, consumer
    path, kind, how = words
    logging.basicConfig(level=logging.WARNING)
    seen, done = [], []
    with Broker.open(path) as broker:
        with Producer(broker) as producer:
            for number in range(400):
                producer.send("T", b"x", queue_id=number % 4)
        asyncio.run(main())
        at_end = len(seen)
        del consumer
        gc.collect()
        committed = [broker.offsets.query("g", "T", queue_id) or 0 for queue_id in range(4)]
        retried = sum(queue.max_offset for queue in broker.store.queues() if queue.topic == "%RETRY%g")
    gc.collect()
    open_ones = [sum(one[0] == queue_id for one in done) < committed[queue_id] for queue_id in range(4)]
    print(json.dumps([at_end > 0, len(seen) - at_end, any(open_ones), retried]))
"""


ROWS = [
    *(
        (kind, how)
        for how in ("sleeps", "quick", "plain")
        for kind in variants(("AsyncPushConsumer", "AsyncOrderlyConsumer"), "unclosed", how)
    ),
    ("AsyncLitePullConsumer", "polled"),
]


def test_a_consumer_that_was_not_closed_is_named_where_its_loop_ends(tmp_path: Path):
    words = [(tmp_path / f"{kind}-{how}", kind, how) for kind, how in ROWS]
    ends = play(SCENE, words, tmp_path, "-W", "always::ResourceWarning")
    with every_row() as row:
        for (kind, how), ended in zip(ROWS, ends, strict=True):
            with row(kind, how):
                assert ended.code == 0, ended.said
                said = [line for line in ended.said.splitlines() if not line.startswith("  ")]
                assert len(said) == 1, ended.said
                named = rf"ResourceWarning: <{kind} g of client [^>]+> was dropped open: close\(\) it"
                assert re.search(named, said[0])
                has_seen, more, is_passed_over, retried = json.loads(ended.out)
                assert has_seen
                assert not is_passed_over
                assert retried == 0
                assert more == 0 or how == "plain", "the listener was called after the end of the loop"


def test_nothing_is_said_of_one_that_was_closed_and_one_that_goes_on_is_not_ended(tmp_path: Path):
    async def main() -> list[int]:
        seen: list[int] = []

        async def listener(message: Message) -> None:
            seen.append(message.queue_offset)

        async with AsyncPushConsumer(broker, "g", "T", listener) as consumer:
            await until_idle_in_loop(consumer)
        other = AsyncPushConsumer(broker, "h", "T", listener)
        await other.start()
        client = other._client
        del other
        gc.collect()
        await asyncio.sleep(0.01)
        await wait_until_in_loop(lambda: len(seen) >= 2)
        await client.leave()
        return seen

    with Broker.open(tmp_path / "s") as broker, warnings.catch_warnings():
        warnings.simplefilter("error")
        with Producer(broker) as producer:
            producer.send("T", b"x", queue_id=0)
        assert asyncio.run(main()) == [0, 0]

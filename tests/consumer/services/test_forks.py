"""A listener forks: the child has the one message that it was given, and nothing else of its parent's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.consumer.scenes import Ended, play, variants
from tests.support.machine.patience import patience_s
from tests.support.rows import every_row

LISTENER_FORKS = """
import asyncio, json, multiprocessing, os, signal, subprocess, sys
from pathlib import Path
from seglog import Broker, ConsumeFrom, OrderlyConsumer, Producer, PushConsumer, SeglogError
from tests.support.listening import BrokerServer



def scene(*words):
    global path, kind, how, where, limit_s, calls, parent, ends, consumer
    path, kind, how, where, limit_s = words
    calls = os.open(path + ".calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    parent, ends = os.getpid(), []
    signal.alarm(int(limit_s))
    with BrokerServer(Path(path)) if where == "remote" else Broker.open(path) as opened:
        broker = opened.broker if where == "remote" else opened
        with Producer(broker) as producer:
            for number in range(40):
                producer.send("T", b"x", queue_id=0)
        target = opened.address if where == "remote" else broker
        made = {"PushConsumer": PushConsumer, "OrderlyConsumer": OrderlyConsumer}[kind.split()[0]]
        given = awaited if kind.endswith("awaited") else (lambda message: listener(message))
        options = {"consume_from": ConsumeFrom.FIRST, "trace": kind.endswith("traced")}
        with made(target, "g", "T", given, **options) as consumer:
            done = consumer.run_until_idle()
            committed = broker.offsets.query("g", "T", 0)
    print(json.dumps([done, committed, ends]))


def use():
    signal.alarm(int(limit_s))
    status = 9
    try:
        for call in (consumer.commit, consumer.lag):
            try:
                call()
            except SeglogError as error:
                assert "forked" in str(error), error
            else:
                os._exit(8)
        consumer.close()
        status = 0
    finally:
        os._exit(status)


def fork():
    if how == "multiprocessing":
        child = multiprocessing.get_context("fork").Process(target=use)
        child.start()
        child.join()
        ends.append(child.exitcode)
    elif how == "preexec_fn":
        done = subprocess.run(["true"], preexec_fn=lambda: os.write(2, b"forked"))
        ends.append(done.returncode)
    else:
        child = os.fork()
        if not child:
            signal.alarm(int(limit_s))
            if how == "exit":
                sys.exit(7)
            if how == "raise":
                raise ValueError("of the child")
            return
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def listener(message, context=None):
    os.write(calls, b"%d %d\\n" % (os.getpid() == parent, message.queue_offset))
    if message.queue_offset == 3 and os.getpid() == parent:
        fork()


async def awaited(message):
    listener(message)
"""


def run(tmp_path: Path, rows: Sequence[tuple[str, str, str]]) -> list[Ended]:
    limit_s = int(patience_s(30))
    words = [(tmp_path / str(number), *row, limit_s) for number, row in enumerate(rows)]
    return play(LISTENER_FORKS, words, tmp_path, "-W", "ignore")


HOWS = {"return": 0, "exit": 7, "raise": 1, "multiprocessing": 0, "preexec_fn": 0}
"""What a child of a listener does, and how it ends."""


def test_a_child_of_a_listener_gets_no_message_and_both_end(tmp_path: Path):
    kinds = ("PushConsumer", "OrderlyConsumer")
    rows = [(kind, how, "local") for how in HOWS for kind in variants(kinds, "forks", how)]
    with every_row() as row:
        for number, ((kind, how, _where), ended) in enumerate(zip(rows, run(tmp_path, rows), strict=True)):
            with row(kind, how):
                assert ended.code == 0, ended.said
                assert json.loads(ended.out.splitlines()[-1]) == [40, 40, [HOWS[how]]]
                calls = sorted(map(str.split, (tmp_path / f"{number}.calls").read_text().splitlines()))
                assert calls == sorted(["1", str(number)] for number in range(40))
                assert "Traceback" not in ended.said or how == "raise"


def test_it_is_so_of_listeners_of_other_kinds_and_over_a_connection(tmp_path: Path):
    kinds = ("PushConsumer traced", "PushConsumer awaited", "OrderlyConsumer awaited")
    rows = [(kind, how, "remote") for kind in kinds for how in variants(("return", "exit"), "forks", kind)]
    with every_row() as row:
        for number, ((kind, how, _where), ended) in enumerate(zip(rows, run(tmp_path, rows), strict=True)):
            with row(kind, how):
                assert ended.code == 0, ended.said
                assert json.loads(ended.out.splitlines()[-1]) == [40, 40, [HOWS[how]]]
                assert len((tmp_path / f"{number}.calls").read_text().splitlines()) == 40


CHILD_ASKS = """
import os, signal, sys
from seglog import AsyncPushConsumer, Broker, ConsumeFrom, LitePullConsumer, Producer, PushConsumer
from pathlib import Path
from seglog.client.home import run_at_once
from seglog.errors import ClientClosedError
from seglog.testing import VirtualBroker
from tests.support.listening import BrokerServer
import asyncio, gc


def refused(call):
    try:
        made = call()
        if hasattr(made, "send"):
            run_at_once(made)
    except ClientClosedError as error:
        return "runs nothing any more: the process was forked" in str(error)
    return False


def listener(message):
    pass


def ask(consumer, queue):
    child = os.fork()
    if not child:
        signal.alarm(int(limit_s))
        status = 9
        try:
            calls = {"lag": consumer.lag, "commit": consumer.commit}
            calls["committed"] = lambda: consumer.committed(queue)
            wrong = [name for name, call in calls.items() if not refused(call)]
            gc.collect()
            print(wrong, file=sys.stderr) if wrong else None
            status = len(wrong)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


async def awaited(target):
    async with AsyncPushConsumer(target, "a", "T", listener) as consumer:
        await consumer.run_until_idle()
        ask(consumer, consumer.queues[0])
        await consumer.commit()


def target():
    return opened.address if where == "remote" else opened.link() if where == "virtual" else opened


def scene(*words):
    global path, where, limit_s, opened
    path, where, limit_s = words
    signal.alarm(int(limit_s))
    made = {"virtual": VirtualBroker.at, "local": Broker.open, "remote": BrokerServer}[where]
    with made(Path(path)) as opened:
        with Producer(target()) as producer:
            producer.send("T", b"x")
        with PushConsumer(target(), "g", "T", listener) as consumer:
            consumer.run_until_idle()
            ask(consumer, consumer.queues[0])
            consumer.commit()
        with LitePullConsumer(target(), "l", "T") as consumer:
            consumer.poll(1)
            ask(consumer, consumer.queues[0])
            consumer.commit()
        asyncio.run(awaited(target()))
"""


def test_questions_and_commits_of_a_forked_child_are_refused_at_once(tmp_path: Path):
    limit_s = int(patience_s(30))
    rows = [(tmp_path / where, where, limit_s) for where in ("local", "remote", "virtual")]
    options = ("-W", "always", "-W", "ignore::DeprecationWarning")
    with every_row() as row:
        for (_path, where, _limit_s), ended in zip(
            rows, play(CHILD_ASKS, rows, tmp_path, *options), strict=True
        ):
            with row(where):
                assert (ended.code, ended.said) == (0, "")

"""A listener forks: the child has the one message that it was given, and nothing else of its parent's consumer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.machine.patience import patience_s

LISTENER_FORKS = """
import asyncio, json, multiprocessing, os, signal, subprocess, sys
from seglog import Broker, ConsumeFrom, OrderlyConsumer, Producer, PushConsumer, Server, SeglogError

path, kind, how, where, limit_s = sys.argv[1:]
calls = os.open(path + ".calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
parent, ends = os.getpid(), []
signal.alarm(int(limit_s))


def use():
    signal.alarm(int(limit_s))
    status = 9
    try:
        for call in (consumer.commit, consumer.lag, lambda: consumer.run_until_idle(5)):
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


with Broker.open(path) as broker:
    with Producer(broker) as producer:
        for number in range(40):
            producer.send("T", b"x", queue_id=0)
    server = Server(broker) if where == "remote" else None
    target = broker if server is None else server.address
    made = {"PushConsumer": PushConsumer, "OrderlyConsumer": OrderlyConsumer}[kind.split()[0]]
    given = awaited if kind.endswith("awaited") else (lambda message: listener(message))
    with made(target, "g", "T", given, consume_from=ConsumeFrom.FIRST, trace=kind.endswith("traced")) as consumer:
        done = consumer.run_until_idle()
        committed = broker.offsets.query("g", "T", 0)
    if server is not None:
        server.close()
print(json.dumps([done, committed, ends]))
"""


def run(path: Path, *args: object) -> tuple[Any, str]:
    limit_s = int(patience_s(30))
    command = [sys.executable, "-W", "ignore", "-c", LISTENER_FORKS, path, *args, limit_s]
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, check=False, timeout=3 * limit_s
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.mark.parametrize(
    ("how", "status"), [("return", 0), ("exit", 7), ("raise", 1), ("multiprocessing", 0), ("preexec_fn", 0)]
)
@pytest.mark.parametrize("kind", ["PushConsumer", "OrderlyConsumer"])
def test_a_child_of_a_listener_gets_no_message_and_both_end(tmp_path: Path, kind: str, how: str, status: int):
    (done, committed, ends), said = run(tmp_path / "s", kind, how, "local")
    assert (done, committed, ends) == (40, 40, [status])
    calls = sorted(map(str.split, (tmp_path / "s.calls").read_text().splitlines()))
    assert calls == sorted(["1", str(number)] for number in range(40))
    assert "Traceback" not in said or how == "raise"


@pytest.mark.parametrize("kind", ["PushConsumer traced", "PushConsumer awaited", "OrderlyConsumer awaited"])
@pytest.mark.parametrize(("how", "status"), [("return", 0), ("exit", 7)])
def test_it_is_so_of_listeners_of_other_kinds_and_over_a_connection(
    tmp_path: Path, kind: str, how: str, status: int
):
    (done, committed, ends), _said = run(tmp_path / "s", kind, how, "remote")
    assert (done, committed, ends) == (40, 40, [status])
    assert len((tmp_path / "s.calls").read_text().splitlines()) == 40

"""A store is served by a process of its own, which signals end in order and a kill does not harm."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from seglog import AsyncProducer, ConsumeFrom, MessageStore, Producer, PushConsumer, SeglogError
from seglog.server.listening import Listener
from tests.support.command_line import Seglog
from tests.support.machine.patience import patience_s


class Serving:
    """A process of ``seglog serve``.

    Args:
        arguments: What it is told.
        options: How it is started.

    Attributes:
        ready: What it says when it is ready.
        address: Where it is.
    """

    def __init__(self, arguments: list[str], **options: Any) -> None:
        command = [sys.executable, "-m", "seglog.cli.main", "serve", *arguments, "--port", "0", "--json"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )
        line = self._out.readline()
        assert line, self.process.communicate()[1]
        self.ready: dict[str, Any] = json.loads(line)
        self.address: str = self.ready["address"]

    @property
    def _out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def end(self, by: signal.Signals) -> tuple[int, list[dict[str, Any]]]:
        """Sends a signal, and returns the exit code and what was said until then."""
        self.process.send_signal(by)
        out, _ = self.process.communicate(timeout=patience_s(60))
        return self.process.returncode, [json.loads(line) for line in out.splitlines()]

    def close(self) -> None:
        """Ends it however it goes."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def serving() -> Iterator[Callable[..., Serving]]:
    """Starts ``seglog serve``; what still runs in the end is killed."""
    with ExitStack() as running:

        def start(*arguments: object, **options: Any) -> Serving:
            one = Serving([str(argument) for argument in arguments], **options)
            running.callback(one.close)
            return one

        yield start


def stored(path: Path, topic: str) -> set[bytes]:
    """Returns the bodies of a topic."""
    found: set[bytes] = set()
    with MessageStore.open(path) as store:
        for queue in store.queues():
            at = queue.min_offset
            while queue.topic == topic and at < queue.max_offset:
                page = store.get(topic, queue.queue_id, at, 1_000)
                found |= {bytes(message.body) for message in page.messages}
                at = page.next_offset
    return found


async def send_until_it_ends(address: str, wanted: int, then: Callable[[], object]) -> set[bytes]:
    """Sends from several tasks until nothing is answered any more; returns what was acknowledged.

    Args:
        address: Of the server.
        wanted: How many are acknowledged before ``then`` is called.
        then: Called once.
    """
    done: set[bytes] = set()
    is_told = False

    async def send(producer: AsyncProducer, sender: int) -> None:
        nonlocal is_told
        number = 0
        while True:
            body = b"%d of %d" % (number, sender)
            try:
                await producer.send("T", body)
            except SeglogError:
                return
            done.add(body)
            number += 1
            if len(done) >= wanted and not is_told:
                is_told = True
                then()

    async with AsyncProducer(address) as producer:
        await asyncio.gather(*(send(producer, sender) for sender in range(8)))
    return done


def test_clients_send_and_consume_and_a_signal_ends_it_in_order(serving, memory_path):
    one = serving(memory_path / "s")
    assert one.ready["kind"] == "ready"
    assert (one.ready["advertised"], one.ready["store"]) == (one.address, str(memory_path / "s"))
    got: list[bytes] = []
    with Producer(one.address) as producer:
        for number in range(50):
            producer.send("T", b"%d" % number)
        with PushConsumer(
            one.address,
            "g",
            "T",
            lambda message: got.append(bytes(message.body)),
            consume_from=ConsumeFrom.FIRST,
        ) as consumer:
            consumer.run_until_idle()
        assert sorted(map(int, got)) == list(range(50))
    code, said = one.end(signal.SIGTERM)
    assert (code, [each["kind"] for each in said]) == (0, ["stopping", "stopped"])
    assert stored(memory_path / "s", "T") == set(got)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_what_is_acknowledged_is_there_after_a_signal_under_load(serving, memory_path, by):
    one = serving(memory_path / "s")
    done = asyncio.run(send_until_it_ends(one.address, 300, lambda: one.process.send_signal(by)))
    out, errors = one.process.communicate(timeout=patience_s(60))
    assert one.process.returncode == 0
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["stopping", "stopped"]
    assert "Traceback" not in errors
    assert len(done) >= 300
    assert done <= stored(memory_path / "s", "T")


def test_what_is_acknowledged_is_there_after_a_kill_under_load_and_it_starts_again(serving, memory_path):
    done: set[bytes] = set()
    for _ in range(2):
        one = serving(memory_path / "s", "--sync")
        done |= asyncio.run(send_until_it_ends(one.address, 200, one.process.kill))
        assert one.process.wait() == -signal.SIGKILL
        assert len(done) >= 200
        assert done <= stored(memory_path / "s", "T")


def test_the_address_comes_to_a_descriptor_and_another_one_is_given_to_clients(serving, memory_path):
    reading, writing = os.pipe()
    with open(reading) as lines:
        one = serving(
            memory_path / "s", "--ready-fd", writing, "--advertise", "192.0.2.7:9876", pass_fds=[writing]
        )
        os.close(writing)
        assert lines.read() == f"{one.address}\n"
    assert one.ready["advertised"] == "192.0.2.7:9876"


def test_an_ephemeral_store_goes_with_its_process(serving):
    one = serving("--ephemeral")
    store = Path(one.ready["store"])
    with Producer(one.address) as producer:
        producer.send("T", b"x")
    assert store.is_dir()
    assert one.end(signal.SIGTERM)[0] == 0
    assert not store.parent.exists()


def test_the_soft_limit_of_descriptors_is_raised_to_the_hard_one(serving):
    one = serving("--ephemeral", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 321)))
    assert resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE) == (321, 321)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give either STORE or --ephemeral"),
        (["s", "--ephemeral"], "give either STORE or --ephemeral"),
        (["s", "--host", "0.0.0.0"], "not loopback: there is no authentication yet"),
        (["s", "--host", "0.0.0.0", "--insecure", "--port", "0"], "give --advertise too"),
        (["s", "--advertise", "example.com:9876"], "is no host and port"),
        (["s", "--ready-fd", "987"], "--ready-fd 987 is no open descriptor"),
        (["s", "--port", "65536"], "65536 is not in the range"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_made(
    seglog: Seglog, tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    ran = seglog("serve", *arguments)
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_in_use_leaves_no_store(seglog: Seglog, tmp_path):
    with Listener(port=0) as listener:
        ran = seglog("serve", tmp_path / "s", "--port", listener.address.partition(":")[2])
    assert ran.exit_code == 49
    assert "Address already in use" in ran.stderr
    assert not (tmp_path / "s").exists()

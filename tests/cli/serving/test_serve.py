"""A store is served by a process of its own, which signals end in order and a kill does not harm."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from seglog import AsyncProducer, ConsumeFrom, MessageStore, Producer, PushConsumer, SeglogError
from seglog.client.connect import make_client
from seglog.logs import logger
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.server.listening import Listener
from seglog.storage.format.config import parse_java_properties
from tests.support.command_line import Seglog
from tests.support.machine.patience import patience_s
from tests.support.scale import scaled


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


async def send_until_it_ends(
    address: str, wanted: int, then: Callable[[], object], life: int = 0
) -> set[bytes]:
    """Sends from several tasks until nothing is answered any more; returns what was acknowledged.

    Args:
        address: Of the server.
        wanted: How many are acknowledged before ``then`` is called.
        then: Called once.
        life: Number of the process that serves, for bodies that are not those of another one.
    """
    done: set[bytes] = set()
    is_told = False

    async def send(producer: AsyncProducer, sender: int) -> None:
        nonlocal is_told
        number = 0
        while True:
            body = b"%d of %d in life %d" % (number, sender, life)
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
    for life in range(scaled(2, 100)):
        one = serving(memory_path / "s", "--sync")
        of_life = asyncio.run(send_until_it_ends(one.address, 200, one.process.kill, life))
        assert one.process.wait() == -signal.SIGKILL
        assert len(of_life) >= 200
        done |= of_life
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


def test_a_ready_descriptor_that_cannot_be_written_is_wrong_usage(seglog: Seglog, tmp_path):
    reading, writing = os.pipe()
    ran = seglog("serve", tmp_path / "s", "--ready-fd", reading)
    assert (ran.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert f"--ready-fd {reading} is open for reading only" in ran.stderr
    os.close(reading)
    os.close(writing)


def test_a_pipe_that_has_lost_its_reader_is_logged_and_clients_are_served(serving):
    reading, writing = os.pipe()
    os.close(reading)
    one = serving("--ephemeral", "--ready-fd", writing, pass_fds=[writing])
    os.close(writing)
    with Producer(one.address) as producer:
        producer.send("T", b"x")
    one.process.send_signal(signal.SIGTERM)
    _, said = one.process.communicate(timeout=patience_s(60))
    assert one.process.returncode == 0
    assert f"--ready-fd {writing}: the address is not taken: Broken pipe" in said


def test_what_a_client_sets_is_said(serving):
    one = serving("--ephemeral")
    with make_client(one.address) as client:
        text = b"shortPollingTimeMills=7\nsendMessageThreadPoolNums=3\n"
        request = Request(RequestCode.UPDATE_BROKER_CONFIG, body=text)
        assert client.link.invoke(request, 30_000, one.address).code is ResponseCode.SUCCESS
    one.process.send_signal(signal.SIGTERM)
    _, said = one.process.communicate(timeout=patience_s(60))
    assert "sets shortPollingTimeMills=7" in said
    assert "sets what changes nothing here: sendMessageThreadPoolNums" in said


def test_how_long_a_send_may_wait_is_what_is_said_and_what_tools_see(serving):
    one = serving("--ephemeral", "--send-wait-ms", "250")
    with make_client(one.address) as client:
        answer = client.link.invoke(Request(RequestCode.GET_BROKER_CONFIG), 30_000, one.address)
        assert isinstance(answer.body, bytes | memoryview)
        assert parse_java_properties(bytes(answer.body))["waitTimeMillsInSendQueue"] == "250"


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


def test_clients_cannot_take_the_descriptors_that_files_need(serving, tmp_path):
    errors = tmp_path / "errors"
    with errors.open("w") as stderr:
        one = serving(
            "--ephemeral",
            stderr=stderr,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)),
        )
    host, _, port = one.address.rpartition(":")
    with Producer(one.address) as producer, ExitStack() as clients:
        producer.send("T", b"x")
        for _ in range(150):
            clients.enter_context(closing(socket.create_connection((host, int(port)))))
        for topic in range(10):
            producer.send(f"T{topic}", b"x")
    assert one.end(signal.SIGTERM)[0] == 0
    said = errors.read_text()
    assert "at most 64 connections are accepted: this process may have 128 descriptors" in said
    assert "too many open files" not in said.lower()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give either STORE or --ephemeral"),
        (["s", "--ephemeral"], "give either STORE or --ephemeral"),
        (["s", "--host", "0.0.0.0"], "not loopback: there is no authentication yet"),
        (["s", "--host", "0.0.0.0", "--insecure", "--port", "0"], "give --advertise too"),
        (["s", "--advertise", "example.com:9876"], "it is the address itself, such as 192.0.2.7:9876"),
        (["s", "--advertise", "192.0.2.7:0"], "--advertise 192.0.2.7:0: no client reaches port 0"),
        (["s", "--advertise", "0.0.0.0:1"], "no client reaches a broker at 0.0.0.0"),
        (["s", "--advertise", "[ff02::1]:1"], "no client reaches a broker at ff02::1"),
        (["s", "--port", "21500", "--broker-port", "21500"], "takes 21500 and 21498, for the VIP channel"),
        (["s", "--port", "21498", "--broker-port", "21500"], "--port 21498 is one of the broker's ports"),
        ([""], "it is empty: name the store's directory"),
        (["s", "--port", "0", "--follow", "nosuch"], "--follow nosuch: there is no nosuch in "),
        (["s", "--ready-fd", "987"], "--ready-fd 987 is no open descriptor"),
        (["s", "--ready-fd", "1"], "1 is not in the range x>=3"),
        (["s", "--port", "65536"], "65536 is not in the range"),
        (["s", "--send-wait-ms", "0"], "0 is not in the range"),
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
    assert f"Address already in use, by process {os.getpid()} (" in ran.stderr
    assert "`--port 0` and `--broker-port 0` take free ones" in ran.stderr
    assert not (tmp_path / "s").exists()


def test_what_is_logged_elsewhere_in_a_process_is_as_before(seglog: Seglog, tmp_path):
    log = logger("seglog")
    before = log.level, list(logging.root.handlers)
    assert seglog("serve", tmp_path / "s", "--port", "0", "--follow", "nosuch").exit_code == 2
    assert (log.level, logging.root.handlers) == before

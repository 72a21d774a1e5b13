"""A stop sends clients away, ends held pulls, and leaves no send without its answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.errors import InvalidArgumentError
from seglog.remoting.client_headers import RunningInfoHeader
from seglog.remoting.codec import Answered, Codec
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, Sender
from seglog.remoting.later import Deferred
from seglog.server.async_server import AsyncServer
from seglog.server.limits import ServerLimits
from seglog.server.listening import Listener
from seglog.storage.store import MessageStore
from seglog.storage.writes import Durability
from tests.server.conftest import ask
from tests.server.frames import bytes_of
from tests.support.asks import GROUP, beat_of, pull_from, route_of, send_to
from tests.support.machine.patience import patience_s, wait_for_event, wait_for_result, wait_until

OLD = Sender("JAVA", 475)
"""V5_3_1, which does not know GO_AWAY."""


def test_clients_are_sent_away_while_what_was_asked_before_is_answered(serve, dial, join):
    server = serve()
    late: Deferred[Response] = Deferred()
    asked = threading.Event()

    def answer(_request: Request) -> Deferred[Response]:
        asked.set()
        return late

    first, new, old, consumer = join(server), join(server), join(server, sender=OLD), join(server, answer)
    ask(first, send_to("T"))
    ask(consumer, beat_of("c1", "T"))
    held = new.ask(pull_from("T", 1, 60_000), 60_000)
    wait_until(lambda: server.broker.held_count == 1)
    relayed = first.ask(
        Request(RequestCode.GET_CONSUMER_RUNNING_INFO, RunningInfoHeader(GROUP, "c1")), 60_000
    )
    wait_for_event(asked, idle_s=30)

    stop = threading.Thread(target=server.server.close, args=(600_000,))
    stop.start()
    assert wait_for_result(held, idle_s=30).code is ResponseCode.PULL_NOT_FOUND
    late.resolve(Response(ResponseCode.SUCCESS, body=b"{}"))
    assert wait_for_result(relayed, idle_s=30).code is ResponseCode.SUCCESS
    with pytest.raises(ConnectionRefusedError):
        dial(server)
    assert ask(new, route_of("T")).code is ResponseCode.GO_AWAY
    assert ask(old, route_of("T")).code is ResponseCode.SUCCESS
    assert ask(old, send_to("T")).code is ResponseCode.SERVICE_NOT_AVAILABLE
    reply = replace(send_to("T"), code=RequestCode.SEND_REPLY_MESSAGE_V2)
    assert ask(old, reply).code is ResponseCode.SERVICE_NOT_AVAILABLE
    assert ask(old, pull_from("T", 1, 60_000)).code is ResponseCode.PULL_NOT_FOUND
    assert stop.is_alive()
    server.server.hang_up()
    stop.join()
    assert server.server.connection_count == 0
    server.server.close()  # once more does nothing
    assert server.broker.store.max_offset("T", 0) == 1


def test_every_send_that_a_stop_meets_is_stored_and_acknowledged_or_neither(memory_path):
    async def scene(broker: Broker, listener: Listener) -> tuple[int, int]:
        codec, told, gone = Codec(), 0, 0
        server = AsyncServer(broker, listener, limits=ServerLimits(stop_ms=600_000))
        await server.start()
        reader, writer = await asyncio.open_connection(*server.address.split(":"))
        writer.write(bytes_of(codec, *(send_to("T", b"%d" % number) for number in range(2_000))))
        closing = None
        while data := await reader.read(1 << 16):
            for event in codec.receive(data):
                assert isinstance(event, Answered)
                assert isinstance(event.answer, Response)
                told += event.answer.code is ResponseCode.SUCCESS
                gone += event.answer.code is ResponseCode.GO_AWAY
            closing = closing or asyncio.ensure_future(server.close())
        writer.close()
        assert closing is not None
        await closing
        return told, gone

    listener = Listener(port=0)
    with Broker.open(
        memory_path / "s", config=BrokerConfig(address=listener.address), durability=Durability.SYNC
    ) as broker:
        told, gone = asyncio.run(scene(broker, listener))
    assert told + gone <= 2_000
    with MessageStore.open(memory_path / "s") as store:
        assert store.max_offset("T", 0) == told > 0


def test_clients_are_sent_away_for_a_time_even_where_nothing_waits(serve, join):
    server = serve()
    client = join(server)
    ask(client, route_of("T"))
    stop = threading.Thread(target=server.server.close, args=(600_000,))
    stop.start()
    wait_until(lambda: ask(client, route_of("T")).code is ResponseCode.GO_AWAY)
    assert stop.is_alive()
    server.server.hang_up()
    stop.join()


def test_a_client_that_does_not_read_does_not_keep_a_stop(serve, dial, join):
    server, codec = serve(stop_ms=300, answer_bytes=10_000), Codec()
    ask(join(server), send_to("T", b"x" * 100_000))
    deaf = dial(server)
    deaf.sendall(bytes_of(codec, beat_of("c1", "T"), *(pull_from("T", 0) for _ in range(300))))
    wait_until(lambda: any(each.is_busy for each in server.server._server._connections), idle_s=30)
    server.server.close()
    assert server.server.connection_count == 0


def test_a_server_is_started_once_and_one_that_never_was_gives_its_port_back(tmp_path):
    async def scene(broker: Broker) -> None:
        listener = Listener(port=0)
        async with AsyncServer(broker, listener) as server:
            with pytest.raises(InvalidArgumentError, match="started before"):
                await server.start()
        never = AsyncServer(broker, again := Listener(port=0))
        await never.close()
        with pytest.raises(InvalidArgumentError, match="started before"):
            await never.start()
        assert again.socket.fileno() == -1

    with Broker.open(tmp_path / "s", config=BrokerConfig(address="127.0.0.1:1")) as broker:
        asyncio.run(scene(broker))


FORKING = """
import asyncio, os, signal, sys
from seglog import AsyncServer, Broker, Listener, Producer, Server
from seglog.broker.settings import BrokerConfig
from seglog.errors import ClosedError

def refused(use):
    try:
        use()
    except ClosedError as error:
        of_parent = "is open in the process that this one was forked from"
        return str(error) == f"the server at {server.address} {of_parent}"
    return False

def outcome(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def serves():
    with Producer(server.address) as producer:
        return producer.send("T", b"x", queue_id=0).queue_offset

def close_async():
    server.close().send(None)  # its first step; there is no second one

found = []
listener = Listener(port=0)
with Broker.open(sys.argv[1], config=BrokerConfig(address=listener.address)) as broker:
    with Server(broker, listener) as server:
        child = os.fork()
        if not child:
            signal.alarm(int(sys.argv[2]))
            os._exit(7 if refused(server.hang_up) and refused(server.close) else 1)
        found += [outcome(child), serves()]
        child = os.fork()
        if not child:
            signal.alarm(int(sys.argv[2]))
            sys.exit(8)  # out of the with statements, whose ends do nothing
        found += [outcome(child), serves()]

    async def serve():
        global server
        async with AsyncServer(broker, Listener(port=0)) as server:
            child = os.fork()
            if not child:
                signal.alarm(int(sys.argv[2]))
                os._exit(9 if refused(server.hang_up) and refused(close_async) else 1)
            found.append(outcome(child))
            child = os.fork()
            if not child:
                signal.alarm(int(sys.argv[2]))
                await server.__aexit__(None, None, None)
                os._exit(10)
            found.append(outcome(child))
            _, writer = await asyncio.open_connection(*server.address.split(":"))
            while not server.connection_count:  # no child took its socket out
                await asyncio.sleep(0.001)
            found.append(server.connection_count)
            writer.close()

    asyncio.run(serve())
print(*found)
"""


def test_a_forked_child_gets_one_error_closes_nothing_and_waits_for_nothing(tmp_path):
    limit_s = int(patience_s(30))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, tmp_path / "s", str(limit_s)],
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * limit_s,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["7", "0", "8", "1", "9", "10", "1"]), done.stderr

"""Links that are closed, loops that end, processes that fork: nothing is left and nothing hangs."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from contextlib import suppress

import pytest

from seglog.client.home.loop_home import LoopHome
from seglog.client.home.thread_home import thread_home
from seglog.client.links.dialing import dial
from seglog.client.links.remote_link import RemoteLink
from seglog.errors import (
    AskTimeoutError,
    ClientClosedError,
    InvalidArgumentError,
)
from seglog.remoting.command import Request
from tests.support.connections import WireEnd
from tests.support.listening import Server
from tests.support.machine.patience import patience_s, wait_for_end, wait_until
from tests.support.peers import (
    ASK,
    answering,
    closed_port,
    echo,
    read_for_ever,
)


def test_close_ends_what_waits_and_leaves_no_socket(link_to):
    with Server(answering(lambda _: None)) as server:
        link = link_to(server.address)
        waiting = link.ask(ASK, 60_000)
        link.close()
        with pytest.raises(ClientClosedError, match="client was closed"):
            waiting.result()
        assert link.closed.is_done
        assert not link._lines[server.address]._open
        assert not [
            each for each in thread_home().sockets if each.fileno() >= 0 and _peer(each) == server.port
        ]


def _peer(one):
    with suppress(OSError):
        return one.getpeername()[1]
    return None


def test_what_was_told_before_a_close_arrives(link_to):
    told = []

    def serve(one, number):
        end = WireEnd(one, thread_home().timers)
        end.join()
        told.extend(end.told)

    with Server(serve) as server:
        link = link_to(server.address)
        link.tell(ASK)
        wait_until(lambda: server.sockets)
        wait_until(lambda: link._lines[server.address]._current.is_made)
        for number in range(100):
            link.tell(Request(9_999, body=b"%d" % number))
        link.close()
        wait_until(lambda: told)
        assert [one.body for one in told[1:]] == [b"%d" % number for number in range(100)]


def test_a_home_does_not_wait_for_itself(link_to):
    link = link_to("127.0.0.1:1")

    async def scene():
        with pytest.raises(InvalidArgumentError, match="would wait for itself"):
            link.invoke(ASK)

    asyncio.run(scene())


def test_a_users_loop_carries_a_link_and_ends_without_a_word(recwarn):
    gc.collect()  # what other tests have left says its word before
    recwarn.clear()
    with Server(answering(echo)) as server:

        async def scene():
            link = RemoteLink(server.address, LoopHome(asyncio.get_running_loop()))
            asked = [link.ask(Request(9_999, body=b"%d" % number)) for number in range(100)]
            assert [(await one).body for one in asked] == [b"%d" % number for number in range(100)]
            never = link.ask(ASK, 60_000, f"127.0.0.1:{closed_port()}")
            link.close()
            with pytest.raises(ClientClosedError):
                await never
            await link.closed

        asyncio.run(scene(), debug=True)
    gc.collect()
    assert [str(each.message) for each in recwarn] == []


def test_a_loop_that_closes_first_leaves_errors_and_no_hang():
    with Server(read_for_ever) as server:
        found = []

        async def scene():
            found.append(RemoteLink(server.address, LoopHome(asyncio.get_running_loop())))
            await asyncio.sleep(0)

        asyncio.run(scene())
        (link,) = found
        with pytest.raises(ClientClosedError, match="its event loop was closed"):
            link.invoke(ASK)
        link.tell(ASK)
        link.close()
        assert link.closed.is_done


def test_a_loop_that_does_not_run_is_told_of(monkeypatch):
    monkeypatch.setattr("seglog.client.links.remote_link._GRACE_S", 0.05)
    loop = asyncio.new_event_loop()
    link = RemoteLink("127.0.0.1:1", LoopHome(loop))
    with pytest.raises(AskTimeoutError, match="the event loop of the client does not run"):
        link.invoke(ASK, 10)
    loop.run_until_complete(asyncio.sleep(0))
    link.close()
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()


FORK = """
import os, sys, threading
from seglog.client.home.thread_home import thread_home
from seglog.client.links.remote_link import RemoteLink
from seglog.errors import ClientClosedError
from seglog.remoting.command import Request
link = RemoteLink(sys.argv[1], thread_home())
assert link.invoke(Request(9999)).code == 0
for _ in range(20):  # with the home at work
    asked = link.ask(Request(9999))
    child = os.fork()
    if not child:
        status = 1
        try:
            try:
                link.invoke(Request(9999))
            except ClientClosedError as error:
                assert "forked" in str(error) and "make a new client" in error.help
            link.close()
            assert not any(each.fileno() >= 0 for each in thread_home().sockets)
            own = RemoteLink(sys.argv[1], thread_home())
            assert own.invoke(Request(9999)).code == 0
            assert sum(thread.name == "seglog-client" for thread in threading.enumerate()) == 1
            own.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert asked.wait(300).code == 0
    assert link.invoke(Request(9999)).code == 0
child = os.fork()
if not child:
    sys.stdin.read()  # it goes on, and the connection of its parent ends with the parent
    os._exit(0)
os._exit(0)
"""


def test_a_forked_child_has_its_own_home_and_holds_no_connection_of_its_parent(start_child):
    with Server(answering(echo)) as server:
        parent = start_child((sys.executable, "-c", FORK, server.address), stdin=subprocess.PIPE)
        assert wait_for_end(parent, idle_s=30) == 0
        assert len(server.sockets) == 21
        # The last child is alive still.
        wait_until(lambda: not any(each.fileno() >= 0 for each in server.sockets))


def test_a_client_over_connections_loads_asyncio_and_one_in_process_does_not():
    code = """
import sys
import seglog.client.links, seglog.client.home.virtual_home
assert 'asyncio' not in sys.modules
import seglog.client.links.remote_link
assert 'asyncio' in sys.modules
"""
    subprocess.run((sys.executable, "-c", code), check=True, timeout=patience_s(30))


@pytest.mark.parametrize(("host", "threads"), [("127.0.0.1", False), ("localhost", True)])
def test_a_name_is_looked_up_in_a_thread_of_the_loop_and_an_address_in_none(host: str, threads: bool):
    async def scene(address: str) -> bool:
        loop = asyncio.get_running_loop()
        one = await dial(loop, address, patience_s(10), lambda _socket: None)
        with one:
            assert one.getpeername()[1] == int(address.rpartition(":")[2])
        return getattr(loop, "_default_executor", None) is not None

    with Server(read_for_ever) as server:
        assert asyncio.run(scene(f"{host}:{server.port}")) is threads

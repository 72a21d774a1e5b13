"""What would wait for the thread that it is called in is refused at once, and the server goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from seglog import AsyncServer, Broker, Listener, Producer, Server
from seglog.broker.settings import BrokerConfig
from seglog.errors import InvalidArgumentError, SeglogError
from seglog.remoting.codes import RequestCode
from tests.support.machine.patience import join_thread


class Hooked:
    """A served broker, and what one call in the server's thread came to.

    Attributes:
        call: What that thread calls, once, before a message is stored.
        met: What it raised; None where it went well.
    """

    def __init__(self, path, opened: ExitStack) -> None:
        self.call: Callable[[], object] | None = None
        self.met: list[Exception | None] = []
        listener = Listener(port=0)
        opened.callback(listener.close)
        config = BrokerConfig(address=listener.address)
        broker = opened.enter_context(Broker.open(path, config=config, before=self._before))
        self.server = opened.enter_context(Server(broker, listener))

    def _before(self, asked) -> None:
        call, self.call = self.call, None
        if call is None or asked.code not in {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2}:
            self.call = call
            return
        try:
            call()
        except SeglogError as error:
            self.met.append(error)
        else:
            self.met.append(None)


@pytest.fixture
def hooked(tmp_path):
    with ExitStack() as opened:
        yield Hooked(tmp_path / "s", opened)


def met_by(hooked: Hooked, call: Callable[[], object]) -> Exception | None:
    """Returns what a call in the server's thread raised; a send that came in meanwhile is answered."""
    hooked.call = call
    with Producer(hooked.server.address) as producer:
        producer.send("T", b"x", queue_id=0)
    (met,) = hooked.met
    return met


def test_a_server_is_not_closed_by_the_thread_that_serves(hooked):
    met = met_by(hooked, hooked.server.close)
    assert isinstance(met, InvalidArgumentError)
    assert "cannot be closed by the thread that serves" in str(met)
    assert "another thread" in met.help
    with Producer(hooked.server.address) as producer:
        producer.send("T", b"y", queue_id=0)


def test_that_thread_may_have_another_one_close_it(hooked):
    closing = threading.Thread(target=hooked.server.close)
    assert met_by(hooked, closing.start) is None
    join_thread(closing, idle_s=30)
    assert not closing.is_alive()


def test_a_producer_that_waits_is_refused_in_that_thread(hooked):
    def send() -> None:
        with Producer(hooked.server.address, "inner") as producer:
            producer.send("T", b"inner")

    met = met_by(hooked, send)
    assert isinstance(met, InvalidArgumentError)
    assert "would wait for itself" in str(met)


def test_a_server_is_closed_by_its_own_loop_alone(tmp_path):
    async def serve() -> None:
        with (
            Listener(port=0) as listener,
            Broker.open(tmp_path / "s", config=BrokerConfig(address=listener.address)) as broker,
        ):
            server = AsyncServer(broker, listener)
            await server.start()
            with pytest.raises(InvalidArgumentError, match="another event loop"):
                await asyncio.to_thread(asyncio.run, server.close())
            await server.close()

    asyncio.run(serve())

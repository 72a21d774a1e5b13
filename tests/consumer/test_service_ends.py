"""A service that ends by SIGTERM, as docs/clients.md shows it, leaves no lock behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from seglog.producer.producer import Producer
from tests.support.listening import BrokerServer
from tests.support.machine.children import Process
from tests.support.machine.patience import wait_for_end, wait_until
from tests.tooling.test_readme import fenced_blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
HEAD = """
from seglog import OrderlyConsumer

def ship(order):
    print("shipped", flush=True)

"""


def test_finding_5_the_recipe_for_a_service_gives_its_queues_back_on_sigterm(
    tmp_path: Path, start_child: Callable[..., Process]
):
    (recipe,) = (block for block in fenced_blocks(PAGE.read_text()) if block.language == "python service")
    with BrokerServer(tmp_path / "s") as server:
        Producer(server.broker).send("orders", b"x")
        script = HEAD + recipe.text.replace("127.0.0.1:9876", server.address)
        service = start_child([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        assert service.stdout is not None
        assert service.stdout.readline() == "shipped\n"
        assert server.broker.locks.all()
        service.send_signal(signal.SIGTERM)
        assert wait_for_end(service, idle_s=60) == 0
        wait_until(lambda: not server.broker.locks.all(), idle_s=30)
        wait_until(lambda: server.broker.clients.consumers("shipping") is None, idle_s=30)

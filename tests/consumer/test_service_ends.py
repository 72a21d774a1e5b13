"""A service that ends by SIGTERM, as docs/clients.md shows it, leaves no lock behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from seglog.producer.producer import Producer
from tests.support.listening import BrokerServer
from tests.support.machine.patience import patience_s, wait_until
from tests.tooling.test_readme import fenced_blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
HEAD = """
from seglog import OrderlyConsumer

def ship(order):
    print("shipped", flush=True)

"""


def test_finding_5_the_recipe_for_a_service_gives_its_queues_back_on_sigterm(tmp_path: Path):
    (recipe,) = (block for block in fenced_blocks(PAGE.read_text()) if block.language == "python service")
    with BrokerServer(tmp_path / "s") as server:
        Producer(server.broker).send("orders", b"x")
        script = HEAD + recipe.text.replace("127.0.0.1:9876", server.address)
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as service:
            try:
                assert service.stdout is not None
                assert service.stdout.readline() == "shipped\n"
                assert server.broker.locks.all()
                service.send_signal(signal.SIGTERM)
                assert service.wait(patience_s(60)) == 0
            finally:
                service.kill()
        wait_until(lambda: not server.broker.locks.all(), idle_s=30)
        assert server.broker.clients.consumers("shipping") is None

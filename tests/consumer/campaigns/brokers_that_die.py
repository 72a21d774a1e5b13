"""A broker of ours behind a port, in a process of its own that can be killed; see ``KilledBroker``.

python -m tests.consumer.campaigns.brokers_that_die PATH PORT ADVERTISED
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from contextlib import ExitStack
from pathlib import Path

from seglog.broker.settings.config import BrokerConfig
from tests.support.listening import BrokerServer
from tests.support.machine.children import child

ROOT = Path(__file__).parents[3]
DELAY_LEVELS = " ".join(["1s"] * 18)


class KilledBroker:
    """A broker that is killed, and comes back on its store.

    Args:
        path: Its store.
        port: Where it listens.
        advertised: The address that its routes name.
    """

    def __init__(self, path: Path, port: int, advertised: str) -> None:
        self._command = [sys.executable, "-m", __name__, str(path), str(port), advertised]
        self._running = ExitStack()
        self.come_back()

    def kill(self) -> None:
        """Ends it with SIGKILL."""
        self._running.close()

    def come_back(self) -> None:
        """Starts it again; it listens when this returns."""
        process = self._running.enter_context(
            child(self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "it listens\n"


def main(path: str, port: str, advertised: str) -> None:
    """Serves until it is killed, or has no parent any more."""
    config = BrokerConfig(delay_levels=DELAY_LEVELS, hot_bytes=0)
    try:
        with BrokerServer(Path(path), int(port), config, advertised):
            print("it listens", flush=True)
            sys.stdin.read()
    except BaseException:  # noqa: BLE001 - threads of the server would keep what has failed alive
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])

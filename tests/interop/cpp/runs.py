"""Has the C++ client do scenarios at a broker, some at a time, and prints a line of JSON for each.

python -m tests.interop.cpp.runs NAME_SERVER BROKER LIMIT_S [SCENARIO]...
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Final

from seglog.client.client import Client
from seglog.client.connect import make_client
from tests.interop.cpp import consumes, sends
from tests.interop.cpp.site import Site

AT_A_TIME: Final = 6
SCENARIOS: Final[dict[str, Callable[[Site], object]]] = {
    "dead": consumes.dead,
    "retried": consumes.retried,
    "shared": consumes.shared,
    "broadcast": consumes.broadcast,
    "again": consumes.again,
    "in order": consumes.in_order,
    "concurrent": consumes.concurrent,
    "tags": consumes.by_tags,
    "pulled": consumes.pulled,
    "delayed": sends.delayed,
    "alone": sends.alone,
    "spread": sends.spread,
    "oneway": sends.oneway,
    "in flight": sends.in_flight,
    "selected": sends.selected,
    "batch": sends.batch,
    "big": sends.big,
    "new topic": sends.new_topic,
    "refused": sends.refused,
}
"""Those that take long are first."""


def main(name_server: str, broker: str, limit_s: str, *chosen: str) -> None:
    """Does them, and ends without the ends of the library's threads."""
    with make_client(name_server) as looking, ThreadPoolExecutor(AT_A_TIME) as threads:
        printing = Lock()

        def do(name: str) -> None:
            line = json.dumps(line_of(name, name_server, broker, looking, float(limit_s)))
            with printing:  # lines of two threads would come in one, for print() writes the newline apart
                print(line, flush=True)

        list(threads.map(do, chosen or SCENARIOS))
    os._exit(0)


_kept: list[Site] = []
"""Their clients are not to end before the process does: some of these ends take minutes, or crash."""


def line_of(name: str, name_server: str, broker: str, looking: Client, limit_s: float) -> dict[str, Any]:
    """Returns what came of a scenario."""
    at = Site(name.replace(" ", "-"), name_server, broker, looking, limit_s)
    _kept.append(at)
    try:
        return {"scenario": name, "outcome": SCENARIOS[name](at)}
    except Exception:  # noqa: BLE001 - it is what came of the scenario
        return {"scenario": name, "failure": traceback.format_exc()}


if __name__ == "__main__":
    main(*sys.argv[1:])

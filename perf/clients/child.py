"""``python -m perf.clients.child CLIENT``: a Python client that carries out its parent's requests.

A line of standard input is a piece of work. It does that once to warm up, says ``ready``, and does it again
on the next line; then it says ``over``, and after one more line what it found. So its parent reads the clocks
of processes while this one waits. Java's side is ``ClientBench.java``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from perf.clients.session import Session
from perf.clients.work import Kind, Work


def session_maker(client: str) -> Callable[[Work], Session]:
    """Returns the session factory of a client; only that client is imported."""
    if client == "pypi":
        from perf.clients import pypi_client

        return pypi_client.session
    from perf.clients import seglog_client

    return seglog_client.in_process if client == "in-process" else seglog_client.remote


def serve(client: str) -> None:
    """Carries out requests until standard input ends."""
    make = session_maker(client)
    for line in sys.stdin:
        asked = dict(pair.split("=", 1) for pair in line.split())
        work = Work(
            Kind(asked["kind"]),
            asked["target"],
            asked["topic"],
            asked["name"],
            int(asked["messages"]),
            int(asked["senders"]),
            int(asked["body"]),
            int(asked["batch"]),
        )
        session = make(work)
        session.do()
        session.check()
        _say_and_wait("ready")
        wall_s = session.do()
        _say_and_wait("over")
        session.check()
        session.close()
        print(json.dumps({"messages": work.messages, "wall_s": wall_s}), flush=True)


def _say_and_wait(word: str) -> None:
    print(word, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    serve(sys.argv[1])

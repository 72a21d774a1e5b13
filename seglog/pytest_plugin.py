"""The fixtures ``seglog_broker`` and ``seglog_server`` for tests of any project that has seglog installed.

Each test gets a broker of its own, on virtual time or behind a port; see :mod:`seglog.testing`. Before a test
uses a fixture, only this module and the package itself are loaded, which loads its names when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from seglog.testing import ServedBroker, VirtualBroker


@pytest.fixture
def seglog_broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    """A RocketMQ-compatible broker without sockets, whose time the test moves.

    Its timed work runs in the thread of the test. Its store has threads like every store that is open
    for writing: they flush, index, seal and make files ahead, and end with the broker.
    """
    from seglog.testing import VirtualBroker  # loads the engine

    with VirtualBroker.at(tmp_path / "seglog-broker") as broker:
        yield broker


@pytest.fixture
def seglog_server(tmp_path: Path) -> Iterator[Callable[..., ServedBroker]]:
    """Starts RocketMQ-compatible brokers behind ports of their own, for clients of any language.

    With ``seglog_server(clock="virtual")`` stamps, delays, retries and retention follow ``advance("2h")``;
    connections, held pulls and locks use real time. By default everything uses real time. With
    ``seglog_server(topics=["orders"])`` a consumer of RocketMQ's clients that starts first need not wait 30 s
    for its topic. Further arguments are those of ``ServedBroker.at``. The brokers end with the test.
    """
    from seglog.testing import ServedBroker  # loads the engine

    with ExitStack() as served:
        count = iter(range(1, 1 << 31))

        def start(**options: object) -> ServedBroker:
            path = tmp_path / f"seglog-server-{next(count)}"
            return served.enter_context(ServedBroker.at(path, **options))  # type: ignore[arg-type]  # they are checked there

        yield start

"""RocketMQ's own client in C++ gets the same results at our server as at the real broker.

It is ``rocketmq`` 0.4.4 from PyPI. One process of clients works at each, both at the same time, as of those
in Java.
"""

from __future__ import annotations

from typing import Final

import pytest

from seglog.broker.settings.config import BrokerConfig
from tests.interop.judging import toolchain
from tests.interop.judging.client_runs import Both, ClientRun, check_no_failure, cpp_clients, run_at_both
from tests.interop.judging.places import DELAY_LEVELS
from tests.support.listening import BrokerServer

pytestmark = pytest.mark.interop

SCENARIOS: Final = (
    *("retried", "shared", "broadcast", "again", "in order", "concurrent", "tags", "pulled"),
    *(
        "delayed",
        "alone",
        "spread",
        "oneway",
        "in flight",
        "selected",
        "batch",
        "big",
        "new topic",
        "refused",
    ),
)


@pytest.fixture(scope="module", autouse=True)
def _client() -> None:
    """Skips where the client is not; not at the import, which `make test` does too, without its package."""
    pytest.importorskip("rocketmq.client", reason="its wheels are for Linux on x86-64", exc_type=ImportError)


@pytest.fixture(scope="module")
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """What came of all scenarios at both."""
    request.getfixturevalue("judge")  # it skips, or fails, where there is no Java
    folder = tmp_path_factory.mktemp("clients")
    return run_at_both(folder, toolchain.DEFAULT_VERSION, cpp_clients(SCENARIOS), delay_levels=DELAY_LEVELS)


def test_each_scenario_was_done(both):
    both.check_done(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_clients_come_to_the_same(both, scenario):
    both.check_alike(scenario)


def test_after_the_last_attempt_a_message_is_a_dead_letter(tmp_path):
    """It sends a message back without its topic, at which RocketMQ 5.4.0 fails: it is in no topic then."""
    with BrokerServer(tmp_path / "store", config=BrokerConfig(delay_levels=DELAY_LEVELS)) as at:
        run = ClientRun(cpp_clients(("dead",))(at.address, at.address, tmp_path), tmp_path)
        try:
            (done,) = run.outcomes().values()
        finally:
            run.close()
    check_no_failure(done)
    ((letter,),) = done["outcome"]["dead"]
    assert (letter["body"], letter["reconsumeTimes"]) == ("m1", 2)
    assert [times for body, _topic, times in done["outcome"]["attempts"] if body == "m1"] == [0, 1]

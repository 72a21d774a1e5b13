"""RocketMQ's own client in Go gets the same results at our server as at the real broker.

One process of clients works at each, both at the same time, as of those in Java.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.interop.judging import toolchain
from tests.interop.judging.client_runs import Both, go_clients, run_at_both

pytestmark = pytest.mark.interop

SCENARIOS: Final = (
    *("retries", "orderly", "concurrent", "tags", "sql", "broadcast", "delayed", "replies", "pulls", "alone"),
    *("async", "oneway", "batch", "big", "selected", "refused", "topics"),
)


@pytest.fixture(scope="module")
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """What came of all scenarios at both."""
    request.getfixturevalue("judge")  # it skips, or fails, where there is no Java
    missing = toolchain.missing_go()
    if missing is not None:
        pytest.skip(missing)
    program = toolchain.build_go_clients()
    folder = tmp_path_factory.mktemp("clients")
    return run_at_both(folder, toolchain.DEFAULT_VERSION, go_clients(program), with_conditions=True)


def test_each_scenario_was_done(both):
    both.check_done(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_clients_come_to_the_same(both, scenario):
    both.check_alike(scenario)

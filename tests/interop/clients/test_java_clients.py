"""RocketMQ's own clients in Java get the same results at our server as at the real broker.

One process of clients works at each, both at the same time. What is compared holds no ids, times or
addresses, and is looked at when nothing more is to come.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.interop.clients.conftest import DRAWN, RELEASES
from tests.interop.judging import toolchain
from tests.interop.judging.client_runs import Both, java_clients, run_at_both
from tests.support.scale import is_full

pytestmark = pytest.mark.interop

SCENARIOS: Final = (
    *("no-conditions", "retries", "thrown", "sent-back", "orderly-dead", "orderly", "shared", "concurrent"),
    *("broker-shared", "modes", "demo"),
    *("tags", "broadcast", "beginnings", "sql", "wrong-conditions", "lite", "lite-again", "lite-assigned"),
    *("pulls", "held", "replies", "no-reply", "delayed", "alone", "anywhere", "new-topic", "async", "oneway"),
    *("batch", "selected", "big", "refused", "refused-by-broker", "messages", "queues"),
)
OTHER_WORDS: Final = {
    "wrong-conditions": ("price >", "price > 'a'", "NOT", "a = 1 AND AND b = 2"),
    "pulls": ("no queue",),
    "refused-by-broker": ("a long body", "long properties"),
}
"""Errors of a scenario that differ in their words alone; docs/differences.md says why."""
OLD: Final = f"clients of {toolchain.OLD_CLIENTS}"


@pytest.fixture(scope="module", params=[*RELEASES, OLD] if is_full() else [DRAWN])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Both brokers, of the release of the clients or of the one that the oldest of these know."""
    request.getfixturevalue("judge")  # it skips, or fails, where there is no Java
    folder = tmp_path_factory.mktemp("clients")
    release = toolchain.DEFAULT_VERSION if request.param == OLD else request.param
    class_path = toolchain.build_old_clients() if request.param == OLD else toolchain.build(release)
    return run_at_both(folder, release, java_clients(class_path))


def test_each_scenario_was_done(both):
    both.check_done(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_clients_come_to_the_same(both, scenario):
    both.check_alike(scenario, OTHER_WORDS.get(scenario, ()))


def test_s4_45_rocketmqs_own_first_consumer_comes_to_the_same_at_ours(both):
    """``example/quickstart``: all of its topic from the first offset; its timestamp does not count."""
    both.check_alike("demo")

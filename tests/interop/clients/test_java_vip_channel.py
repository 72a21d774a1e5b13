"""Java's clients on the VIP channel get the same results at a server of three ports as others at one."""

from __future__ import annotations

from typing import Final

import pytest

from tests.interop.judging import toolchain
from tests.interop.judging.client_runs import ClientRun, Outcome, check_no_failure, java_clients, leaves
from tests.support.listening import BrokerServer

pytestmark = pytest.mark.interop

SCENARIOS: Final = ("orderly", "shared", "concurrent", "sent-back", "lite", "pulls", "alone", "batch")
"""Sends, pulls, offsets, locks, and what is sent back: each takes the channel."""


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Outcome], dict[str, Outcome], list[int]]:
    """What came of the scenarios through the channel and without it; how many came in at each port."""
    request.getfixturevalue("judge")  # it skips, or fails, where there is no Java
    class_path, folder = toolchain.build(), tmp_path_factory.mktemp("vip")
    outcomes = []
    with (
        BrokerServer(folder / "three", broker_port=0) as three,
        BrokerServer(folder / "one") as one,
    ):
        running = []
        for server, vip in ((three, True), (one, False)):
            home = folder / f"of {server.port}"
            home.mkdir()
            command = java_clients(class_path, vip=vip)(server.address, server.broker.config.address, home)
            running.append(ClientRun([*command, *SCENARIOS], home))
        try:
            outcomes = [each.outcomes() for each in running]
        finally:
            for each in running:
                each.close()
        return outcomes[0], outcomes[1], [each.accepted_count for each in three.listeners]


def test_clients_came_in_at_each_port_and_most_at_the_channel_too(runs):
    name_server, broker, vip = runs[2]
    assert min(name_server, broker) >= len(SCENARIOS)
    assert vip >= len(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_through_the_channel_clients_come_to_the_same(runs, scenario):
    through, beside, _ = runs
    check_no_failure(through[scenario])
    assert leaves(through[scenario]["outcome"]) == leaves(beside[scenario]["outcome"])

"""The first poll joins the group too, and is over in its time where that takes longer."""

from __future__ import annotations

import time
from typing import Any

import pytest

from seglog import AsyncLitePullConsumer, LitePullConsumer, MessageModel, Producer, Subscription
from tests.support.faces import driven
from tests.support.listening import BrokerServer, Server
from tests.support.machine.patience import wait_until
from tests.support.peers import read_for_ever

BOTH = pytest.mark.parametrize("kind", [LitePullConsumer, AsyncLitePullConsumer])
FIRST = pytest.mark.parametrize(
    ("wanted", "options"),
    [
        ("T", {}),
        ({"T": Subscription.by_sql("price > 5")}, {}),
        ("T", {"message_model": MessageModel.BROADCASTING, "offset_folder": "offsets"}),
    ],
    ids=["shared", "by SQL92", "broadcasting"],
)


@BOTH
@FIRST
def test_a_poll_of_a_name_server_that_does_not_answer_ends_in_its_time(
    kind: Any, wanted: Any, options: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)

    def longest_s(server: Server) -> float:
        took_s = []
        with driven(kind, server.address, "g", wanted, **options) as consumer:
            for _ in range(2):
                began_s = time.monotonic()
                assert consumer.poll(0.05) == []
                took_s.append(time.monotonic() - began_s)
        return max(took_s)

    with Server(read_for_ever) as server:
        # A busy machine may hold up one consumer, not each.
        assert any(longest_s(server) < 2 for _ in range(5)), "an answer is waited for during 3 s"


@BOTH
def test_short_polls_come_to_what_takes_longer_than_each_of_them(kind: Any, tmp_path: Any):
    with BrokerServer(tmp_path / "s") as server:
        with Producer(server.broker) as producer:
            producer.send("T", b"x")
        model = {
            "message_model": MessageModel.BROADCASTING,
            "offset_folder": tmp_path,
            "consume_from": "FIRST",
        }
        with driven(kind, server.address, "g", "T", **model) as consumer:
            polled = wait_until(lambda: consumer.poll(0), "a message", idle_s=10, look_s=0.001)
            assert [message.body for message in polled] == [b"x"]

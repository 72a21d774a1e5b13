"""Two clients of a group that have one id: every message is delivered, and both sides name the cause."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import pytest

from seglog import ConsumeFrom, PushConsumer
from seglog.client.links.local_link import LocalLink
from seglog.testing import VirtualBroker

COUNT = 41


@pytest.mark.parametrize("ids", [("a", "a"), ("a", "a", "b")], ids="-".join)
def test_every_message_is_delivered_and_the_id_is_named(tmp_path: Path, caplog, ids):
    seen: Counter[bytes] = Counter()
    with VirtualBroker.at(tmp_path / "s") as broker:
        producer = broker.producer()
        producer.send("T", b"first")
        members = [
            PushConsumer(
                LocalLink(broker, name),
                "g",
                "T",
                lambda message: seen.update([message.body]),
                consume_from=ConsumeFrom.FIRST,
            )
            for name in ids
        ]
        with caplog.at_level(logging.WARNING):
            for member in members:
                member.start()
            broker.advance("60s")
            for number in range(COUNT):
                producer.send("T", b"%d" % number)
            broker.advance("60s")
            for member in members:
                member.close()
    assert {b"%d" % number for number in range(COUNT)} <= set(seen)
    told = [record.getMessage() for record in caplog.records if "id of its own" in record.getMessage()]
    assert sum("2 connections of group g have the client id a" in text for text in told) == 1
    assert sum("another connection of group g has the client id a" in text for text in told) == 2

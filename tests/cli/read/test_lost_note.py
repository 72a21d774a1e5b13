"""A search that finds nothing says that the message may be one of those that the store has lost."""

from __future__ import annotations

import pytest

from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material import golden

UNIQUE_KEY = "0A0102030017334018B4AAC2000000C0"


@pytest.fixture
def hole(tmp_path):
    """A store of RocketMQ without 12 KB of its log; its index still has an entry of the key."""
    root = golden.extract("roll", tmp_path)
    with MessageStore.open(root, read_only=True) as store:
        (message,) = store.query("TopicA", UNIQUE_KEY)
    log = root / "commitlog" / f"{message.phy_offset // 65536 * 65536:020d}"
    with log.open("r+b") as file:
        file.seek(message.phy_offset % 65536)
        file.write(b"\x5a" * 100)
    return root


@pytest.mark.parametrize(
    "arguments", [("query", "TopicA", UNIQUE_KEY), ("explain", UNIQUE_KEY)], ids=lambda one: one[0]
)
def test_a_lost_message_is_not_denied_before_nor_after_a_repair(seglog: Seglog, hole, arguments):
    name, *words = arguments
    for _ in range(2):
        ran = seglog(name, hole, *words)
        assert ran.exit_code == 13
        assert (
            f"lost in the store: 1 message, of which one may be it; see `seglog check {hole}`" in ran.stderr
        )
        assert seglog("repair", "--apply", "--yes", hole).exit_code == 0


def test_where_nothing_is_lost_nothing_is_said_of_it(seglog: Seglog, tmp_path):
    ran = seglog("query", golden.extract("roll", tmp_path), "TopicA", "no key")
    assert ran.exit_code == 13
    assert "lost" not in ran.stderr

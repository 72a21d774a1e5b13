"""A table never grows beyond what can be read again: what would make it longer changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.groups import GroupTable
from seglog.broker.tables.name_server import KeyValues
from seglog.broker.tables.topics import TopicConfig, TopicTable
from seglog.clock import VirtualClock
from seglog.errors import FullError
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.small_files.config_file import ConfigFile
from seglog.storage.threads import without_waiting
from tests.support.crash.crash_files import CrashFiles

PATH = Path("/store/config/table.json")
MOST_BYTES = 40_000


def fill(put: Any, refused: list[str]) -> int:
    """Puts entries until one is refused, and notes why; returns how many were taken."""
    for number in range(1_000):
        try:
            put(number)
        except FullError as error:
            refused.append(str(error))
            return number
    raise AssertionError("nothing was refused")


def file_of(files: CrashFiles) -> ConfigFile:
    return ConfigFile(files, PATH, most_bytes=MOST_BYTES)


def test_values_beyond_the_limit_are_refused_until_others_are_gone():
    files, refused = CrashFiles(), []
    table = KeyValues(file_of(files), VirtualClock())
    taken = fill(lambda number: table.put("n", str(number), "x" * 500), refused)
    assert [str(PATH) in one and f"at most {MOST_BYTES}" in one for one in refused] == [True]
    before = files.read_file(PATH)
    assert taken > 50
    assert len(before) <= MOST_BYTES
    assert str(taken) not in (table.namespace("n") or {})
    assert KeyValues(file_of(files), VirtualClock()).namespace("n") == table.namespace("n")
    table.delete("n", "0")
    table.put("n", str(taken), "x" * 500)


def test_topics_that_are_gathered_beyond_the_limit_are_taken_back():
    files = CrashFiles()
    told: list[str] = []
    table = TopicTable(file_of(files), BrokerConfig(), VirtualClock(), told.clear)
    table.put(TopicConfig("first"))
    before = files.read_file(PATH)

    def put_many() -> None:
        with table.one_save():
            for number in range(1_000):
                table.put(TopicConfig(f"T{number}"))

    with pytest.raises(FullError, match=r"table\.json"):
        put_many()
    assert table.get("first") is not None
    assert table.get("T0") is None
    assert files.read_file(PATH) == before


def test_groups_that_are_saved_later_are_refused_before_they_are_too_many():
    files = CrashFiles()
    table = GroupTable(file_of(files), BrokerConfig(), VirtualClock())
    table.put(SubscriptionGroup("first"))
    with without_waiting():
        taken = fill(lambda number: table.find_all([f"g{number}"]), [])
    assert taken > 10
    table.persist()
    assert not table.is_dirty
    again = GroupTable(file_of(files), BrokerConfig(auto_create_groups=False), VirtualClock())
    assert again.find(f"g{taken - 1}") is not None
    assert again.find(f"g{taken}") is None
    with without_waiting(), pytest.raises(FullError):
        table.find_all([f"later{number}" for number in range(taken)])

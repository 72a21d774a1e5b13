"""Placeholders of a compaction are no messages: ``info`` and ``check`` count them apart, and alike."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.errors import StoppedError
from seglog.spark.compact.policy import Policy
from tests.spark.archive.stores import BEGIN_MS, compact, put
from tests.support.machine.kernels import BOTH, running
from tests.support.material.compactions import SIZES
from tests.support.material.stores import served

LATER_MS = 1_900_000_000_000


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A compacted store, to which messages of the flag of placeholders were put that are none."""
    root = tmp_path_factory.mktemp("placeholders") / "s"
    with MessageStore.open(root, clock=VirtualClock(BEGIN_MS), **SIZES) as opened:
        for number in range(2):  # they stay, so that what is dropped behind them needs placeholders
            opened.put("T", b"first", queue_id=number, keys=f"first{number}")
    put(root, 400)
    compact(root, LATER_MS, T=Policy(compact=True))
    with MessageStore.open(root) as opened:
        for number in range(5):
            opened.put("T", b"mine", queue_id=number % 2, keys="k9", flag=0x434D5054)
        opened.put("T", b"", queue_id=0, keys="k9", flag=0x434D5054)
    return root


@pytest.fixture(scope="module")
def expected(store):
    """Messages and placeholders of each queue, as a reader meets them."""
    with MessageStore.open(store, read_only=True) as opened:
        queues = served(opened)
    return {
        key: (sum(not m.is_placeholder for m in messages), sum(m.is_placeholder for m in messages))
        for key, messages in queues.items()
    }


def run(*arguments):
    ran = CliRunner().invoke(commands, [*arguments])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.mark.parametrize("kernels", BOTH)
def test_info_and_check_count_them_apart(store, expected, kernels):
    messages, placeholders = (sum(one[at] for one in expected.values()) for at in (0, 1))
    assert messages > 6
    assert placeholders > 20
    with running(kernels):
        found = check_store(store, split_bytes=65536).messages
        info = json.loads(run("info", "--json", str(store)))
    assert (found.messages, found.placeholders) == (messages, placeholders)
    assert (info["messages"], info["placeholders"]) == (messages, placeholders)
    of_queues = {(one["topic"], one["queueId"]): one for one in info["queues"]}
    for key, (_messages, own) in expected.items():
        assert of_queues[key]["placeholders"] == own
    checked = json.loads(run("check", "--json", str(store)).splitlines()[-1])
    assert (checked["messages"], checked["placeholders"]) == (messages, placeholders)


def test_both_say_so_in_words(store, expected):
    messages, placeholders = (sum(one[at] for one in expected.values()) for at in (0, 1))
    said = f"{messages} messages, {placeholders} placeholders of a compaction"
    assert said in run("info", str(store))
    assert said in run("check", str(store))


def test_a_check_that_was_stopped_goes_on_with_what_it_counted(store, expected, tmp_path):
    splits = iter([False, False, True])
    with pytest.raises(StoppedError):
        check_store(
            store,
            resume_file=tmp_path / "seen",
            should_stop=lambda: next(splits, True),
            split_bytes=65536,
        )
    found = check_store(store, resume_file=tmp_path / "seen", resume=True, split_bytes=65536)
    assert found.resumed_bytes
    assert found.messages.placeholders == sum(own for _messages, own in expected.values())


def test_a_store_without_any_says_nothing_of_them(tmp_path):
    root = put(tmp_path / "s", 40)
    assert "placeholder" not in run("info", str(root)) + run("check", str(root))
    assert json.loads(run("info", "--json", str(root)))["placeholders"] == 0
    assert check_store(root).messages.messages == 40

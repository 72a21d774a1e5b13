"""RocketMQ reads a store in which messages were erased: all is at the same offsets, and it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.storage.format.record.sys_flag import COMPRESSED
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, message_line, place
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages
from tests.interop.judging.states import as_is, bare, states_of
from tests.support.material import golden
from tests.support.material.lives import BODY, GROUP, TOPIC, UNIQUE, live
from tests.support.material.stores import served
from tests.support.rows import every_row

pytestmark = pytest.mark.interop

OF_ROCKETMQ = ("roll", "propcrc", "ipv6", "outerbatch")


def erase(root, wanted):
    ran = CliRunner().invoke(commands, ["erase", str(root), wanted, "--apply", "--yes", "--json"])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def lines_of(root):
    with MessageStore.open(root, read_only=True) as store:
        return [message_line(message) for queue in served(store).values() for message in queue]


@pytest.mark.parametrize("record_crc", [True, False])
def test_a_life_made_here(judge: Judge, tmp_path, copied: Callable[[Path], Path], record_crc):
    life = live(tmp_path / "s", record_crc=record_crc)
    erase(life.path, UNIQUE)
    ours = lines_of(life.path)
    with every_row() as row:
        for state in states_of(str(record_crc), ["True", "False"]):
            with row(state.__name__):
                for_java = copied(life.path)
                state(for_java)
                check_life(judge, life, ours, for_java)


def check_life(judge, life, ours, for_java):
    """Lets the real store serve a copy of a life of which a message was erased, and continue with it."""
    dump = judge.dump(for_java, SMALL_GEOMETRY)
    assert dump.refusal is None
    assert differences(ours, dump.of_kind("msg")) == []
    erased = [line for line in dump.of_kind("msg") if line["properties"].get("SEGLOG_ERASED") == "1"]
    assert {line["commitLogOffset"] for line in erased} == {put.phy_offset for put in life.all}
    judge.append(for_java, [JavaMessages(topic=TOPIC, count=3)], SMALL_GEOMETRY)
    with MessageStore.open(for_java) as store:
        assert store.max_offset(TOPIC, 0) == 84
        assert store.max_offset(f"%DLQ%{GROUP}", 0) == 1
    assert all(BODY not in file.read_bytes() for file in (for_java / "commitlog").iterdir())


@pytest.mark.parametrize("name", OF_ROCKETMQ)
def test_messages_that_rocketmq_wrote(judge: Judge, tmp_path, copied: Callable[[Path], Path], name):
    root = golden.extract(name, tmp_path)
    before = lines_of(root)
    with MessageStore.open(root, read_only=True) as store:
        keyed = [m for queue in served(store).values() for m in queue if m.keys and len(m.body) > 16]
    chosen = [m for m in keyed if m.sys_flag & COMPRESSED][:1] + keyed[:1]
    gone = {copy["commitLogOffset"] for m in chosen for copy in erase(root, m.keys[0])["copies"]}
    assert gone
    kept = [line for line in before if line["commitLogOffset"] not in gone]
    with every_row() as row:
        for state in states_of(name, OF_ROCKETMQ, [as_is, bare]):
            with row(state.__name__):
                for_java = copied(root)
                state(for_java)
                dump = judge.dump(for_java, SMALL_GEOMETRY)
                assert dump.refusal is None
                assert differences(lines_of(root), dump.of_kind("msg")) == []
                served_by = {place(line): line for line in dump.of_kind("msg")}
                assert differences(kept, [served_by[place(line)] for line in kept]) == []
                assert len(served_by) == len(before)

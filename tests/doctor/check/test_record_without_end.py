"""A record that ends behind its file, or nowhere, costs that record: it is stepped over and named."""

from __future__ import annotations

import struct

import pytest
from click.testing import CliRunner

from seglog.cli.main import commands
from seglog.doctor.check.check import check_store
from seglog.doctor.exchange.export import Selection, iter_rows
from seglog.doctor.repair.repair import repair_store
from seglog.errors import Ending
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL, new_clock

BODIES = [b"message %d" % number for number in range(200)]
SIZES = {"behind its file": 0x7FFF_FFF0, "negative": -17, "no room for a head": 8}


@pytest.fixture(params=[0, 60, 199], ids=["first", "middle", "last"])
def which(request):
    return request.param


@pytest.fixture(params=SIZES.values(), ids=list(SIZES))
def root(request, which, tmp_path):
    """A store of two hundred messages, of which one has a length that cannot be."""
    path = tmp_path / "s"
    with MessageStore.open(path, clock=new_clock(), **SMALL) as store:
        places = [store.put("T", body, queue_id=0).phy_offset for body in BODIES]
    segment = SMALL["segment_size_bytes"]
    assert places[-1] > segment
    file = path / "commitlog" / f"{places[which] // segment * segment:020d}"
    with file.open("r+b") as log:
        log.seek(places[which] % segment)
        log.write(struct.pack(">i", request.param))
    return path


def test_every_other_message_is_served_and_this_one_is_named(root, which):
    named = []
    with MessageStore.open(root, read_only=True) as store:
        rows = list(iter_rows(store, Selection(), [], lambda *told: named.append(told)))
    assert [row.body for row in rows] == BODIES[:which] + BODIES[which + 1 :]
    assert [(topic, queue_id, list(offsets)) for topic, queue_id, offsets, _why in named] == [
        ("T", 0, [which])
    ]
    report = check_store(root, clock=new_clock())
    assert not report.is_clean
    assert any(f"T/0 {which}" in finding.found or finding.messages == 1 for finding in report.findings)


@pytest.mark.parametrize("command", [["check"], ["info", "--verify"]])
def test_commands_say_so_by_their_exit_code_and_end(root, command):
    ran = CliRunner().invoke(commands, [*command, str(root)])
    assert ran.exit_code == Ending.FINDINGS, ran.output


def test_after_a_repair_each_message_has_its_offset(root, which):
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert check_store(root, clock=new_clock()).is_clean
    with MessageStore.open(root, clock=new_clock()) as store:
        rows = {row.queueOffset: row.body for row in iter_rows(store, Selection(), [], lambda *_told: None)}
        assert store.put("T", b"next", queue_id=0).queue_offset == len(BODIES)
    assert rows.pop(which, BODIES[which]) == BODIES[which]
    assert rows == {offset: body for offset, body in enumerate(BODIES) if offset != which}

"""A dump of a record of which a bit of the topic is flipped names record and damage, and goes on."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from seglog.cli.main import commands
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL, SMALL_INDEX, copy_store, new_clock

TOPIC = b"Orders"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    root = tmp_path_factory.mktemp("whole") / "store"
    with MessageStore.open(root, clock=new_clock(), record_crc=False, **SMALL, **SMALL_INDEX) as store:
        for number in range(6):
            store.put("Orders", b"body %d" % number, keys=f"k{number}")
    return root


@pytest.mark.parametrize("options", [[], ["--log"]])
@pytest.mark.parametrize("byte", range(-1, len(TOPIC)))
def test_record_and_damage_are_named(byte, options, whole, tmp_path):
    content = (whole / "commitlog" / f"{0:020d}").read_bytes()
    at = -1
    for _record in range(3):
        at = content.index(TOPIC, at + 1)
    for bit in range(8):
        root = copy_store(whole, tmp_path / str(bit))
        damaged = bytearray(content)
        damaged[at + byte] ^= 1 << bit
        (root / "commitlog" / f"{0:020d}").write_bytes(damaged)
        dumped = CliRunner().invoke(commands, ["dump", *options, str(root)])
        assert dumped.exit_code == 0
        found = [line for line in dumped.stdout.splitlines() if line.startswith("finding ")]
        assert any("record-repairable commitlog/" in line or "log-hole commitlog/" in line for line in found)
        assert "Orders/0 @2" in dumped.stdout
        assert "body 5" in dumped.stdout

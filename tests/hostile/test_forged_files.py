"""seglog's own files that claim what is not so, with right checksums, change nothing that a store serves."""

from __future__ import annotations

import shutil

import pytest

from seglog.doctor.check.verify import verify_store
from seglog.storage.format.ours.recovery_point import decode_recovery_point
from seglog.storage.store import MessageStore
from tests.support.hostile.forging import points_forged, seals_forged
from tests.support.machine.shared import copy_tree, once
from tests.support.material.stores import SMALL, SMALL_INDEX, fill, new_clock, served
from tests.support.rows import every_row
from tests.support.scale import chance, scaled

FILES = {
    "seglog/recovery-point": points_forged,
    f"seglog/seals/{4096:020d}.seal": seals_forged,
}


def opened(root, **options):
    return MessageStore.open(root, clock=new_clock(), recovery_step_bytes=4096, **options)


def sealed(folder):
    """Makes a store whose recovery point relies on seals below, and has its own sums above."""
    root = folder / "store"
    for _part in range(2):
        with opened(root, **SMALL, **SMALL_INDEX) as store:
            fill(store, 60)
        verify_store(root, seal=True, clock=new_clock())
    with opened(root) as store:
        fill(store, 30)


def test_the_store_of_these_tests_opens_at_its_point_and_relies_on_its_seals(tmp_path):
    """Else no claim would matter."""
    root = copy_tree(once("store with seals and a recovery point", sealed), tmp_path / "copy") / "store"
    with opened(root) as store:
        assert store.recovery.walked_from == store.max_phy_offset
    assert decode_recovery_point((root / "seglog/recovery-point").read_bytes()).blocks_from > 4096


@pytest.mark.parametrize("name", FILES)
def test_an_opening_serves_the_log_whatever_a_file_of_ours_claims(name, memory_path):
    """No claim is believed that the log and the queues do not confirm, and none ends in a traceback."""
    sound = once("store with seals and a recovery point", sealed) / "store"
    with opened(sound, read_only=True) as store:
        wanted, end = served(store), store.max_phy_offset
    keyed = [message for message in wanted["Topic1", 0] if message.keys == ["k1"]]
    true = (sound / name).read_bytes()
    dice = chance("forged files", name)
    root = memory_path / "store"
    with every_row() as row:
        for number in range(scaled(8, 1000)):
            for field, forged in FILES[name](dice, true):
                shutil.copytree(sound, root)
                (root / name).write_bytes(forged)
                with row(number, field):
                    with opened(root, read_only=True) as store:
                        assert served(store) == wanted
                    with opened(root) as store:
                        assert served(store) == wanted
                        assert store.max_phy_offset == end
                        assert list(store.query("Topic1", "k1", 100)) == keyed
                        put = store.put("Topic0", b"next")
                        assert put.queue_offset == len(wanted["Topic0", 0])
                    with opened(root) as store:
                        after = served(store)
                        assert after["Topic0", 0].pop().body == b"next"
                        assert after == wanted
                shutil.rmtree(root)

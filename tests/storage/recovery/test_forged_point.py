"""A recovery point with right checksums and wrong claims costs a walk, and no traceback."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seglog.storage.format.ours.recovery_point import decode_recovery_point, encode_recovery_point
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL, fill, new_clock, served


def _queues(change):
    """Returns what a point says where its first queue says something else."""
    return lambda point: {"queues": (replace(point.queues[0], **change(point.queues[0])), *point.queues[1:])}


CLAIMS = {
    "no sums of blocks": lambda _point: {"block_crcs": np.zeros(0, np.uint32)},
    "the last record behind the end": lambda point: {"last_phy_offset": point.end_phy_offset + 16},
    "the last record far behind": lambda _point: {"last_phy_offset": 1 << 62},
    "a last record below 0": lambda _point: {"last_phy_offset": -5},
    "an end far behind": lambda _point: {"end_phy_offset": (1 << 63) - 1},
    "a queue that ends before it begins": _queues(lambda queue: {"first_slot": queue.end_slot + 1}),
    "a queue of many units": _queues(lambda _queue: {"end_slot": 1 << 60}),
    "a queue that begins below 0": _queues(lambda _queue: {"first_slot": -1}),
    "sums of more files": _queues(
        lambda queue: {"crcs": (*queue.crcs, 1, 2), "last_places": (*queue.last_places, 1, 2)}
    ),
    "no sums of files": _queues(lambda _queue: {"crcs": (), "last_places": ()}),
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_point_that_claims_what_cannot_be_is_not_believed(claim, tmp_path):
    with MessageStore.open(tmp_path, clock=new_clock(), recovery_step_bytes=4096, **SMALL) as store:
        fill(store, 40)
        wanted = served(store)
    path = tmp_path / "seglog/recovery-point"
    point = decode_recovery_point(path.read_bytes())
    path.write_bytes(encode_recovery_point(replace(point, **claim(point))))
    with MessageStore.open(tmp_path, clock=new_clock(), recovery_step_bytes=4096, **SMALL) as store:
        assert served(store) == wanted

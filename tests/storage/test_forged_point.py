"""A recovery point with right checksums and too few of them costs a walk, and no traceback."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from seglog.storage.format.recovery_point import decode_recovery_point, encode_recovery_point
from seglog.storage.store import MessageStore
from tests.support.stores import SMALL, fill, new_clock, served


def test_a_point_without_checksums_of_blocks_is_not_believed(tmp_path):
    options = {**SMALL, "recovery_step_bytes": 4096}
    with MessageStore.open(tmp_path, clock=new_clock(), **options) as store:
        fill(store, 40)
        wanted = served(store)
    path = tmp_path / "seglog/recovery-point"
    point = decode_recovery_point(path.read_bytes())
    path.write_bytes(encode_recovery_point(replace(point, block_crcs=np.zeros(0, np.uint32))))
    with MessageStore.open(tmp_path, clock=new_clock(), **options) as store:
        assert served(store) == wanted

"""A native walk into memory sees what a walk of a window and its keys see."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.storage.kernels.index_keys import index_keys
from seglog.storage.kernels.walk import ROW, QueueTable, walk
from seglog.storage.kernels.walk_into import new_keys, walk_into
from tests.storage.kernels.test_index_keys import made
from tests.support.machine.kernels import native, running
from tests.support.material.records import pack_log
from tests.support.scale import scaled


@given(
    log=st.lists(made, max_size=8).map(pack_log), tags=st.booleans(), cut=st.integers(0, 40), data=st.data()
)
@settings(max_examples=scaled(300, 30_000))
def test_rows_and_keys_are_those_of_the_python_kernels(log, tags, cut, data):
    native()
    log = memoryview(log[: len(log) - cut])
    until = data.draw(st.integers(0, len(log)))
    with running("python"):
        queues = QueueTable()
        whole = walk(log, 0, 1 << 40, queues)
        rows = whole.rows[whole.rows["phy_offset"] < until]
        end = int(rows[-1]["phy_offset"] + rows[-1]["size_bytes"]) if len(rows) else 0
        keys = index_keys(log[:end], 0, tags=tags)
    room, own = np.empty(99, ROW), QueueTable()
    with running("native"):
        walked = walk_into(log, 0, 0, until, own, room, new_keys(), verify=True, tags=tags)
    assert room[: walked.row_count].tolist() == rows.tolist()
    assert own.names == queues.names[: len(own.names)]
    assert walked.keys.rows.tolist() == keys.rows.tolist()
    assert (walked.keys.lost, walked.keys.with_crc) == (keys.lost, keys.with_crc)
    assert walked.keys.placeholders == keys.placeholders
    assert walked.saying_more == [at for at in whole.saying_more if at < end]
    assert (walked.position, walked.is_full) == (end, False)

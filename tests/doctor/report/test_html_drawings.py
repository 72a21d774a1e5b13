"""The map of segments shows a bounded number of them, for any names of files."""

from __future__ import annotations

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.report.html_drawings import segment_map
from seglog.storage.directory.log_files import MAX_MISSING
from seglog.storage.format.names import segment_file_name
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL, fill, new_clock


@pytest.mark.parametrize("number", [300, MAX_MISSING])
def test_a_far_name_does_not_make_the_map_long(number, tmp_path):
    with MessageStore.open(tmp_path, clock=new_clock(), **SMALL) as store:
        fill(store, 20)
    far = segment_file_name(number * SMALL["segment_size_bytes"])
    (tmp_path / "commitlog" / far).touch()
    drawn = segment_map(check_store(tmp_path))
    assert drawn.count("<text") == 256
    assert segment_file_name(0) in drawn
    assert f"{number + 1 - 256} segments without damage are not shown" in drawn

"""A name, or one bit of a place, may claim any distance: a gap of the log has a bound."""

from __future__ import annotations

import pytest

from seglog.storage.directory.log_facts import stated_place
from seglog.storage.directory.log_files import MAX_MISSING, LogFile, place_log_files
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.record.record import HEAD_V4
from seglog.storage.store import MessageStore
from tests.support.material.stores import SEGMENT_BYTES, SMALL, fill, new_clock, served


@pytest.fixture
def root(tmp_path):
    with MessageStore.open(tmp_path, clock=new_clock(), record_crc=False, **SMALL) as store:
        fill(store, 100)
    return tmp_path


@pytest.mark.parametrize("bit", [12, 16, 30, 52, 62])
def test_a_flipped_bit_of_a_place_moves_no_file(bit, root):
    names = sorted(path.name for path in (root / "commitlog").iterdir())
    path = root / "commitlog" / names[1]
    data = bytearray(path.read_bytes())
    data[HEAD_V4.offsets["phy_offset"] + 7 - bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    assert stated_place(RealFiles(), root, names[1]) == int(names[1])
    with MessageStore.open(root, clock=new_clock()) as store:
        assert sum(map(len, served(store).values())) == 100


def test_files_under_each_others_names_are_told_although_their_places_differ_by_one_bit(root):
    first, second = (root / "commitlog" / segment_file_name(place) for place in (0, SEGMENT_BYTES))
    first.rename(root / "kept")
    second.rename(first)
    (root / "kept").rename(second)
    assert stated_place(RealFiles(), root, first.name) == SEGMENT_BYTES
    assert stated_place(RealFiles(), root, second.name) == 0


@pytest.mark.parametrize("far", [MAX_MISSING + 2, 1 << 40])
def test_a_file_far_from_the_others_is_a_stray(far):
    near = [LogFile(number * 4096, 4096) for number in (1, 2, MAX_MISSING + 3)]
    stray = LogFile((MAX_MISSING + 3 + far) * 4096, 4096)
    placed, findings = place_log_files([*near, stray], 4096)
    assert placed == near
    assert [(one.code, one.found) for one in findings] == [("log-file-stray", str(stray.first_offset))]


def test_a_far_name_takes_no_memory(root):
    (root / "commitlog" / segment_file_name((1 << 50) * SEGMENT_BYTES)).write_bytes(bytes(SEGMENT_BYTES))
    with MessageStore.open(root, clock=new_clock()) as store:
        assert sum(map(len, served(store).values())) == 100

"""The attic: a damaged entry costs itself, and kept bytes that look like entries are none."""

from __future__ import annotations

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.format.ours.attic_entry import ATTIC_HEAD_BYTES, encode_entry
from seglog.storage.small_files.attic import ATTIC, Attic, iter_kept

NAMES = [f"commitlog/{number:020d}" for number in range(5)]
FORGED = encode_entry(b"commitlog/forged", 7, b"forged")


@pytest.fixture
def kept(tmp_path):
    """A store's attic of five entries; returns its file, and where each entry begins."""
    starts, at = [], 0
    with Attic(RealFiles(), tmp_path) as attic:
        for number, name in enumerate(NAMES):
            data = bytes([number + 1]) * 50 + FORGED
            attic.keep(name, number, data)
            starts.append(at)
            at += ATTIC_HEAD_BYTES + len(name) + len(data)
        attic.sync()
    (path,) = (tmp_path / ATTIC).iterdir()
    assert path.stat().st_size == at
    return path, starts


def names(path):
    return [one.name for one in iter_kept(RealFiles(), path.parents[2])]


def poke(path, position, data):
    content = path.read_bytes()
    path.write_bytes(content[:position] + data + content[position + len(data) :])


PLACES = {
    "its magic": (0, b"\0\0\0\0"),
    "its place": (12, b"\xff"),
    "its checksum": (20, b"\xaa\xaa\xaa\xaa"),
    "its name": (ATTIC_HEAD_BYTES, b"x"),
    "its data": (ATTIC_HEAD_BYTES + 40, b"\xaa\xaa"),
}


@pytest.mark.parametrize("which", [0, 2, 4])
@pytest.mark.parametrize("place", PLACES)
def test_a_damaged_entry_costs_itself(place, which, kept):
    path, starts = kept
    offset, data = PLACES[place]
    poke(path, starts[which] + offset, data)
    assert names(path) == [name for name in NAMES if name != NAMES[which]]


def test_two_damaged_entries_cost_two(kept):
    path, starts = kept
    for which in (1, 3):
        poke(path, starts[which] + ATTIC_HEAD_BYTES + 40, b"\xaa\xaa")
    assert names(path) == [NAMES[0], NAMES[2], NAMES[4]]


@pytest.mark.parametrize(
    ("offset", "data"), [(4, b"\xff\xff"), (8, b"\0\0\0\x11"), (0, b"\xaa" * ATTIC_HEAD_BYTES)]
)
def test_without_its_lengths_an_entry_is_the_end_and_nothing_within_it_counts(offset, data, kept):
    path, starts = kept
    poke(path, starts[2] + offset, data)
    assert names(path) == NAMES[:2]


def test_a_cut_entry_is_the_end(kept):
    path, starts = kept
    path.write_bytes(path.read_bytes()[: starts[4] + 30])
    assert names(path) == NAMES[:4]

"""After any change of lengths and names of log files, the inferred length is the true one, or none."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog import MessageStore
from seglog.storage.directory.broker_conf import LENGTHS_FILE
from seglog.storage.directory.directory_listing import list_store
from seglog.storage.files.files import RealFiles
from tests.support.material.stores import SMALL_INDEX, fill, new_clock
from tests.support.rows import every_row
from tests.support.scale import scaled

SEGMENT = 16 << 10
FILES = 5


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A log of several full files and one that is partly filled, whose lengths nothing but itself shows."""
    root = tmp_path_factory.mktemp("store") / "s"
    with MessageStore.open(
        root, clock=new_clock(), segment_size_bytes=SEGMENT, queue_file_size_bytes=2000, **SMALL_INDEX
    ) as store:
        while store.max_phy_offset < (FILES - 1) * SEGMENT + 3000:
            fill(store, 5, body_bytes=200)
    (root / LENGTHS_FILE).unlink()
    assert len(list((root / "commitlog").iterdir())) == FILES
    return root


@st.composite
def damages(draw):
    """Draws lengths and names for the files: cut, empty, grown, missing, under each other's names.

    Files are missing or grown, not both: a grown file beside a gap looks like a longer one.
    """
    kept = draw(st.sets(st.integers(0, FILES - 1), min_size=1)) if draw(st.booleans()) else set(range(FILES))
    sizes = st.one_of(st.just(SEGMENT), st.integers(0, SEGMENT))
    if len(kept) == FILES:
        sizes = st.one_of(sizes, st.integers(SEGMENT, 3 * SEGMENT))
    lengths = {number: draw(sizes) for number in sorted(kept)}
    if draw(st.booleans()):
        by = draw(st.integers(1, 200))
        lengths = dict.fromkeys(lengths, SEGMENT - by)
    names = draw(st.permutations(sorted(kept))) if draw(st.booleans()) else sorted(kept)
    return dict(zip(names, sorted(kept), strict=True)), lengths


def damaged(original, root, names, lengths):
    shutil.copytree(original, root)
    folder = root / "commitlog"
    held = {}
    for path in sorted(folder.iterdir()):
        held[int(path.name) // SEGMENT] = path.rename(path.with_suffix(".held"))
    for name, number in names.items():
        path = held.pop(number).rename(folder / f"{name * SEGMENT:020d}")
        os.truncate(path, lengths[number])
    for path in held.values():
        path.unlink()


def is_cut_alike(lengths):
    """Whether what is left looks like a sound log of shorter or longer files, and is like one."""
    sizes = {size for size in lengths.values() if size}
    return len(sizes) == 1 and sizes != {SEGMENT} and min(sizes) % 4096 == 0


@settings(max_examples=scaled(150, 3000), deadline=None)
@given(damages())
def test_the_inferred_length_is_the_true_one_or_none(original, drawn):
    names, lengths = drawn
    if is_cut_alike(lengths):
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        root = Path(folder) / "s"
        damaged(original, root, names, lengths)
        geometry = list_store(RealFiles(), root).geometry
    assert geometry.segment_size_bytes == SEGMENT or not geometry.is_segment_known


def test_the_length_is_known_whichever_files_are_missing(original, tmp_path):
    with every_row() as row:
        for count in (0, 1, 2):
            for missing in itertools.combinations(range(FILES), count):
                kept = [number for number in range(FILES) if number not in missing]
                root = tmp_path / str(missing)
                damaged(original, root, {number: number for number in kept}, dict.fromkeys(kept, SEGMENT))
                with row(missing):
                    geometry = list_store(RealFiles(), root).geometry
                    assert (geometry.is_segment_known, geometry.segment_size_bytes) == (True, SEGMENT)


def test_the_length_is_known_whatever_one_of_them_has(original, tmp_path):
    numbers = range(FILES)
    with every_row() as row:
        for size in (0, 1, 4096, SEGMENT // 2, SEGMENT - 1, SEGMENT + 1, 2 * SEGMENT):
            for number in numbers:
                lengths = {one: size if one == number else SEGMENT for one in numbers}
                root = tmp_path / f"{size} {number}"
                damaged(original, root, dict(zip(numbers, numbers, strict=True)), lengths)
                with row(size, number):
                    geometry = list_store(RealFiles(), root).geometry
                    assert (geometry.is_segment_known, geometry.segment_size_bytes) == (True, SEGMENT)


def test_two_empty_files_with_one_missing_between_them_prove_no_length(original, tmp_path):
    damaged(original, tmp_path / "s", {0: 0, 2: 2}, {0: 0, 2: 0})
    assert not list_store(RealFiles(), tmp_path / "s").geometry.is_segment_known


def test_of_up_to_two_files_that_are_left_whole_or_empty_the_length_is_the_true_one_or_none(
    original, tmp_path
):
    with every_row() as row:
        for count in (1, 2):
            for kept in itertools.combinations(range(FILES), count):
                for sizes in itertools.product((0, SEGMENT), repeat=count):
                    root = tmp_path / f"{kept} {sizes}"
                    damaged(
                        original,
                        root,
                        dict(zip(kept, kept, strict=True)),
                        dict(zip(kept, sizes, strict=True)),
                    )
                    with row(kept, sizes):
                        geometry = list_store(RealFiles(), root).geometry
                        assert geometry.segment_size_bytes == SEGMENT or not geometry.is_segment_known

"""Native kernels find the keys that the Python ones do, and make the same index files of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.errors import TruncatedError
from seglog.storage.format.index import index_build
from seglog.storage.format.index.index import (
    INDEX_HEADER,
    IndexGeometry,
    IndexHeader,
    decode_index_header,
    encode_index_header,
)
from seglog.storage.format.index.index_build import KEY_ROW
from seglog.storage.kernels import NATIVE, PYTHON, index_keys
from seglog.storage.kernels.index_keys import KeyReader, put_keys
from seglog.storage.walk.log_records import LogWindows, iter_key_rows
from tests.storage.kernels.test_guard import cut, map_of
from tests.storage.kernels.test_native_equals_python import exact, made
from tests.support.damage.damage import damaged_bytes
from tests.support.machine.kernels import native, running
from tests.support.material.index_files import build_index_files
from tests.support.material.records import Record, pack_log
from tests.support.scale import scaled

MANY = settings(max_examples=scaled(250, 20_000), deadline=None)
PIECES = [
    b"UNIQ_KEY\x01", b"KEYS\x01", b"TAGS\x01", b"XKEYS\x01", b"KEYS", b"\x01", b"\x02", b"\x02\x02", b" ",
    b"  ", b"a", b"key", b"KEYS\x01a b\x02", b"KEYS\x01\x02", b"TAGS\x01TagA\x02", "é€😀".encode(),
    b"\xf0\x9f", b"\xff", b"\xe2\x82 \x82", b"polygenelubricants",
]  # fmt: skip
keyed = st.builds(
    replace,
    made,
    queue_id=st.just(1),
    properties=st.lists(st.sampled_from(PIECES), max_size=10).map(b"".join),
    sys_flag=st.sampled_from([0, 0, 4, 8, 12]),
)
logs = st.lists(keyed, max_size=8).map(pack_log)


class Memory:
    """A log in memory, read as files are."""

    def __init__(self, log):
        self._log = exact(log)

    def read(self, phy_offset, size_bytes):
        return self._log[phy_offset : phy_offset + size_bytes]


def keys_of(kernels, log, *, tags, room=1 << 15):
    with running(kernels), pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_keys, "ROOM", room)
        memory: Any = Memory(log)
        windows = LogWindows(memory, 1 << 30, 0, len(log))
        found, ends = [], []
        for rows, end in iter_key_rows(windows, tags=tags):
            found += rows.tolist()
            ends.append(end)
    return found, ends[-1:]


@MANY
@given(logs, st.booleans(), st.sampled_from([8, 12, 1 << 15]))
def test_keys_of_any_log(log, tags, room):
    assert keys_of(NATIVE, log, tags=tags, room=room) == keys_of(PYTHON, log, tags=tags)


@MANY
@given(logs.filter(len).flatmap(damaged_bytes), st.booleans())
def test_keys_of_damaged_logs(log, tags):
    assert keys_of(NATIVE, log, tags=tags) == keys_of(PYTHON, log, tags=tags)


def test_a_record_with_too_many_keys_for_the_room_is_left():
    log = exact(pack_log([Record(properties=b"KEYS\x01a b c\x02")] * 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_keys, "ROOM", 5)
        reader = KeyReader(native().key_rows, tags=True)
    rows, position = reader.read(log, 0, 0)
    assert (rows["phy_offset"].tolist(), position) == ([0, 0, 0], len(log) // 2)
    rows, position = reader.read(log, 0, position)
    assert (rows["phy_offset"].tolist(), position) == ([len(log) // 2] * 3, len(log))
    assert index_keys.ROOM > 2**15 / 2 + 2


rows_of = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 3, 4, 9, 2**31 - 1]),
        st.integers(0, 2**63 - 1),
        st.sampled_from([0, 1, 999, 1000, 5_000_000, 2**62, -(2**62), 2**63 - 1, -(2**63)]),
    ),
    min_size=1,
    max_size=30,
).map(lambda rows: np.array(rows, KEY_ROW))
counts = st.sampled_from([-1, 0, 1, 2, 5, 11, 12, 13, 2**31 - 1])
headers = st.builds(
    IndexHeader,
    st.sampled_from([0, 1, 4_000_000, -5, 2**62, 2**63 - 1]),
    st.just(7),
    st.just(8),
    st.just(9),
    st.integers(0, 5),
    counts,
)


@MANY
@given(headers, rows_of, st.lists(st.integers(-3, 20), min_size=4, max_size=4), st.integers(1, 30))
def test_index_files_after_anything(header, rows, heads, part):
    """Also those with a header or slots that make no sense."""
    geometry = IndexGeometry(4, 12)
    start = bytearray(geometry.file_size_bytes)
    start[: INDEX_HEADER.size_bytes] = encode_index_header(header)
    start[INDEX_HEADER.size_bytes : geometry.entries_at] = np.array(heads, ">i4").tobytes()
    files = {NATIVE: exact(start), PYTHON: exact(start)}
    for kernels, file in files.items():
        with running(kernels):
            taken = [put_keys(file, geometry, rows[at : at + part]) for at in range(0, len(rows), part)]
        files[kernels] = (bytes(file), taken)
    assert files[NATIVE] == files[PYTHON]


def test_files_of_an_index_that_goes_on(kernels: str):
    chance = np.random.default_rng(4)
    rows = np.zeros(5000, KEY_ROW)
    rows["key_hash"] = chance.integers(0, 2**31, 5000)
    rows["phy_offset"] = np.arange(5000) * 200
    rows["store_timestamp_ms"] = 1_700_000_000_000 + np.arange(5000) * 700
    geometry = IndexGeometry(100, 2000)
    previous = None
    for expected in build_index_files(rows, geometry):
        file = exact(bytes(geometry.file_size_bytes))
        index_build.begin_index_file(file, previous)
        rows = rows[put_keys(file, geometry, rows) :]
        previous = decode_index_header(file)
        assert bytes(file) == expected
    assert not len(rows)


@pytest.mark.parametrize("geometry", [(0, 5), (4, 2**31), (5, 12), (4, 13)])
def test_a_file_that_is_too_short_is_refused(geometry):
    file = memoryview(bytearray(IndexGeometry(4, 12).file_size_bytes))
    with pytest.raises(ValueError, match="shorter than its slots"):
        native().put_keys(file, *geometry, bytes(20))


@pytest.mark.parametrize(("phy_offset", "start"), [(-1, 0), (0, -1), (0, 101)])
def test_records_lie_within_their_window(phy_offset, start):
    with pytest.raises(ValueError, match="within the buffer"):
        native().key_rows(memoryview(bytes(100)), phy_offset, start, True, memoryview(bytearray(20)))


def test_an_index_file_that_is_cut_is_an_error(tmp_path):
    path, geometry = tmp_path / "index", IndexGeometry(4000, 12000)
    path.write_bytes(bytes(geometry.file_size_bytes))
    view = map_of(path, writable=True)
    cut(path, 4096)
    rows = np.array([(3999, 5, 6)], KEY_ROW)
    with running(NATIVE), pytest.raises(TruncatedError, match="cut-by-others"):
        put_keys(view, geometry, rows)

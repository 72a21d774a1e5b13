"""Files of a draft behave as files do, after any write, cut, extension or map."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seglog.doctor.draft.changes import CHANGED, CREATED, REMOVED, changes_of
from seglog.doctor.draft.draft_files import DraftFiles
from seglog.doctor.draft.draft_pages import PAGE_BYTES
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import COMMIT_LOG

_SIZE = 20 * PAGE_BYTES + 100
_PLACES = st.integers(0, _SIZE + 3 * PAGE_BYTES)
_DATA = st.one_of(
    st.binary(min_size=1, max_size=50),
    st.integers(1, 4 * PAGE_BYTES).map(bytes),
    st.integers(1, 4 * PAGE_BYTES).map(lambda size: b"w" * size),
)
_STEPS = st.one_of(
    st.tuples(st.just("write"), _PLACES, _DATA),
    st.tuples(st.just("size"), _PLACES),
    st.tuples(st.just("reserve"), _PLACES, st.integers(1, PAGE_BYTES)),
    st.tuples(st.just("map"), _PLACES, st.binary(min_size=1, max_size=50)),
)


def _base(path: Path) -> bytearray:
    """Makes a file with data, holes and data, and returns what it holds."""
    with path.open("wb") as file:
        file.truncate(_SIZE)
        for at in (0, 7 * PAGE_BYTES, 15 * PAGE_BYTES + 5):
            file.seek(at)
            file.write(b"base" * 1500)
    return bytearray(path.read_bytes())


def _write(model: bytearray, position: int, data: bytes) -> None:
    model.extend(bytes(max(0, position + len(data) - len(model))))
    model[position : position + len(data)] = data


@given(steps=st.lists(_STEPS, max_size=8), rounds=st.booleans())
@example(steps=[("map", 0, b"x"), ("size", 0), ("write", 5, b"y")], rounds=False)
@example(steps=[("map", 0, b"x"), ("size", 0), ("size", 40), ("map", 30, b"y")], rounds=True)
def test_a_draft_reads_as_a_file_that_was_changed_so(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int, bytes]],
    rounds: bool,
) -> None:
    path = tmp_path_factory.mktemp("draft") / "file"
    model = _base(path)
    before = bytes(model)
    draft = DraftFiles(RealFiles())
    handle = draft.open(path, writable=True)
    for kind, position, *more in steps:
        if kind == "write":
            handle.write_at(more[0], position)
            _write(model, position, more[0])
        elif kind == "size":
            handle.set_size(position)
            model = model[:position].ljust(position, b"\0")
        elif kind == "reserve":
            end = position + int(more[0])
            handle.reserve(position, int(more[0]))
            model = model.ljust(end, b"\0")
        elif model:
            memory = handle.map()
            at = min(position, len(model) - 1)
            data = more[0][: len(model) - at]
            memory[at : at + len(data)] = data
            model[at : at + len(data)] = data
        if rounds:
            handle.close()
            handle = draft.open(path, writable=True)
    assert handle.size_bytes == len(model)
    assert draft.read_file(path) == model
    _assert_data_found(handle, bytes(model))
    handle.close()
    reading = draft.open(path, writable=False)
    if model:
        assert bytes(reading.map()) == model
    reading.close()
    _assert_changes_lead_there(draft, path, before, bytes(model))
    assert path.read_bytes() == before


def _assert_data_found(handle: object, model: bytes) -> None:
    for position in range(0, len(model), PAGE_BYTES // 2):
        found = handle.next_data(position)  # type: ignore[attr-defined]
        end = len(model) if found is None else found
        assert not model[position:end].strip(b"\0")


def _assert_changes_lead_there(draft: DraftFiles, path: Path, before: bytes, after: bytes) -> None:
    changes = changes_of(draft)
    if not changes:
        assert after == before
        return
    [change] = changes
    assert change.kind == CHANGED
    made = bytearray(before[: len(after)].ljust(len(after), b"\0"))
    for at, size in change.stretches:
        made[at : at + size] = after[at : at + size]
    assert made == after


def test_zeros_over_a_long_file_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "long"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    draft = DraftFiles(RealFiles())
    handle = draft.open(path, writable=True)
    for at in range(0, 1 << 30, 1 << 20):
        handle.write_at(bytes(1 << 20), at)
    node = draft.nodes[path]
    assert node is not None
    assert len(list(node.runs)) == 1
    assert not changes_of(draft)
    handle.close()


def test_a_file_that_is_mapped_to_be_read_shows_the_changes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    model = _base(path)
    draft = DraftFiles(RealFiles())
    handle = draft.open(path, writable=True)
    handle.write_at(b"changed", 3 * PAGE_BYTES + 5)
    handle.close()
    _write(model, 3 * PAGE_BYTES + 5, b"changed")
    reading = draft.open(path, writable=False)
    assert bytes(reading.map()) == model
    assert path.read_bytes() != model
    reading.close()


def test_a_file_of_the_log_with_many_changes_is_read_without_a_map(tmp_path: Path) -> None:
    path = tmp_path / COMMIT_LOG / "file"
    path.parent.mkdir()
    path.write_bytes(bytes(PAGE_BYTES * 3000))
    draft = DraftFiles(RealFiles())
    handle = draft.open(path, writable=True)
    handle.write_at(b"x" * PAGE_BYTES * 3000, 0)
    handle.close()
    reading = draft.open(path, writable=False)
    with pytest.raises(OSError, match="No such device"):
        reading.map()
    assert draft.read_file(path) == b"x" * PAGE_BYTES * 3000
    reading.close()


def test_a_file_that_was_cut_and_renamed_is_no_mere_move(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"cut here, please")
    draft = DraftFiles(RealFiles())
    handle = draft.open(path, writable=True)
    handle.set_size(8)
    handle.close()
    draft.rename(path, tmp_path / "other")
    assert sorted(change.kind for change in changes_of(draft)) == [CREATED, REMOVED]

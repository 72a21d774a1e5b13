"""An undo pack from a stranger is read whole before a step, and leads nowhere outside of its store."""

from __future__ import annotations

import pytest

from seglog.doctor.plans.unfinished import unfinished_findings
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.doctor.undo.store_fingerprint import state_of
from seglog.doctor.undo.undo import check_undo, undo_repair
from seglog.doctor.undo.undo_reading import read_whole
from seglog.errors import CorruptError, UndoError, UnsafePathError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.ours.undo_journal import UNDO_VERSION, UndoEntry, UndoKind
from tests.support.damage.packs import (
    BEGIN,
    KEYS,
    entries_of,
    file_entry,
    journal_bytes,
    outside_entries,
    plant_pack,
    store_among_others,
    surroundings,
)
from tests.support.material.golden import tree_digest
from tests.support.material.stores import new_clock

FILES = RealFiles()


@pytest.fixture
def store(tmp_path):
    """A store in a folder with things that are none of its business."""
    return store_among_others(tmp_path)


def test_no_absolute_name_is_taken(store):
    plant_pack(store, outside_entries(store, up=f"{store.parent}/"))
    with pytest.raises((CorruptError, UnsafePathError)):
        undo_repair(FILES, store)
    assert surroundings(store)["authorized_keys"][0] == b"mine, all of it"


LOG = "commitlog/" + "0" * 20
TWICE = UndoEntry(UndoKind.KEPT, LOG, position_bytes=1)
UNSOUND = {
    "a name that is empty": [file_entry("")],
    "a name of the store itself": [file_entry(".")],
    "a name that goes up": [file_entry("commitlog/../x")],
    "a name with NUL": [file_entry("a\0b")],
    "a name with an empty part": [file_entry("commitlog//x")],
    "a name of 256 bytes": [file_entry("x" * 256)],
    "a name of an undo pack": [file_entry("seglog/undo/2/journal")],
    "a lock that goes": [file_entry("lock"), UndoEntry(UndoKind.KEPT, "lock", position_bytes=1)],
    "a file that comes as an undo pack": [UndoEntry(UndoKind.CREATED, "seglog/undo/2/journal")],
    "a folder twice": [UndoEntry(UndoKind.MADE, "x"), UndoEntry(UndoKind.MADE, "x")],
    "a file twice": [file_entry("x"), file_entry("x")],
    "a file that is a folder": [file_entry("x"), UndoEntry(UndoKind.FOLDER, "x")],
    "a file in no folder": [file_entry("x/y")],
    "a file in a file": [file_entry("x"), file_entry("x/y")],
    "a file that went and was not there": [UndoEntry(UndoKind.KEPT, "x", position_bytes=1)],
    "a file that came and was there": [UndoEntry(UndoKind.CREATED, LOG)],
    "a file that went twice": [TWICE, TWICE],
    "a file that went and moved": [TWICE, UndoEntry(UndoKind.MOVED, LOG, b"x")],
    "two files that went under one number": [
        TWICE, file_entry("x"), UndoEntry(UndoKind.KEPT, "x", position_bytes=1),
    ],
    "a number that is none": [UndoEntry(UndoKind.KEPT, LOG, position_bytes=-1)],
    "a file that moved to another one": [file_entry("x"), UndoEntry(UndoKind.MOVED, LOG, b"x")],
    "a file that moved out": [UndoEntry(UndoKind.MOVED, LOG, b"../x")],
    "a file that moved to the lock": [UndoEntry(UndoKind.MOVED, LOG, b"lock")],
    "a length below nothing": [file_entry("x", -1)],
    "bytes before a file": [UndoEntry(UndoKind.BYTES, LOG, b"x", position_bytes=-1, size_bytes=1)],
    "bytes behind a file": [UndoEntry(UndoKind.BYTES, LOG, b"x", position_bytes=1 << 40, size_bytes=1)],
    "more bytes than the stretch has": [UndoEntry(UndoKind.BYTES, LOG, b"xyz", size_bytes=1)],
    "a stretch of more bytes than there are": [UndoEntry(UndoKind.BYTES, LOG, b"", size_bytes=1 << 62)],
    "stretches that overlap": [
        UndoEntry(UndoKind.BYTES, LOG, b"x", position_bytes=8, size_bytes=8),
        UndoEntry(UndoKind.BYTES, LOG, b"x", position_bytes=4, size_bytes=8),
    ],
    "a second beginning": [BEGIN],
}  # fmt: skip


@pytest.mark.parametrize("name", UNSOUND)
def test_a_journal_that_says_what_no_repair_writes_is_refused_whole(name, store):
    plant_pack(store, [*entries_of(store), *UNSOUND[name]])
    before = tree_digest(store)
    with pytest.raises((CorruptError, UnsafePathError)):
        undo_repair(FILES, store)
    assert tree_digest(store) == before
    (finding,) = unfinished_findings(FILES, store)
    assert finding.code == "undo-unsound"
    (first,) = plan_repair(FILES, store, new_clock()).first
    assert (first.kind, first.file) == ("discard", "seglog/undo/1")


@pytest.mark.parametrize("case", ["count", "version", "behind the end", "no begin", "no journal"])
def test_a_journal_of_another_form_is_refused(case, store):
    entries = entries_of(store)
    journal = plant_pack(store, entries) / "journal"
    other = UndoEntry(UndoKind.BEGIN, position_bytes=UNDO_VERSION + 1)
    if case == "no journal":
        journal.unlink()
        journal.mkdir()
    else:
        journal.write_bytes({
            "count": journal_bytes([BEGIN, *entries], count=3),
            "version": journal_bytes([other, *entries]),
            "behind the end": journal_bytes([BEGIN, *entries]) + b"x",
            "no begin": journal_bytes(entries),
        }[case])  # fmt: skip
    (first,) = plan_repair(FILES, store, new_clock()).first
    assert first.kind == "discard"
    plan, pack = repair_store(FILES, store, new_clock(), lambda _plan: True)
    assert (plan.is_settled, pack) == (True, None)
    assert not any(plan_repair(FILES, store, new_clock()).first)


def test_what_a_repair_left_must_follow_from_its_journal(store):
    entries = entries_of(store)
    states = [one for one in entries if one.kind is UndoKind.FILE]
    for after in (states[1:], [*states, file_entry("x")], [*states[1:], file_entry(states[0].path, 3)]):
        plant_pack(store, entries, after=after)
        with pytest.raises(CorruptError, match="undo-after"):
            read_whole(FILES, store, 1)
    plant_pack(store, entries, after=states)
    assert read_whole(FILES, store, 1).after is not None


def test_a_finished_pack_is_held_against_what_it_promises_to_bring_back(store):
    entries = entries_of(store)
    states = [one for one in entries if one.kind is UndoKind.FILE]
    bytes_entry = UndoEntry(UndoKind.BYTES, LOG, b"other", position_bytes=0, size_bytes=5)
    plant_pack(store, [*entries, bytes_entry], after=states)
    with pytest.raises(UndoError, match="has other content"):
        undo_repair(FILES, store)


def test_rights_out_of_a_journal_are_those_of_files(store):
    entries = entries_of(store, mode=0o106755)
    name = "checkpoint"
    old = UndoEntry(UndoKind.BYTES, name, (store / name).read_bytes()[:1], size_bytes=1)
    plant_pack(store, [*entries, old])
    undo_repair(FILES, store)
    assert (store / name).stat().st_mode & 0o7777 == 0o755


def test_a_file_can_state_no_length_that_nothing_of_it_has(store):
    """A sparse file would take it, and the checksum of its zeros can be right."""
    size = 1 << 60
    entries = [one for one in entries_of(store) if one.path != "checkpoint"]
    plant_pack(store, [*entries, file_entry("checkpoint", size), UndoEntry(UndoKind.BYTES, "checkpoint")])
    with pytest.raises(UndoError, match="checkpoint has other content"):
        check_undo(FILES, store, read_whole(FILES, store, 1))


def test_a_link_in_the_place_of_a_kept_file_is_not_followed(store):
    target = store.parent / KEYS
    entries = [*entries_of(store), UndoEntry(UndoKind.FOLDER, "extra")]
    state = state_of(FILES, target)
    kept = [
        file_entry("extra/keys", state.size_bytes, state.content_crc32c, mode=0o666),
        UndoEntry(UndoKind.KEPT, "extra/keys", position_bytes=1),
    ]
    folder = plant_pack(store, [*entries, *kept])
    (folder / "kept/1").symlink_to(target)
    mode = target.stat().st_mode
    try:
        undo_repair(FILES, store)
    except (CorruptError, UndoError, UnsafePathError):
        refused = True
    else:
        refused = False
    assert target.stat().st_mode == mode
    assert target.read_bytes() == b"mine, all of it"
    assert refused

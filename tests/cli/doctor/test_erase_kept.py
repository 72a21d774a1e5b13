"""``seglog erase`` leaves nothing of a message in undo packs, the attic and files that were moved aside."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.erase.erase import apply_erase, plan_erase
from seglog.doctor.repair.repair import repair_store
from seglog.doctor.undo.undo_reading import read_whole
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.material.stores import SMALL_INDEX, new_clock

SECRET = b"SECRETBODY%04d"


def body(number):
    return b"AAAA-%d " % number + (SECRET % number) * 6


@pytest.fixture(params=[False, True], ids=["plain", "record CRC"])
def store(request, tmp_path):
    """A store of 12 messages, each with a key and a body of its own."""
    root = tmp_path / "st"
    with MessageStore.open(
        root,
        clock=new_clock(),
        segment_size_bytes=65536,
        queue_file_size_bytes=2000,
        record_crc=request.param,
        **SMALL_INDEX,
    ) as made:
        for number in range(12):
            made.put("T", body(number), keys=f"k{number}")
    return root


def log(root):
    return root / "commitlog" / f"{0:020d}"


def damage(root, number, at=14):
    """Writes over 16 bytes in the middle of a body."""
    with log(root).open("r+b") as stream:
        stream.seek(log(root).read_bytes().find(body(number)) + at)
        stream.write(b"#" * 16)


def repair(root):
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)


def holding(root, data):
    """Returns the files of a store that hold some bytes."""
    return [path for path in sorted(root.rglob("*")) if path.is_file() and data in path.read_bytes()]


def test_the_bytes_of_a_damaged_message_go_from_the_journal_of_the_undo_pack(seglog: Seglog, store):
    damage(store, 7)
    repair(store)
    assert store / "seglog/undo/1/journal" in holding(store, SECRET % 7)
    ran = seglog("erase", store, "k7", "--apply", "--yes", "--json")
    assert ran.exit_code == 0, ran.stderr
    paper = ran.lines[0]
    assert paper["complete"]
    (pack,) = paper["undoPacks"]
    assert (pack["store"], pack["pack"]) == ("", "seglog/undo/1")
    assert pack["zeroedBytes"] > 0
    assert paper["bodySearch"]["bodies"] == 1, "the body as the attic had it is searched for"
    assert holding(store, SECRET % 7) == []
    assert read_whole(RealFiles(), store, 1).old, "the pack is whole"
    assert "undo-unsound" not in {one.code for one in check_store(store, clock=new_clock()).findings}
    refused = seglog("undo", store)
    assert refused.exit_code == 28
    assert "was changed since repair 1" in refused.stderr


def test_the_erase_names_the_packs_that_it_wrote(seglog: Seglog, store):
    damage(store, 7)
    repair(store)
    shown = seglog("erase", store, "k7", "--apply", "--yes").stdout
    assert "erased in seglog/undo/1; undo takes them back no more" in shown


def test_other_messages_stay_in_the_journal(seglog: Seglog, store):
    damage(store, 7)
    damage(store, 9)
    repair(store)
    assert seglog("erase", store, "k7", "--apply", "--yes").exit_code == 0
    assert holding(store, SECRET % 7) == []
    assert store / "seglog/undo/1/journal" in holding(store, SECRET % 9)


def test_packs_of_several_repairs_and_those_moved_aside_are_erased(seglog: Seglog, store):
    for number in (3, 5):
        damage(store, number)
        repair(store)
    assert seglog("undo", "--discard", store, "1").exit_code == 0
    assert seglog("erase", store, "k3", "--apply", "--yes").exit_code == 0
    assert seglog("erase", store, "k5", "--apply", "--yes").exit_code == 0
    assert holding(store, SECRET % 3) == holding(store, SECRET % 5) == []


def test_an_erase_that_was_interrupted_is_finished_in_the_packs_too(seglog: Seglog, store, tmp_path):
    damage(store, 7)
    repair(store)
    plan = plan_erase(RealFiles(), store, "k7")
    before = shutil.copytree(store, tmp_path / "before")
    stopped = 0
    while True:
        shutil.rmtree(store)
        shutil.copytree(before, store)
        fault = Fault(stopped + 1, sticky=True, names=frozenset({"write", "rename", "sync", "remove"}))
        with suppress(OSError):
            apply_erase(FailingFiles(fault), plan, new_clock())
        if not fault.fired:
            break
        stopped += 1
        ran = seglog("erase", store, "k7", "--apply", "--yes")
        assert ran.exit_code == 0, (fault.fired, ran.stdout, ran.stderr)
        assert holding(store, SECRET % 7) == [], fault.fired
    assert stopped > 8


def test_a_pack_that_cannot_be_read_is_named_and_nothing_is_certified(seglog: Seglog, store):
    damage(store, 7)
    repair(store)
    journal = store / "seglog/undo/1/journal"
    data = bytearray(journal.read_bytes())
    data[data.find(SECRET % 7)] ^= 1
    journal.write_bytes(data)
    ran = seglog("erase", store, "k7", "--apply", "--yes", "--json")
    assert ran.exit_code == 1
    assert not ran.lines[0]["complete"]
    assert any(
        "seglog/undo/1, an undo pack that cannot be read" in one for one in ran.lines[0]["notLookedAt"]
    )


def test_a_copy_of_a_log_file_that_was_moved_aside_is_erased(seglog: Seglog, store):
    shutil.copy(log(store), log(store).with_name(f"{65536:020d}"))
    repair(store)
    stray = store / "seglog/stray/commitlog" / f"{65536:020d}"
    assert holding(store, SECRET % 7) == [log(store), stray]
    assert seglog("erase", store, "k7", "--apply", "--yes").exit_code == 0
    assert holding(store, SECRET % 7) == []
    assert stray in holding(store, SECRET % 6)


def zero_head(root, number):
    """Zeroes the head of a record, so that its tombstone has no keys."""
    (copy,) = plan_erase(RealFiles(), root, f"k{number}").copies
    with log(root).open("r+b") as stream:
        stream.seek(copy.position_bytes)
        stream.write(bytes(60))


def test_a_lost_record_without_keys_is_named_and_goes_by_its_id(seglog: Seglog, store):
    zero_head(store, 7)
    repair(store)
    assert len(holding(store, SECRET % 7)) == 2
    refused = seglog("erase", store, "k7", "--apply", "--yes")
    assert refused.exit_code == 13
    assert "T/0 @7 (id " in refused.stderr
    assert "holds the text" in refused.stderr
    message_id = refused.stderr.partition("(id ")[2].partition(")")[0]
    other = seglog("erase", store, "nosuch", "--apply", "--yes")
    assert message_id in other.stderr
    assert "holds the text" not in other.stderr
    assert seglog("erase", store, message_id, "--apply", "--yes").exit_code == 0
    assert holding(store, SECRET % 7) == []
    assert message_id not in seglog("erase", store, "k7", "--apply", "--yes").stderr


def test_an_erase_of_a_key_is_not_complete_while_a_lost_record_without_keys_holds_it(seglog: Seglog, store):
    zero_head(store, 7)
    repair(store)
    with MessageStore.open(store, clock=new_clock()) as opened:
        opened.put("T", b"again", keys="k7")
    ran = seglog("erase", store, "k7", "--apply", "--yes", "--json")
    assert ran.exit_code == 1
    assert not ran.lines[0]["complete"]
    (named,) = [one for one in ran.lines[0]["notLookedAt"] if "without keys" in one]
    message_id = named.partition("(id ")[2].partition(")")[0]
    assert seglog("erase", store, message_id, "--apply", "--yes").exit_code == 0
    assert seglog("erase", store, "k7", "--apply", "--yes").exit_code == 0
    assert holding(store, SECRET % 7) == []

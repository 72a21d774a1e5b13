"""``seglog erase``: bodies are gone from every copy, the rest is as it was, and the paper says all of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import pytest

from seglog.doctor.check.verify import verify_store
from seglog.doctor.erase import erase as erasing
from seglog.doctor.erase.erase_journal import Rewrite, write_journal
from seglog.errors import InvalidArgumentError, NotFoundError, StoreError, StoreLockedError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record.sys_flag import COMPRESSED
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.command_line.screen import on_screen
from tests.support.material import golden
from tests.support.material.lives import BODY, TOPIC, UNIQUE, live
from tests.support.material.stores import new_clock, served


@pytest.fixture
def life(tmp_path):
    return live(tmp_path / "s")


def everything(path):
    with MessageStore.open(path, read_only=True) as store:
        assert [f for f in store.recovery.findings if f.severity.value == "loss"] == []
        return {message.phy_offset: message for queue in served(store).values() for message in queue}


def raw(path):
    return b"".join(file.read_bytes() for file in sorted((path / "commitlog").iterdir()))


@pytest.mark.parametrize("record_crc", [True, False])
@pytest.mark.parametrize("wanted", [UNIQUE, "order-1", "id"])
def test_every_copy_loses_its_body_and_nothing_else_changes(seglog: Seglog, tmp_path, record_crc, wanted):
    life = live(tmp_path / "s", record_crc=record_crc)
    assert seglog("park", life.path, UNIQUE, "--group", "audit", "--apply").exit_code == 0
    before, files_before = everything(life.path), golden.file_digest(life.path)
    name = life.dead.message_id if wanted == "id" else wanted
    assert raw(life.path).count(BODY) == 7
    ran = seglog("erase", life.path, name, "--apply", "--yes", "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    assert BODY not in raw(life.path)
    after = everything(life.path)
    paper = ran.lines[0]
    assert paper["complete"]
    assert len(paper["copies"]) == 7
    assert {copy["role"] for copy in paper["copies"]} == {"message", "delayed", "retry", "dead", "parked"}
    erased = {copy["commitLogOffset"] for copy in paper["copies"]}
    assert after.keys() == before.keys()
    for at, message in after.items():
        if at not in erased:
            assert message == before[at]
            continue
        assert not any(message.body)
        assert message.properties["SEGLOG_ERASED"] == "1"
        for field in (
            "topic",
            "queue_offset",
            "size_bytes",
            "tags",
            "keys",
            "unique_key",
            "flag",
            "store_timestamp_ms",
        ):
            assert getattr(message, field) == getattr(before[at], field)
    changed = {
        name for name, digest in golden.file_digest(life.path).items() if files_before.get(name) != digest
    }
    assert {name for name in changed if not name.startswith("seglog/")} == {"commitlog/00000000000000000000"}
    assert verify_store(life.path).is_clean
    with MessageStore.open(life.path) as store:
        assert store.recovery.cut_bytes == store.recovery.rewritten_queue_files == 0
        assert [m.phy_offset for m in store.query(TOPIC, "order-1")] == [life.born.phy_offset]


def test_a_second_erase_says_that_nothing_is_left(seglog: Seglog, life):
    first = seglog("erase", life.path, UNIQUE).stdout
    assert "nothing is left to erase" not in first
    assert "erased already" not in first
    assert seglog("erase", life.path, UNIQUE, "--apply", "--yes").exit_code == 0
    log = raw(life.path)
    again = seglog("erase", life.path, UNIQUE)
    *rows, last = again.stdout.splitlines()
    assert all(row.endswith("erased already") for row in rows[1:])
    assert last.startswith("nothing is left to erase: these bodies are empty or zeros already;")
    assert seglog("erase", life.path, UNIQUE, "--json").lines[-1]["next"] is None
    done = seglog("erase", life.path, UNIQUE, "--apply", "--yes")
    assert done.exit_code == 0
    assert "nothing was left to erase" in done.stdout
    assert raw(life.path) == log


def test_an_erase_counts_the_records_that_were_erased_before(seglog: Seglog, life):
    assert seglog("erase", life.path, UNIQUE, "--apply", "--yes").exit_code == 0
    count = len(life.all)
    with MessageStore.open(life.path) as store:
        store.put(TOPIC, b"one more body, with room for the mark", keys="order-1")
    shown = seglog("erase", life.path, "order-1", "--apply", "--yes").stdout
    assert f"erased        1 record; {count} more were erased already" in shown


@pytest.mark.parametrize("place", ["in", "symlink", "folder link", "hard link", "exists"])
def test_a_certificate_overwrites_no_file(seglog: Seglog, life, tmp_path, place):
    log = life.path / "commitlog" / ("0" * 20)
    beside = tmp_path / "paper.json"
    paper_file = {"in": log, "folder link": tmp_path / "link" / "paper.json"}.get(place, beside)
    if place == "symlink":
        paper_file.symlink_to(log)
    elif place == "folder link":
        (tmp_path / "link").symlink_to(life.path)
    elif place == "hard link":
        paper_file.hardlink_to(log)
    elif place == "exists":
        paper_file.write_text("mine")
    before = golden.tree_digest(tmp_path)
    ran = seglog("erase", life.path, UNIQUE, "--apply", "--yes", "--certificate", paper_file)
    assert (ran.exit_code, golden.tree_digest(tmp_path)) == (24, before)
    assert ("exists already" if place == "exists" else "store") in ran.stderr


def test_the_certificate_names_places_and_sums(seglog: Seglog, life, tmp_path):
    log = raw(life.path)
    paper_file = tmp_path / "paper.json"
    shown = seglog("erase", life.path, UNIQUE, "--apply", "--yes", "--certificate", paper_file)
    assert "nowhere in the store" in shown.stdout
    paper = json.loads(paper_file.read_text())
    now = raw(life.path)
    assert [copy["commitLogOffset"] for copy in paper["copies"]] == [put.phy_offset for put in life.all]
    for copy in paper["copies"]:
        place = slice(copy["commitLogOffset"], copy["commitLogOffset"] + copy["size"])
        assert copy["sha256Before"] == hashlib.sha256(log[place]).hexdigest()
        assert copy["sha256After"] == hashlib.sha256(now[place]).hexdigest()
        assert (copy["file"], copy["pos"]) == ("commitlog/00000000000000000000", copy["commitLogOffset"])
    assert BODY.decode() not in paper_file.read_text()
    assert paper["bodySearch"]["bodies"] == 1
    assert any("replicas, backups, exports" in text for text in paper["notLookedAt"])


def test_what_holds_the_body_elsewhere_is_named_and_the_exit_code_is_1(seglog: Seglog, life):
    attic = life.path / "seglog" / "attic"
    attic.mkdir(parents=True, exist_ok=True)
    (attic / "old").write_bytes(b"x" * 100 + BODY + b"y")
    with MessageStore.open(life.path) as store:
        put = store.put("traces", b"saw " + UNIQUE.encode())
    ran = seglog("erase", life.path, UNIQUE, "--apply", "--yes", "--json")
    assert ran.exit_code == 1
    paper = ran.lines[0]
    assert not paper["complete"]
    assert paper["bodySearch"]["found"] == [{"file": "seglog/attic/old", "pos": 100}]
    assert [one["commitLogOffset"] for one in paper["mentions"]] == [put.phy_offset]


MENTIONS = {
    "alone": (b"%s", True),
    "in JSON": (b'{"id":"%s","n":1}', True),
    "at the end of a sentence": (b"it was %s.", True),
    "as a part first, then alone": (b"%s0 and %s", True),
    "with more behind": (b"saw %s0", False),
    "with more before": (b"saw x%s", False),
    "in a longer name": (b"%s-b a_%s", False),
}


@pytest.mark.parametrize("name", MENTIONS)
@pytest.mark.parametrize("wanted", [UNIQUE, "order-1"])
def test_an_id_within_a_longer_one_is_no_mention(seglog: Seglog, life, name, wanted):
    text, is_mention = MENTIONS[name]
    body = text.replace(b"%s", wanted.encode())
    with MessageStore.open(life.path) as store:
        put = store.put("traces", body)
        keyed = store.put("traces", b"x", keys=wanted + "0", properties={"UNIQ_KEY": wanted + "1"})
    paper = seglog("erase", life.path, wanted, "--apply", "--yes", "--json").lines[0]
    assert [one["commitLogOffset"] for one in paper["mentions"]] == [put.phy_offset] * is_mention
    assert keyed.phy_offset not in {copy["commitLogOffset"] for copy in paper["copies"]}
    assert body in raw(life.path)


def test_sealed_segments_are_sealed_anew_and_the_recovery_point_goes(seglog: Seglog, tmp_path):
    life = live(tmp_path / "s", others=150)
    verify_store(life.path, seal=True)
    assert any((life.path / "seglog" / "seals").iterdir())
    with MessageStore.open(life.path, recovery_step_bytes=1024) as store:
        store.put("late", b"x")
    ran = seglog("erase", life.path, UNIQUE, "--apply", "--yes", "--json")
    assert ran.exit_code == 0
    assert ran.lines[0]["sealedAnew"]
    report = verify_store(life.path)
    assert report.is_clean
    assert report.by_seal
    with MessageStore.open(life.path, read_only=False) as store:
        assert [f.code for f in store.recovery.findings] == []
        assert store.later_findings == ()


def test_a_segment_that_did_not_match_its_seal_keeps_the_proof(seglog: Seglog, tmp_path):
    life = live(tmp_path / "s", others=150)
    verify_store(life.path, seal=True)
    first = min(int(seal.stem) for seal in (life.path / "seglog" / "seals").iterdir())
    file = life.path / "commitlog" / f"{first:020d}"
    at = file.read_bytes().find(b"other 3")
    with file.open("r+b") as stream:
        stream.seek(at)
        stream.write(b"OTHER")
    ran = seglog("erase", life.path, UNIQUE, "--apply", "--yes", "--json")
    assert ran.exit_code == 0
    assert ran.lines[0]["sealsThatDidNotMatch"] == [{"store": "", "commitLogOffset": first}]
    assert not verify_store(life.path).is_clean


def test_times_of_change_stay_because_retention_goes_by_them(seglog: Seglog, life):
    file = life.path / "commitlog" / f"{0:020d}"
    os.utime(file, ns=(1_000_000_000, 2_000_000_000))
    assert seglog("erase", life.path, UNIQUE, "--apply", "--yes").exit_code == 0
    assert file.stat().st_mtime_ns == 2_000_000_000


def test_a_damaged_copy_is_not_erased_but_named(seglog: Seglog, life):
    file = life.path / "commitlog" / f"{0:020d}"
    with file.open("r+b") as stream:
        stream.seek(file.read_bytes().find(BODY, life.dead.phy_offset))
        stream.write(b"#")
    ran = seglog("erase", life.path, UNIQUE, "--apply", "--yes", "--json")
    assert ran.exit_code == 1
    assert len(ran.lines[0]["copies"]) == 5
    assert any(f"damaged record at {life.dead.phy_offset}" in text for text in ran.lines[0]["notLookedAt"])


def test_other_names_of_a_file_keep_the_message_and_are_counted(seglog: Seglog, life, tmp_path):
    file, backup = life.path / "commitlog" / f"{0:020d}", tmp_path / "backup"
    os.link(file, backup)
    old = backup.read_bytes()
    ran = seglog("erase", life.path, UNIQUE, "--apply", "--yes", "--json")
    assert {copy["otherNames"] for copy in ran.lines[0]["copies"]} == {1}
    assert backup.read_bytes() == old
    assert BODY not in file.read_bytes()


def test_nothing_is_erased_without_the_store_s_name(seglog: Seglog, life):
    before = golden.file_digest(life.path)
    apply = ["erase", str(life.path), UNIQUE, "--apply"]
    for answer in (b"\n", b"yes\n", b"other\n"):
        assert on_screen(apply, 200, stdin=answer).exit_code == InvalidArgumentError.exit_code
    *copies, preview = seglog("erase", life.path, UNIQUE, "--json").lines
    assert [line["role"] for line in copies] == ["message", "delayed", "retry", "delayed", "retry", "dead"]
    assert preview["next"] == f"seglog erase {life.path} {UNIQUE} --json --apply --yes"
    assert "delayed" in seglog("erase", life.path, UNIQUE).stdout
    assert golden.file_digest(life.path) == before
    assert on_screen(apply, 200, stdin=b"s\n").exit_code == 0
    assert BODY not in raw(life.path)


def test_an_open_store_and_unknown_messages_are_refused(seglog: Seglog, life):
    before = golden.file_digest(life.path)
    lock = RealFiles().lock(life.path)
    try:
        assert seglog("erase", life.path, UNIQUE, "--apply", "--yes").exit_code == StoreLockedError.exit_code
    finally:
        lock.release()
    assert seglog("erase", life.path, "nosuch", "--apply", "--yes").exit_code == NotFoundError.exit_code
    assert golden.file_digest(life.path) == before


def test_a_record_that_changed_since_the_plan_stops_everything(life):
    plan = erasing.plan_erase(RealFiles(), life.path, UNIQUE)
    assert len(plan.copies) == 6
    file = life.path / "commitlog" / f"{0:020d}"
    with file.open("r+b") as stream:
        stream.seek(life.dead.phy_offset + 90)
        stream.write(b"#")
    before = golden.file_digest(life.path)
    with pytest.raises(StoreError, match="changed since"):
        erasing.apply_erase(RealFiles(), plan, new_clock())
    assert golden.file_digest(life.path) == before


def test_an_interrupted_erase_is_finished_by_the_next(seglog: Seglog, life):
    plan = erasing.plan_erase(RealFiles(), life.path, UNIQUE)
    rewrites = [Rewrite(copy.message.phy_offset, copy.data) for copy in plan.copies]
    (life.path / "seglog").mkdir(exist_ok=True)
    write_journal(RealFiles(), life.path, 64 << 10, rewrites)
    # Power was lost in the middle of the first record: half of it is new.
    half = len(rewrites[0].data) // 2
    with (life.path / "commitlog" / f"{0:020d}").open("r+b") as stream:
        stream.seek(rewrites[0].phy_offset)
        stream.write(rewrites[0].data[:half])
    shown = seglog("erase", life.path, UNIQUE, "--apply", "--yes")
    assert "finished an erase that was interrupted: 6 records" in shown.stdout
    assert shown.exit_code == 0
    assert BODY not in raw(life.path)
    assert not (life.path / "seglog" / "erasing").exists()
    assert verify_store(life.path).is_clean


def test_without_a_scan_the_certificate_says_so(seglog: Seglog, life):
    ran = seglog("erase", life.path, UNIQUE, "--apply", "--yes", "--no-scan", "--json")
    assert ran.exit_code == 1
    assert not ran.lines[0]["complete"]
    assert any("index does not cover" in text for text in ran.lines[0]["notLookedAt"])


@pytest.mark.parametrize("name", ["roll", "ipv6", "outerbatch", "tx", "delay", "propcrc"])
def test_messages_of_real_stores(seglog: Seglog, tmp_path, name):
    path = golden.extract(name, tmp_path)
    before = everything(path)
    keys = [m.keys[0] for m in before.values() if m.keys and m.sys_flag & COMPRESSED][:1] or [
        m.keys[0] for m in before.values() if m.keys
    ][:1]
    ran = seglog("erase", path, *keys, "--apply", "--yes", "--json")
    assert ran.exit_code in (0, 1), ran.stderr
    erased = {copy["commitLogOffset"] for copy in ran.lines[0]["copies"]}
    assert erased
    after = everything(path)
    assert {at: m for at, m in after.items() if at not in erased} == {
        at: m for at, m in before.items() if at not in erased
    }
    assert not any(any(after[at].body) for at in erased & after.keys())
    shutil.rmtree(path)

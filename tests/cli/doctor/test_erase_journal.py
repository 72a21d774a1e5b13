"""``seglog/erasing`` is continued only if it follows from the log that it is beside."""

from __future__ import annotations

import base64
import json

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.erase import erase as erasing
from seglog.doctor.erase.erase_journal import JOURNAL, Rewrite, write_journal
from seglog.doctor.erase.erased_record import erase_record
from seglog.errors import CorruptError, NotFoundError
from seglog.storage.files.files import RealFiles
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.lives import BODY, UNIQUE, live
from tests.support.material.stores import new_clock

FILES = RealFiles()
SEGMENT = 64 << 10


@pytest.fixture
def life(tmp_path):
    return live(tmp_path / "s")


def codes(root):
    return {finding.code for finding in check_store(root, clock=new_clock()).findings}


def planned(root):
    plan = erasing.plan_erase(FILES, root, UNIQUE)
    return [Rewrite(copy.message.phy_offset, copy.data) for copy in plan.copies]


def record_at(root, phy_offset, size_bytes):
    with (root / "commitlog" / f"{0:020d}").open("rb") as file:
        file.seek(phy_offset)
        return file.read(size_bytes)


def test_a_foreign_journal_is_seen_and_never_written_into_the_log(seglog: Seglog, life):
    first = planned(life.path)[0]
    foreign = [Rewrite(first.phy_offset, b"\x5a" * len(first.data))]
    write_journal(FILES, life.path, SEGMENT, foreign)
    log = golden.file_digest(life.path / "commitlog")
    assert "erase-unsound" in codes(life.path)
    assert seglog("check", life.path).exit_code == 1
    for words in (("nosuchkey",), (UNIQUE,)):
        refused = seglog("erase", life.path, *words, "--apply", "--yes")
        assert refused.exit_code in (CorruptError.exit_code, 12)
        assert "`seglog repair" in refused.stderr
    assert golden.file_digest(life.path / "commitlog") == log
    shown = seglog("repair", life.path)
    assert "  1. move a journal that cannot be believed aside: seglog/erasing" in shown.stdout
    assert (life.path / JOURNAL).exists()
    assert seglog("repair", "--apply", "--yes", life.path).exit_code == 0
    assert (life.path / "seglog/stray" / JOURNAL).exists()
    assert seglog("check", life.path).exit_code == 0
    assert golden.file_digest(life.path / "commitlog") == log
    assert seglog("erase", life.path, "nosuchkey", "--apply", "--yes").exit_code == NotFoundError.exit_code


def test_an_erase_that_was_stopped_is_a_finding_and_a_repair_finishes_it(seglog: Seglog, life):
    rewrites = planned(life.path)
    write_journal(FILES, life.path, SEGMENT, rewrites)
    half = len(rewrites[0].data) // 2
    with (life.path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(rewrites[0].phy_offset)
        file.write(rewrites[0].data[:half])
    assert "erase-unfinished" in codes(life.path)
    shown = seglog("repair", life.path)
    assert "  1. finish the erase that was stopped: seglog/erasing" in shown.stdout
    assert (life.path / JOURNAL).exists()
    done = seglog("repair", "--apply", "--yes", life.path)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert BODY not in b"".join(path.read_bytes() for path in life.path.rglob("*") if path.is_file())
    assert seglog("check", life.path).exit_code == 0


def encoded(rewrites, segment=SEGMENT, **more):
    records = [{"phyOffset": at, "data": base64.b64encode(data).decode()} for at, data in rewrites]
    return json.dumps({"segmentBytes": segment, "records": records, **more}).encode()


UNSOUND = {
    "nothing": lambda _all: b"",
    "a hole": lambda _all: bytes(100_000),
    "no records": lambda _all: b'{"segmentBytes":65536}',
    "records that are none": lambda _all: b'{"segmentBytes":65536,"records":[7]}',
    "no base64": lambda _all: b'{"segmentBytes":65536,"records":[{"phyOffset":0,"data":"!"}]}',
    "segments of no length": lambda every: encoded(every, 0),
    "segments of another length": lambda every: encoded(every, 1 << 40),
    "brackets": lambda _all: b"[" * 100_000,
    "a record twice": lambda every: encoded([every[0], every[0]]),
    "a place before the log": lambda every: encoded([Rewrite(-5, every[0].data)]),
    "a place behind the log": lambda every: encoded([Rewrite(1 << 62, every[0].data)]),
    "the record of another place": lambda every: encoded([Rewrite(every[1].phy_offset, every[0].data)]),
    "a record with a body": lambda every: encoded([Rewrite(every[0].phy_offset, b"\1" + every[0].data[1:])]),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_a_journal_that_does_not_prove_itself_is_no_journal(seglog: Seglog, life, name):
    (life.path / "seglog").mkdir(exist_ok=True)
    (life.path / JOURNAL).write_bytes(UNSOUND[name](planned(life.path)))
    before = golden.file_digest(life.path)
    refused = seglog("erase", life.path, "nosuchkey", "--apply", "--yes")
    assert refused.exit_code in (11, 12), refused.stderr
    assert "Traceback" not in refused.stderr
    assert golden.file_digest(life.path) == before
    assert "erase-unsound" in codes(life.path)


def test_a_valid_record_that_is_no_erased_one_is_refused(life):
    """A journal could else put a message of its own in the place of another one."""
    first = planned(life.path)[0]
    whole = record_at(life.path, first.phy_offset, len(first.data))
    assert erase_record(whole, first.phy_offset).data == first.data
    write_journal(FILES, life.path, SEGMENT, [Rewrite(first.phy_offset, whole)])
    with pytest.raises(CorruptError, match="erasing-record"):
        erasing.finish_erase(FILES, life.path)


def test_a_backup_of_the_journal_is_none(seglog: Seglog, life):
    first = planned(life.path)[0]
    (life.path / "seglog").mkdir(exist_ok=True)
    (life.path / f"{JOURNAL}.bak").write_bytes(encoded([first]))
    assert erasing.finish_erase(FILES, life.path) == 0
    assert seglog("erase", life.path, "nosuchkey", "--apply", "--yes").exit_code == NotFoundError.exit_code


def test_a_journal_that_claims_to_be_huge_is_not_read(life):
    (life.path / "seglog").mkdir(exist_ok=True)
    with (life.path / JOURNAL).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CorruptError, match="at most"):
        erasing.finish_erase(FILES, life.path)

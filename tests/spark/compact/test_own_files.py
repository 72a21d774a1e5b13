"""What a store keeps in seglog/ stays where it is true of the new log too, and else stays behind."""

from __future__ import annotations

import json

import pytest

from seglog.clock import VirtualClock
from seglog.errors import UnsupportedStoreError
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import old_store, work_folder
from seglog.spark.source.write.journal import Entry, Journal
from seglog.storage.files.files import RealFiles
from tests.support.local_runner import LocalRunner
from tests.support.material.compactions import fill_random

STAY = (
    "parked/00000000000000000000.jsonl",
    "receipts/dlq.jsonl",
    "offsets/00000000000000000001",
    "locks.json",
)
GO = ("attic/1-name", "stray/config/x")


@pytest.fixture
def filled(tmp_path):
    made = fill_random(tmp_path / "s", 7, 200)
    for name in (*STAY, *GO, "erased/17.json"):
        path = made.root / "seglog" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"said in": name}))
    return made


def compaction(filled):
    return Compaction(
        filled.root,
        {"Events": Policy(retention_bytes=3_000)},
        allow_undelivered=True,
        split_bytes=8_000,
        runner=LocalRunner(RealFiles()),
        clock=VirtualClock(filled.now_ms),
    )


def journal(filled):
    return Journal(RealFiles(), filled.root / "seglog" / "spark-writes" / "nightly.json", filled.root)


def test_what_is_said_of_queues_and_of_the_past_stays(filled):
    journal(filled).save(Entry(4096, 3).done())
    assert compaction(filled).apply().is_done
    for name in (*STAY, "erased/17.json"):
        assert json.loads((filled.root / "seglog" / name).read_text()) == {"said in": name}
        was, now = (root / "seglog" / name for root in (old_store(filled.root), filled.root))
        assert was.stat().st_mtime_ns == now.stat().st_mtime_ns
    assert journal(filled).load() == Entry(-1, 3)


def test_what_is_said_of_bytes_of_the_old_log_stays_with_it(filled):
    assert compaction(filled).apply().is_done
    for name in GO:
        assert not (filled.root / "seglog" / name).exists()
        assert (old_store(filled.root) / "seglog" / name).exists()
    assert not (filled.root / "seglog" / "recovery-point").exists()


def test_a_store_is_left_alone_in_which_a_write_was_interrupted(filled):
    journal(filled).save(Entry(4096, 3))
    with pytest.raises(UnsupportedStoreError, match=r"nightly\.json is of a job that was interrupted"):
        compaction(filled).apply()
    assert not work_folder(filled.root).exists()
    journal(filled).save(Entry(4096, 3).done())
    assert compaction(filled).apply().is_done

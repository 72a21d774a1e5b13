"""Each way to damage a store of a broker has a code of its own, whatever part of the store it hits."""

from __future__ import annotations

import json
import os
import shutil
import struct

import pytest

from seglog.doctor.check import check_store
from seglog.storage.finding_codes import CODES
from seglog.storage.format.compaction import compaction_sizes
from seglog.storage.seal_files import SEALS
from seglog.storage.segments import STAGED_SUFFIX
from seglog.storage.store import MessageStore
from tests.support import golden
from tests.support.mixed import fill_mixed
from tests.support.sealed import flip, sealed_store
from tests.support.stores import SMALL, SMALL_INDEX, fill, new_clock


def own(root):
    """A store of ours with tables of a broker."""
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        fill(store, 60)
    table(root, "topics.json", topicConfigTable={
        f"Topic{number}": {"readQueueNums": 4, "writeQueueNums": 4, "perm": 6} for number in range(2)
    })  # fmt: skip
    table(root, "consumerOffset.json", offsetTable={"Topic0@g": {"0": 3, "1": 15}})
    table(root, "delayOffset.json", offsetTable={"1": 0})
    return root


def sealed(root):
    sealed_store(root)
    return root


def mixed(root):
    fill_mixed(root, 60)
    return root


def compacted(root):
    table(root, "topics.json", topicConfigTable={"C": {"attributes": {"cleanup.policy": "COMPACTION"}}})
    options = {**SMALL, **SMALL_INDEX, "compaction_sizes": compaction_sizes(4000, 460)}
    with MessageStore.open(root, clock=new_clock(), **options) as store:
        for number in range(40):
            store.put("C", b"c" * 60, keys=f"k{number % 5}")
    return root


def real(root):
    """Everything that a broker keeps: timers, transactions, delay levels, filter data."""
    return golden.extract("real-conf", root.parent).rename(root)


def table(root, name, **values):
    (root / "config").mkdir(parents=True, exist_ok=True)
    (root / "config" / name).write_text(json.dumps({**values, "dataVersion": {}}))


def one(root, pattern):
    """The first file of that name."""
    return min(path for path in root.glob(pattern) if path.is_file())


def poke(path, position, data):
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def gone(pattern):
    return lambda root: one(root, pattern).unlink()


def gone_folder(name):
    return lambda root: shutil.rmtree(root / name)


def new(name, content=""):
    def damage(root):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)

    return damage


def new_folder(name):
    return lambda root: (root / name).mkdir(parents=True)


def cut(pattern, size):
    return lambda root: os.truncate(one(root, pattern), size)


def put(pattern, position, data):
    return lambda root: poke(one(root, pattern), position, data)


def flipped(pattern, position):
    return lambda root: flip(one(root, pattern), position)


def moved(name, target):
    return lambda root: (root / name).rename(root / target)


def offsets(**queues):
    return lambda root: table(root, "consumerOffset.json", offsetTable=queues)


def topics(**configs):
    return lambda root: table(root, "topics.json", topicConfigTable=configs)


def delays(offset):
    levels = {str(level): offset for level in range(1, 19)} if offset else {}
    return lambda root: table(root, "delayOffset.json", offsetTable=levels)


def timer(field, value):
    return put("config/timercheck", 8 * field, struct.pack(">q", value))


def half_a_table(root):
    shutil.copy(root / TOPICS, root / f"{TOPICS}.bak")
    os.truncate(root / TOPICS, 20)


def folder_for_file(root):
    (root / "checkpoint").unlink()
    (root / "checkpoint").mkdir()


def behind_the_log(root):
    path = max((root / "commitlog").iterdir())
    poke(path, path.stat().st_size - 100, b"once was here")


def no_filter_data(root):
    for path in root.glob("consumequeue_ext/*/*/0*"):
        path.write_bytes(bytes(path.stat().st_size))


STAGED = f"0{STAGED_SUFFIX}"
OFFSETS = "config/consumerOffset.json"
EXT = "consumequeue_ext/TopicX/1"


def wheel_slot(root):
    """Sends the first slot in use to a place without unit."""
    path = root / "timerwheel"
    content = path.read_bytes()
    for at in range(0, len(content), 32):
        if struct.unpack_from(">q", content, at)[0] > 0:
            poke(path, at + 16, struct.pack(">q", 7))
            break
    timer(0, 0)(root)


LOG = "commitlog/*"
FIRST_LOG, NEXT_LOG = f"commitlog/{0:020d}", f"commitlog/{4096:020d}"
QUEUE = "consumequeue/Topic0/0"
TOPICS = "config/topics.json"
KEPT = f"compaction/compactionLog/C/0/compacting/{0:020d}"
ENTRY_AT = 40 + 4 * 50 + 3 * 20
"""Of the third entry of an index file of 50 slots."""

DAMAGES = {
    "a bit in a body": (own, flipped(LOG, 100), {"log-hole"}),
    "the log": (own, gone_folder("commitlog"), {"log-empty"}),
    "a file of the log": (own, gone(NEXT_LOG), {"log-file-missing"}),
    "a foreign file in the log": (own, new("commitlog/x.bak"), {"log-file-stray"}),
    "bytes behind the log": (own, behind_the_log, {"log-behind-end"}),
    "a folder in the log": (own, new_folder("commitlog/old"), {"stray"}),
    "a short file of the log": (own, cut(FIRST_LOG, 4000), {"log-file-size"}),
    "a pipe in the log": (own, lambda root: os.mkfifo(root / f"commitlog/{1 << 20:020d}"), {"file-kind"}),
    "a queue": (own, gone_folder(QUEUE), {"queue-missing"}),
    "a unit": (own, put(f"{QUEUE}/*", 20, bytes(20)), {"queue-short"}),
    "the tag of a unit": (own, put(f"{QUEUE}/*", 32, b"\1"), {"queue-unit-wrong"}),
    "a foreign file in a queue": (own, new(f"{QUEUE}/x"), {"queue-file-stray"}),
    "a foreign file beside queues": (own, new("consumequeue/Topic0/x"), {"stray"}),
    "a queue file of a killed writer": (own, new(f"consumequeue/Topic0/{STAGED}"), {"leftover"}),
    "the index": (own, gone_folder("index"), {"index-missing"}),
    "a begin time of the index": (own, flipped("index/*", 7), {"index-damaged"}),
    "an end time of the index": (own, flipped("index/*", 15), {"index-damaged"}),
    "a count of slots of the index": (own, flipped("index/*", 35), {"index-damaged"}),
    "slots of the index": (own, put("index/*", 40, struct.pack(">50i", *range(50))), {"index-damaged"}),
    "a hash in the index": (own, flipped("index/*", ENTRY_AT + 3), {"record-keys", "index-damaged"}),
    "a place in the index": (own, flipped("index/*", ENTRY_AT + 8), {"index-short", "index-entry-stray"}),
    "a time in the index": (own, flipped("index/*", ENTRY_AT + 15), {"index-damaged"}),
    "a chain of the index": (own, flipped("index/*", ENTRY_AT + 19), {"index-damaged"}),
    "a foreign file in the index": (own, new("index/x"), {"index-file-stray"}),
    "the checkpoint": (own, gone("checkpoint"), {"checkpoint-missing"}),
    "a short checkpoint": (own, cut("checkpoint", 100), {"checkpoint-size"}),
    "a checkpoint of tomorrow": (own, put("checkpoint", 0, b"\1"), {"checkpoint-ahead"}),
    "a checkpoint that is a folder": (own, folder_for_file, {"file-kind", "file-unreadable"}),
    "an abort file": (own, new("abort"), {"not-closed"}),
    "a foreign file": (own, new("notes.txt"), {"stray"}),
    "a foreign folder": (own, new_folder("old"), {"stray"}),
    "half a table, and no backup": (own, cut(TOPICS, 20), {"config-lost"}),
    "half a table": (own, half_a_table, {"config-damaged"}),
    "a table that was being written": (own, moved(TOPICS, f"{TOPICS}.bak"), {"config-backup-only"}),
    "a list for a table": (own, new("config/delayOffset.json", "[1]"), {"config-shape"}),
    "offsets that are a list": (own, new(OFFSETS, '{"offsetTable":[1]}'), {"config-shape"}),
    "a negative offset": (own, offsets(**{"Topic0@g": {"0": -7}}), {"config-shape"}),
    "a key without group": (own, offsets(Topic0={"0": 1}), {"config-shape"}),
    "topics that are numbers": (own, topics(Topic0=1, Topic1={"perm": "x"}), {"config-shape"}),
    "an offset behind the queue": (own, offsets(**{"Topic0@g": {"0": 99}}), {"offset-beyond-queue"}),
    "an offset in no queue": (own, offsets(**{"Gone@g": {"0": 9}}), {"offset-without-queue"}),
    "fewer queues than there were": (own, topics(Topic0={"readQueueNums": 1}), {"queue-beyond-topic"}),
    "a topic of another kind": (mixed, topics(B={}, P={}), {"queue-kind"}),
    "units of a batch queue": (mixed, put("batchconsumequeue/B/0/*", 46, bytes(46)), {"queue-short"}),
    "a unit of an LMQ queue": (mixed, put("consumequeue/%LMQ%a/0/*", 20, bytes(20)), {"queue-short"}),
    "rights": (own, lambda root: (root / "checkpoint").chmod(0o400), {"file-permission"}),
    "the recovery point": (own, new("seglog/recovery-point", "?"), {"own-damaged"}),
    "the list of holes": (own, new("seglog/holes", "{"), {"own-damaged"}),
    "what was cut off": (own, new("seglog/attic/1-commitlog-0", "x"), {"attic"}),
    "a bit behind sealed records": (sealed, flipped(LOG, (256 << 10) - 1), {"seal-rot-unused"}),
    "a bit in a sealed record": (sealed, flipped(LOG, 100), {"log-hole", "seal-rot"}),
    "a seal": (sealed, gone(f"{SEALS}/*"), {"seal-missing"}),
    "a bit in a seal": (sealed, flipped(f"{SEALS}/*", 50), {"seal-unreadable"}),
    "the own log of a compaction": (compacted, gone_folder("compaction"), {"compaction-missing"}),
    "units of a compaction": (compacted, put("compaction/*Cq/C/0/*", 0, bytes(460)), {"compaction-damaged"}),
    "a compaction that did not finish": (compacted, new(KEPT), {"compaction-leftover"}),
    "a queue file of a compaction": (compacted, gone("compaction/compactionCq/C/0/*"), {"compaction-pair"}),
    "a short file of a compaction": (compacted, cut("compaction/*Cq/C/0/*", 46), {"compaction-file"}),
    "a message of a compaction": (compacted, flipped("compaction/*Log/C/0/*", 95), {"compaction-damaged"}),
    "timercheck": (real, gone("config/timercheck"), {"timer-check-missing"}),
    "a short timercheck": (real, cut("config/timercheck", 56), {"timer-check-size"}),
    "a queue offset of the timer": (real, timer(2, 1 << 40), {"timer-check-ahead"}),
    "a place of the timer": (real, timer(1, 1 << 40), {"timer-check-ahead"}),
    "the timer wheel": (real, gone("timerwheel"), {"timer-wheel-missing"}),
    "a short timer wheel": (real, cut("timerwheel", 320), {"timer-wheel-size"}),
    "a slot of the timer wheel": (real, wheel_slot, {"timer-slot-wrong"}),
    "a unit of the timer log": (real, put("timerlog/*", 52, bytes(52)), {"timer-log-damaged"}),
    "a place in the timer log": (real, put("timerlog/*", 28, struct.pack(">q", 5)), {"timer-unit-stray"}),
    "a foreign file in the timer log": (real, new("timerlog/x"), {"timer-log-file"}),
    "delay offsets behind their queues": (real, delays(1 << 30), {"delay-offset-beyond"}),
    "delay offsets": (real, delays(0), {"delay-offset-missing"}),
    "filter data": (real, no_filter_data, {"ext-missing"}),
    "a foreign file in filter data": (real, new(f"{EXT}/x"), {"ext-file"}),
}
"""What is damaged: the store, how, and the codes that tell of it (among others that follow from it)."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Each kind of store, made and checked once: its folder, and the report."""
    made = {}

    def get(make):
        if make not in made:
            root = make(tmp_path_factory.mktemp(make.__name__) / "store")
            made[make] = root, check_store(root)
        return made[make]

    return get


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_has_a_code_and_nothing_is_written(name, stores, tmp_path):
    make, damage, expected = DAMAGES[name]
    root = tmp_path / "store"
    whole, report = stores(make)
    shutil.copytree(whole, root)
    damage(root)
    digest = None if name == "a pipe in the log" else golden.tree_digest(root)
    found = {finding.code for finding in check_store(root).findings}
    assert expected <= found - {finding.code for finding in report.findings}
    if digest is not None:
        assert golden.tree_digest(root) == digest


@pytest.mark.parametrize("make", [own, sealed, mixed, compacted, real])
def test_undamaged_these_stores_are_clean(make, stores):
    _root, report = stores(make)
    assert report.is_clean, [str(finding) for finding in report.findings]


def test_half_messages_that_nobody_settled_and_op_records_of_none(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        for _ in range(3):
            store.put("RMQ_SYS_TRANS_HALF_TOPIC", b"half")
        store.put("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"0,9,", tags="d")
    told = {finding.code: finding.messages for finding in check_store(root).findings}
    assert told == {"half-pending": 2, "op-beyond-half": 1}


def test_groups_behind_what_retention_took_missed_messages(tmp_path):
    root = own(tmp_path / "store")
    (root / "commitlog" / f"{0:020d}").unlink()
    report = check_store(root)
    (finding,) = [finding for finding in report.findings if finding.code == "offset-below-queue"]
    lag = next(lag for lag in report.lags if lag.queue_id == 0)
    assert (lag.offset, lag.missed) == (3, finding.messages)
    assert lag.lag == lag.max_offset - lag.min_offset


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else_is_told_once_for_its_folder(tmp_path):
    root = own(tmp_path / "store")
    for path in (root / "commitlog").iterdir():
        os.chown(path, 12345, -1)
    (finding,) = [finding for finding in check_store(root).findings if finding.code == "file-owner"]
    assert finding.file == f"commitlog/{0:020d}"
    assert "more in this folder" in finding.found


def test_every_code_that_is_no_older_one_has_a_damage_here():
    shown = set().union(*(expected for _make, _damage, expected in DAMAGES.values()))
    elsewhere = {
        # by the survey, verify and open, which have tests of their own
        "log-torn-tail", "log-tail-lost", "messages-lost", "tombstones", "log-spare", "log-block-changed",
        "recovery-point-unused", "seal-stale", "record-queue-offset", "topic-name", "queue-beyond-log",
        "queue-unit-stray", "queue-gap", "queue-file-size", "queue-deleted", "checkpoint-behind",
        # in this folder
        "in-use", "file-owner", "half-pending", "op-beyond-half", "offset-below-queue",
        "delay-offset-below",
    }  # fmt: skip
    assert shown | elsewhere == CODES.keys()
    assert not shown & elsewhere

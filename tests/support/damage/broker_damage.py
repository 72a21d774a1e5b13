"""Stores with everything that a broker keeps, and ways to damage each part of them, by name.

``DAMAGES`` says of each which store it is done to, what is done, and the codes that report it (among others
that follow from it).
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

from seglog.storage.files.files import RealFiles
from seglog.storage.format.checkpoint import CHECKPOINT
from seglog.storage.format.queue.compaction import compaction_sizes, encode_positions
from seglog.storage.format.record.record import MAGIC_BLANK
from seglog.storage.format.record.tombstone import LostRecord, encode_fillers, encode_tombstone
from seglog.storage.seals.seal_files import SEALS
from seglog.storage.segments.segments import STAGED_SUFFIX
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.mixed import fill_mixed
from tests.support.material.sealed import flip, sealed_store
from tests.support.material.stores import QUEUE_FILE_BYTES, SEGMENT_BYTES, SMALL_INDEX, fill, new_clock

Damage = Callable[[Path], object]


def small_store(root: Path, *, record_crc: bool = True) -> MessageStore:
    """Opens a store of small files; their lengths are those of ``SMALL`` and ``SMALL_INDEX``."""
    return MessageStore.open(
        root,
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=QUEUE_FILE_BYTES,
        index_geometry=SMALL_INDEX["index_geometry"],
        compaction_sizes=compaction_sizes(4000, 460),
        record_crc=record_crc,
        clock=new_clock(),
    )


def own(root: Path) -> Path:
    """A store of ours with tables of a broker."""
    with small_store(root) as store:
        fill(store, 60)
    table(root, "topics.json", topicConfigTable={
        f"Topic{number}": {"readQueueNums": 4, "writeQueueNums": 4, "perm": 6} for number in range(2)
    })  # fmt: skip
    table(root, "consumerOffset.json", offsetTable={"Topic0@g": {"0": 3, "1": 15}})
    table(root, "delayOffset.json", offsetTable={"1": 0})
    return root


def given_up(root: Path) -> None:
    """Leaves what an opening did that knew no mends: a tombstone, and the record in the attic."""
    found = survey(root, RealFiles())
    row = found.rows[len(found.rows) // 2]
    place, size = int(row["phy_offset"]), int(row["size_bytes"])
    topic, queue_id = found.scan.queues.names[int(row["queue"])]
    lost = LostRecord(topic, queue_id, int(row["queue_offset"]), place, size)
    path = root / "commitlog" / f"{place - place % SEGMENT_BYTES:020d}"
    content = bytearray(path.read_bytes())
    start = place % SEGMENT_BYTES
    record = bytes(content[start : start + size])
    content[start : start + size] = encode_tombstone(lost, int(row["store_timestamp_ms"]), record_crc=True)
    path.write_bytes(content)
    attic = root / "seglog" / "attic"
    attic.mkdir(parents=True)
    (attic / f"1700000000000-commitlog-{place:020d}").write_bytes(b"\x5a" + record[1:])


def sealed(root: Path) -> Path:
    sealed_store(root)
    return root


def mixed(root: Path) -> Path:
    fill_mixed(root, 60)
    return root


def compacted(root: Path) -> Path:
    table(root, "topics.json", topicConfigTable={"C": {"attributes": {"cleanup.policy": "COMPACTION"}}})
    with small_store(root) as store:
        for number in range(40):
            store.put("C", b"c" * 60, keys=f"k{number % 5}")
    return root


def compacted_once(root: Path) -> Path:
    """The same, after a compaction that found nothing to drop: names may have gaps now."""
    compacted(root)
    (root / "compaction" / "position-checkpoint").write_text(encode_positions({("C", 0): 26}))
    return root


def real(root: Path) -> Path:
    """Everything that a broker keeps: timers, transactions, delay levels, filter data."""
    return golden.extract("real-conf", root.parent).rename(root)


def table(root: Path, name: str, **values: object) -> None:
    (root / "config").mkdir(parents=True, exist_ok=True)
    (root / "config" / name).write_text(json.dumps({**values, "dataVersion": {}}))


def one(root: Path, pattern: str) -> Path:
    """The first file of that name."""
    return min(path for path in root.glob(pattern) if path.is_file())


def poke(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def gone(pattern: str) -> Damage:
    return lambda root: one(root, pattern).unlink()


def gone_folder(name: str) -> Damage:
    return lambda root: shutil.rmtree(root / name)


def new(name: str, content: str = "") -> Damage:
    def damage(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)

    return damage


def new_folder(name: str) -> Damage:
    return lambda root: (root / name).mkdir(parents=True)


def cut(pattern: str, size: int) -> Damage:
    return lambda root: os.truncate(one(root, pattern), size)


def put(pattern: str, position: int, data: bytes) -> Damage:
    return lambda root: poke(one(root, pattern), position, data)


def flipped(pattern: str, position: int) -> Damage:
    return lambda root: flip(one(root, pattern), position)


def moved(name: str, target: str) -> Damage:
    return lambda root: (root / name).rename(root / target)


def offsets(**queues: object) -> Damage:
    return lambda root: table(root, "consumerOffset.json", offsetTable=queues)


def topics(**configs: object) -> Damage:
    return lambda root: table(root, "topics.json", topicConfigTable=configs)


def delays(offset: int) -> Damage:
    levels = {str(level): offset for level in range(1, 19)} if offset else {}
    return lambda root: table(root, "delayOffset.json", offsetTable=levels)


def timer(field: int, value: int) -> Damage:
    return put("config/timercheck", 8 * field, struct.pack(">q", value))


def gone_with_backup(name: str) -> Damage:
    def damage(root: Path) -> None:
        for path in (root / name, root / f"{name}.bak"):
            path.unlink(missing_ok=True)

    return damage


def emptied(name: str) -> Damage:
    def damage(root: Path) -> None:
        for path in (root / name, root / f"{name}.bak"):
            path.write_bytes(b"")

    return damage


def half_a_table(root: Path) -> None:
    shutil.copy(root / TOPICS, root / f"{TOPICS}.bak")
    os.truncate(root / TOPICS, 20)


def folder_for_file(root: Path) -> None:
    (root / "checkpoint").unlink()
    (root / "checkpoint").mkdir()


def backed_up_epochs(root: Path) -> None:
    (root / "epochFileCheckpoint").write_text("1\n7\n1-0\n")
    (root / "epochFileCheckpoint.bak").write_text("1\n0\n1-0\n")


def unconfirmed(root: Path) -> None:
    (root / "epochFileCheckpoint").write_text("1\n0\n1-0\n")
    poke(root / "checkpoint", CHECKPOINT.struct.size - 2 * 8, (1).to_bytes(8, "big"))


def behind_the_log(root: Path) -> None:
    path = max((root / "commitlog").iterdir())
    poke(path, path.stat().st_size - 100, b"once was here")


def no_filter_data(root: Path) -> None:
    for path in root.glob("consumequeue_ext/*/*/0*"):
        path.write_bytes(bytes(path.stat().st_size))


def plain(root: Path) -> Path:
    """A store whose records have no checksum but their bodies', as RocketMQ writes them by default."""
    with small_store(root, record_crc=False) as store:
        fill(store, 60)
    return root


def record(root: Path, number: int) -> tuple[Path, int, bytes]:
    """The file, the place in it and the bytes of a record of the first queue."""
    unit = one(root, f"{QUEUE}/*").read_bytes()[20 * number : 20 * number + 12]
    phy_offset, size = struct.unpack(">qi", unit)
    path = root / f"commitlog/{phy_offset - phy_offset % 4096:020d}"
    return path, phy_offset % 4096, path.read_bytes()[phy_offset % 4096 :][:size]


def queue_offset(number: int, value: int) -> Damage:
    """Gives a record of the first queue another offset."""

    def damage(root: Path) -> None:
        path, at, _data = record(root, number)
        poke(path, at + 20, struct.pack(">q", value))

    return damage


def no_record(root: Path) -> None:
    """Takes a message out of the log as if it had never been, and its unit from the queue."""
    path, at, data = record(root, 3)
    (filler,) = encode_fillers(path_offset(path) + at, len(data), 1_700_000_000_000, record_crc=False)
    poke(path, at, filler)
    poke(one(root, f"{QUEUE}/*"), 20 * 3, bytes(20))


def other_records(root: Path) -> None:
    """Puts other records in the place of a file of the log: some that no queue leads to."""
    path = root / NEXT_LOG
    size = path.stat().st_size
    fillers = encode_fillers(path_offset(path), size - 1000, 1_700_000_000_000, record_crc=False)
    blank = struct.pack(">iI", 1000, MAGIC_BLANK)
    path.write_bytes(b"".join([*fillers, blank]).ljust(size, b"\0"))


def path_offset(path: Path) -> int:
    """The physical offset that a file's name states."""
    return int(path.name)


def foreign_unit(root: Path) -> None:
    """Leads a unit after the last one of a queue to a message of another queue."""
    units = one(root, "consumequeue/Topic1/1/*").read_bytes()[:20]
    path = max((root / QUEUE).iterdir())
    poke(path, len(path.read_bytes().rstrip(b"\0")) // 20 * 20 + 20, units)


def other_queue(root: Path) -> None:
    """Adds a queue of a topic that nothing knows, whose units lead behind the log."""
    folder = root / "consumequeue" / "Elsewhere" / "0"
    folder.mkdir(parents=True)
    units = b"".join(struct.pack(">qiq", (1 << 30) + 200 * number, 200, 0) for number in range(5))
    (folder / f"{0:020d}").write_bytes(units.ljust(QUEUE_FILE_BYTES, b"\0"))


STAGED = f"0{STAGED_SUFFIX}"
OFFSETS = "config/consumerOffset.json"
EXT = "consumequeue_ext/TopicX/1"


def wheel_slot(root: Path) -> None:
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


def last_copy_gone(root: Path) -> None:
    path = max((root / "compaction/compactionLog/C/0").iterdir())
    poke(path, 0, bytes(200))


KEPT = f"compaction/compactionLog/C/0/compacting/{0:020d}"
LATER = f"{2 * compaction_sizes(4000, 460).log_bytes:020d}"
"""The third pair of files of a compaction topic."""
ENTRY_AT = 40 + 4 * 50 + 3 * 20
"""Of the third entry of an index file of 50 slots."""


def swapped_names(root: Path) -> None:
    """Gives the first two files of the log each other's name."""
    first, second = sorted((root / "commitlog").iterdir())[:2]
    held = first.with_name("held")
    first.rename(held)
    second.rename(first)
    held.rename(second)


def next_queue_file(root: Path) -> None:
    """Makes the next file of a queue, all zeros, as a power loss may leave it."""
    last = max((root / QUEUE).iterdir())
    (last.parent / f"{int(last.name) + QUEUE_FILE_BYTES:020d}").write_bytes(bytes(QUEUE_FILE_BYTES))


DAMAGES: Final[dict[str, tuple[Callable[[Path], Path], Damage, set[str]]]] = {
    "a bit in a body": (own, flipped(LOG, 100), {"record-repairable"}),
    "bytes of a record": (own, put(LOG, 4, bytes(96)), {"log-hole"}),
    "the log": (own, gone_folder("commitlog"), {"log-empty"}),
    "a file of the log": (own, gone(NEXT_LOG), {"log-file-missing"}),
    "a foreign file in the log": (own, new("commitlog/x.bak"), {"log-file-stray"}),
    "bytes behind the log": (own, behind_the_log, {"log-behind-end"}),
    "names of files of the log": (own, swapped_names, {"log-file-misnamed"}),
    "a file of another log": (own, other_records, {"log-file-foreign"}),
    "a folder in the log": (own, new_folder("commitlog/old"), {"stray"}),
    "a short file of the log": (own, cut(FIRST_LOG, 4000), {"log-file-size"}),
    "a pipe in the log": (own, lambda root: os.mkfifo(root / f"commitlog/{1 << 20:020d}"), {"file-kind"}),
    "a queue": (own, gone_folder(QUEUE), {"queue-missing"}),
    "a unit": (own, put(f"{QUEUE}/*", 20, bytes(20)), {"queue-short"}),
    "an address in a unit": (own, put(f"{QUEUE}/*", 32, b"\x80"), {"ext-missing"}),
    "the tag of a unit": (own, put(f"{QUEUE}/*", 32, b"\1"), {"queue-unit-wrong"}),
    "a bit in an offset of a record": (plain, queue_offset(3, 3 | 1 << 40), {"record-queue-offset"}),
    "an offset of a record": (plain, queue_offset(3, 0x1234567812345678), {"record-queue-offset"}),
    "a record, and its unit": (plain, no_record, {"queue-gap"}),
    "a unit behind the queue": (own, foreign_unit, {"queue-unit-stray"}),
    "a queue file that was made ahead": (own, next_queue_file, {"queue-file-empty"}),
    "a foreign file in a queue": (own, new(f"{QUEUE}/x"), {"queue-file-stray"}),
    "a queue of another store": (own, other_queue, {"queue-stray"}),
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
    "a checkpoint that is a folder": (own, folder_for_file, {"file-kind"}),
    "the epochs of controller mode": (own, new("epochFileCheckpoint", "1\n7\n1-0\n"), {"epoch-damaged"}),
    "an epoch of tomorrow": (own, new("epochFileCheckpoint", "1\n0\n1-99999999\n"), {"epoch-beyond-log"}),
    "epochs of which the backup is whole": (own, backed_up_epochs, {"epoch-backup-only"}),
    "a log that replicas did not confirm": (own, unconfirmed, {"epoch-tail"}),
    "an abort file": (own, new("abort"), {"not-closed"}),
    "a foreign file": (own, new("notes.txt"), {"stray"}),
    "a foreign folder": (own, new_folder("old"), {"stray"}),
    "half a table, and no backup": (own, cut(TOPICS, 20), {"config-lost"}),
    "half a table": (own, half_a_table, {"config-damaged"}),
    "an empty table and an empty backup": (own, emptied(TOPICS), {"config-lost"}),
    "the topics of a broker": (real, gone_with_backup(TOPICS), {"config-lost"}),
    "the delay offsets of a broker": (
        real,
        gone_with_backup("config/delayOffset.json"),
        {"delay-offset-missing"},
    ),
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
    "a record that was given up": (own, given_up, {"attic", "attic-record"}),
    "a bit behind sealed records": (sealed, flipped(LOG, (256 << 10) - 1), {"seal-rot-unused"}),
    "a bit in a sealed record": (sealed, flipped(LOG, 100), {"record-repairable", "seal-rot"}),
    "a seal": (sealed, gone(f"{SEALS}/*"), {"seal-missing"}),
    "a bit in a seal": (sealed, flipped(f"{SEALS}/*", 50), {"seal-unreadable"}),
    "the own log of a compaction": (compacted, gone_folder("compaction"), {"compaction-missing"}),
    "units of a compaction": (compacted, put("compaction/*Cq/C/0/*", 0, bytes(460)), {"compaction-damaged"}),
    "a compaction that did not finish": (compacted, new(KEPT), {"compaction-leftover"}),
    "a queue file of a compaction": (compacted, gone("compaction/compactionCq/C/0/*"), {"compaction-pair"}),
    "a short file of a compaction": (compacted, cut("compaction/*Cq/C/0/*", 46), {"compaction-file"}),
    "a message of a compaction": (compacted, flipped("compaction/*Log/C/0/*", 95), {"compaction-damaged"}),
    "a pair of a compacted topic": (
        compacted_once,
        gone(f"compaction/compactionLog/C/0/*{LATER}"),
        {"compaction-pair"},
    ),
    "units of a compacted topic": (
        compacted_once,
        put(f"compaction/compactionCq/C/0/*{LATER}", 92, bytes(460 - 92)),
        {"compaction-damaged"},
    ),
    "a message of a compacted topic": (
        compacted_once,
        flipped(f"compaction/compactionLog/C/0/*{LATER}", 95),
        {"compaction-damaged"},
    ),
    "how far a topic was compacted": (
        compacted_once,
        cut("compaction/position-checkpoint", 9),
        {"config-damaged"},
    ),
    "a copy of a compaction": (compacted, last_copy_gone, {"compaction-damaged"}),
    "a backup of positions": (compacted, new("compaction/position-checkpoint.bak", "{"), {"config-damaged"}),
    "a foreign file among compactions": (compacted, new("compaction/x"), {"stray"}),
    "metrics of the timer": (real, cut("config/timermetrics", 20), {"config-damaged"}),
    "the first file of the timer log": (real, gone("timerlog/*"), {"timer-slot-wrong"}),
    "timercheck": (real, gone("config/timercheck"), {"timer-check-missing"}),
    "a short timercheck": (real, cut("config/timercheck", 56), {"timer-check-size"}),
    "a queue offset of the timer": (real, timer(2, 1 << 40), {"timer-check-ahead"}),
    "a place of the timer": (real, timer(1, 1 << 40), {"timer-check-ahead"}),
    "the timer wheel": (real, gone("timerwheel"), {"timer-wheel-missing"}),
    "a short timer wheel": (real, cut("timerwheel", 320), {"timer-wheel-size"}),
    "an empty timer wheel": (real, cut("timerwheel", 0), {"timer-wheel-missing"}),
    "a slot of the timer wheel": (real, wheel_slot, {"timer-slot-wrong"}),
    "a unit of the timer log": (real, put("timerlog/*", 52, bytes(52)), {"timer-log-damaged"}),
    "a place in the timer log": (real, put("timerlog/*", 28, struct.pack(">q", 5)), {"timer-unit-stray"}),
    "a file of the timer log": (real, gone("timerlog/*"), {"timer-slot-wrong"}),
    "a foreign file in the timer log": (real, new("timerlog/x"), {"timer-log-file"}),
    "delay offsets behind their queues": (real, delays(1 << 30), {"delay-offset-beyond"}),
    "delay offsets": (real, delays(0), {"delay-offset-missing"}),
    "filter data": (real, no_filter_data, {"ext-missing"}),
    "a time in filter data": (real, put(f"{EXT}/*", 11, b"\1"), {"ext-wrong"}),
    "a tag in filter data": (real, put(f"{EXT}/*", 8, b"\1"), {"ext-wrong"}),
    "a foreign file in filter data": (real, new(f"{EXT}/x"), {"ext-file"}),
}

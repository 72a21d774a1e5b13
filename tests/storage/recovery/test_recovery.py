"""After a crash or damage every intact message is served at its old offset, and writing goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.small_files.attic import iter_kept
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.damage.images import Image, in_segment, last_end, made, remove, shorten, slots, torn
from tests.support.material.golden import tree_digest
from tests.support.material.records import Record
from tests.support.material.stores import (
    QUEUE_FILE_BYTES,
    SEGMENT_BYTES,
    SMALL,
    copy_store,
    new_clock,
    read_all,
)

COUNT = 100
ALL = range(COUNT)
FIRST = f"{0:020d}"


@pytest.fixture(scope="module")
def original(module_folders):
    folder = module_folders.mktemp("original")
    with MessageStore.open(folder / "store", clock=new_clock(), **SMALL) as store:
        puts = [store.put("T", b"%d " % slot + bytes(range(60))) for slot in ALL]
        root = copy_store(store.path, folder / "killed")
    return Image(root, [put.phy_offset for put in puts], [put.size_bytes for put in puts])


@pytest.fixture
def image(original, memory_path: Path):
    return Image(copy_store(original.root, memory_path / "store"), original.starts, original.sizes)


def without(*lost: int) -> list[int]:
    return [slot for slot in ALL if slot not in lost]


# name: (damage to the image, slots that must survive)
CRASHES = {
    "nothing": (lambda _image: None, ALL),
    "torn last record, half of it": (lambda i: torn(i, 99, i.sizes[99] // 2), without(99)),
    "torn last record, all but two bytes": (lambda i: torn(i, 99, i.sizes[99] - 2), without(99)),
    "torn last record, its size only": (lambda i: torn(i, 99, 4), without(99)),
    "last three records gone": (lambda i: [torn(i, slot, 0) for slot in (97, 98, 99)], range(97)),
    "garbage behind the end": (lambda i: i.write(i.end, b"\xaa" * 100), ALL),
    "half a head behind the end": (lambda i: i.write(i.end, i.record(0)[:50]), ALL),
    "record of another place behind the end": (lambda i: i.write(i.end, i.record(0)), ALL),
    "older record of this place behind a torn one": (
        lambda i: (torn(i, 99, 8), i.write(i.end, i.stale(i.end, 1000, 5))), without(99),
    ),
    "older record with a later offset behind a torn one": (
        lambda i: (torn(i, 99, 8), i.write(i.end, i.stale(i.end, 1000, 200))), without(99),
    ),
    "record whose offset was given already behind a torn one": (
        lambda i: (torn(i, 99, 8), i.write(i.end, i.stale(i.end, -1000, 50))), without(99),
    ),
    "spare segment": (lambda i: (i.root / "commitlog" / f"{50 * SEGMENT_BYTES:020d}").write_bytes(
        bytes(SEGMENT_BYTES)), ALL),
    "empty last segment file": (lambda i: (i.root / "commitlog" / f"{4 * SEGMENT_BYTES:020d}").touch(), ALL),
    "last segment cut behind its data": (
        lambda i: shorten(i.segment(i.end), i.end % SEGMENT_BYTES + 10), ALL,
    ),
    "last segment cut within a record": (
        lambda i: shorten(i.segment(i.end), i.end % SEGMENT_BYTES - 10), without(99),
    ),
    "no queue directory": (lambda i: remove(i.root / "consumequeue"), ALL),
    "no first queue file": (lambda i: remove(i.queue_file(0)), ALL),
    "no middle queue file": (lambda i: remove(i.queue_file(4)), ALL),
    "no last queue file": (lambda i: remove(i.queue_file(9)), ALL),
    "queue file of zeros": (lambda i: i.queue_file(5).write_bytes(bytes(QUEUE_FILE_BYTES)), ALL),
    "queue file of garbage": (lambda i: i.queue_file(5).write_bytes(b"\x5a" * QUEUE_FILE_BYTES), ALL),
    "queue file of no length": (lambda i: i.queue_file(5).write_bytes(b""), ALL),
    "queue file cut within a unit": (lambda i: shorten(i.queue_file(5), 47), ALL),
    "queue file too long": (lambda i: i.queue_file(5).write_bytes(bytes(2 * QUEUE_FILE_BYTES)), ALL),
    "queue file made ahead, empty": (lambda i: i.queue_file(10).write_bytes(bytes(QUEUE_FILE_BYTES)), ALL),
    "queue file made ahead, of no length": (lambda i: i.queue_file(10).touch(), ALL),
    "queue file far ahead": (lambda i: i.queue_file(10**14).write_bytes(bytes(QUEUE_FILE_BYTES)), ALL),
    "queue file far ahead with units": (
        lambda i: shutil.copy(i.queue_file(3), i.queue_file(10**14)), ALL,
    ),
    "units behind the log's end": (
        lambda i: i.queue_file(10).write_bytes((b"\0" * 6 + b"\1\1\0\0\0\x70" + bytes(8)) * 10), ALL,
    ),
    "units that were swapped": (lambda i: shutil.copy(i.queue_file(3), i.queue_file(5)), ALL),
    "file of a new queue, still empty": (
        lambda i: (made(i.queue_file(0).parents[1] / "1") / FIRST).write_bytes(bytes(QUEUE_FILE_BYTES)), ALL,
    ),
    "directory of a new queue, still empty": (lambda i: made(i.root / "consumequeue" / "T" / "1"), ALL),
    "no checkpoint": (lambda i: remove(i.root / "checkpoint"), ALL),
    "checkpoint of no length": (lambda i: (i.root / "checkpoint").write_bytes(b""), ALL),
    "checkpoint from the far future": (lambda i: (i.root / "checkpoint").write_bytes(b"\x7f" * 4096), ALL),
    "no abort file": (lambda i: remove(i.root / "abort"), ALL),
    "no lock file": (lambda i: remove(i.root / "lock"), ALL),
    "index of garbage": (
        lambda i: (made(i.root / "index") / "20261121074948687").write_bytes(b"\x5a" * 42040), ALL,
    ),
}  # fmt: skip

MENDED = {
    "flip in a body": (lambda i: i.flip(i.starts[40] + 90), without(40)),
    "flip in a magic": (lambda i: i.flip(i.starts[40] + 7), without(40)),
    "flip in a size": (lambda i: i.flip(i.starts[40] + 3), without(40)),
    "flip in the top bit of a size": (lambda i: i.flip(i.starts[40], 0x80), without(40)),
    "flip in a large bit of a size": (lambda i: i.flip(i.starts[40], 0x20), without(40)),
    "flip in a queue offset": (lambda i: i.flip(i.starts[40] + 20, 0x40), without(40)),
    "flip in a place": (lambda i: i.flip(i.starts[40] + 35), without(40)),
    "flip in a topic": (lambda i: i.flip(i.starts[40] + 88 + 63 + 1), without(40)),
    "flip in the first record": (lambda i: i.flip(i.starts[0] + 90), without(0)),
    "flips in two neighbours": (lambda i: [i.flip(i.starts[s] + 90) for s in (40, 41)], without(40, 41)),
    "flips far apart": (lambda i: [i.flip(i.starts[s] + 90) for s in (3, 50, 97)], without(3, 50, 97)),
}  # fmt: skip
"""Damage that a checksum undoes: readers step over the record, opening for write mends it."""

DAMAGES = {
    "garbage in a body": (lambda i: i.rot(i.starts[40] + 90), without(40)),
    "garbage in two neighbours": (
        lambda i: [i.rot(i.starts[s] + 90) for s in (40, 41)], without(40, 41),
    ),
    "garbage far apart": (
        lambda i: [i.rot(i.starts[s] + 90) for s in (3, 50, 97)], without(3, 50, 97),
    ),
    "record of zeros": (lambda i: torn(i, 40, 0), without(40)),
    "three records of zeros": (lambda i: [torn(i, s, 0) for s in (40, 41, 42)], without(40, 41, 42)),
    "record of garbage": (lambda i: i.write(i.starts[40], b"\x5a" * i.sizes[40]), without(40)),
    "one record written twice over the next": (
        lambda i: i.write(i.starts[41], i.record(40)), without(41),
    ),
    "filler of zeros": (lambda i: i.write(last_end(i, 0), bytes(8)), ALL),
    "filler of garbage": (lambda i: i.write(last_end(i, 0), b"\x5a" * 8), ALL),
    "filler with another length": (lambda i: i.flip(last_end(i, 0) + 3), ALL),
}  # fmt: skip

WHOLE_FILES = {
    "no middle segment": (lambda i: remove(i.segment(SEGMENT_BYTES)), [1]),
    "middle segment of no length": (lambda i: i.segment(SEGMENT_BYTES).write_bytes(b""), [1]),
    "middle segment of zeros": (lambda i: i.segment(SEGMENT_BYTES).write_bytes(bytes(SEGMENT_BYTES)), [1]),
    "middle segment of garbage": (
        lambda i: i.segment(SEGMENT_BYTES).write_bytes(b"\x5a" * SEGMENT_BYTES), [1],
    ),
    "first segment of zeros": (lambda i: i.segment(0).write_bytes(bytes(SEGMENT_BYTES)), [0]),
    "no first segment, as retention leaves it": (lambda i: remove(i.segment(0)), [0]),
    "no first two segments": (lambda i: [remove(i.segment(at)) for at in (0, SEGMENT_BYTES)], [0, 1]),
    "no first segment and no queues": (
        lambda i: [remove(i.segment(0)), remove(i.root / "consumequeue")], [0],
    ),
    "no middle segment and no queues": (
        lambda i: [remove(i.segment(SEGMENT_BYTES)), remove(i.root / "consumequeue")], [1],
    ),
}  # fmt: skip


def limits(store) -> tuple[int, int, int, int]:
    return store.min_offset("T", 0), store.max_offset("T", 0), store.min_phy_offset, store.max_phy_offset


def check(image: Image, survivors: list[int], given: int = 0, mended: list[int] | None = None) -> None:
    """Reads, takes over, writes to and reads again a damaged store.

    Args:
        image: The store.
        survivors: Queue offsets of the messages that must be there.
        given: End of the queue offsets that must stay taken.
        mended: Those that must be there once it was opened for writing; the same if None.
    """
    before = tree_digest(image.root)
    with MessageStore.open(image.root, read_only=True) as reader:
        assert slots(reader) == survivors
        seen = limits(reader)
    survivors = survivors if mended is None else mended
    assert tree_digest(image.root) == before

    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == survivors
        assert limits(store)[1:3] == seen[1:3]
        assert store.min_offset("T", 0) == (seen[0] if mended is None else 0)
        # Tombstones make the log longer than it was found.
        assert store.max_phy_offset >= seen[3]
        following = store.max_offset("T", 0)
        # An offset that a queue unit knows was given, with or without its record.
        assert following == max(survivors[-1] + 1, given)
        put = store.put("T", b"%d next" % following)
        other = store.put("T", b"other", queue_id=1)
        assert (put.queue_offset, other.queue_offset) == (following, 0)
        last = following
        for _ in range(2 * QUEUE_FILE_BYTES // 20):
            last = store.put("T", b"%d more" % store.max_offset("T", 0)).queue_offset

    found = survey(image.root, RealFiles())
    assert found.mode == "normal"
    assert {f.code for f in found.findings} <= {
        "log-hole",
        "log-file-missing",
        "queue-file-size",
        "tombstones",
    }
    with MessageStore.open(image.root, clock=new_clock()) as again:
        assert slots(again) == [*survivors, *range(following, last + 1)]
        assert again.recovery.rewritten_queue_files == 0
        assert again.recovery.cut_bytes == 0


@pytest.mark.parametrize(("damage", "survivors"), CRASHES.values(), ids=CRASHES)
def test_crash_costs_at_most_what_was_not_finished(image, damage, survivors):
    damage(image)
    check(image, list(survivors), given=COUNT)


@pytest.mark.parametrize(("damage", "survivors"), DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("queues", ["queues", "no queues"])
def test_damage_costs_the_damaged_records_and_no_other(image, damage, survivors, queues):
    damage(image)
    if queues == "no queues":
        remove(image.root / "consumequeue")
    check(image, list(survivors))


def test_a_torn_last_record_of_which_the_queue_knows_the_size_is_mended(image):
    image.write(image.starts[99], bytes(4))
    check(image, without(99), mended=list(ALL), given=COUNT)


@pytest.mark.parametrize(("damage", "readable"), MENDED.values(), ids=MENDED)
@pytest.mark.parametrize("queues", ["queues", "no queues"])
def test_opening_to_write_mends_what_a_checksum_proves(image, damage, readable, queues):
    damage(image)
    if queues == "no queues":
        remove(image.root / "consumequeue")
    check(image, list(readable), mended=list(ALL))


@pytest.mark.parametrize(("damage", "lost_segments"), WHOLE_FILES.values(), ids=WHOLE_FILES)
def test_lost_file_costs_its_messages_and_no_other(image, damage, lost_segments):
    lost = [slot for number in lost_segments for slot in in_segment(image, number)]
    damage(image)
    check(image, without(*lost))


@pytest.mark.parametrize("slot", [0, 40, 99])
def test_what_was_cut_off_is_kept_aside(image, slot):
    image.write(image.end, b"evidence")
    MessageStore.open(image.root, clock=new_clock()).close()
    kept = [(one.name, one.position_bytes, one.data) for one in iter_kept(RealFiles(), image.root)]
    name = image.segment(image.end).relative_to(image.root).as_posix()
    assert kept == [(name, image.end % SEGMENT_BYTES, b"evidence")]
    tail = image.segment(image.end).read_bytes()[image.end % SEGMENT_BYTES :]
    assert not any(tail)
    assert slot < COUNT


def test_hole_is_reported_with_file_place_and_severity(image):
    image.flip(image.starts[40] + 90)
    (finding,) = [f for f in survey(image.root, RealFiles()).findings if f.code == "log-hole"]
    assert finding.severity is Severity.LOSS
    assert finding.file == f"commitlog/{image.segment(image.starts[40]).name}"
    assert finding.position_bytes == image.starts[40] % SEGMENT_BYTES
    assert finding.size_bytes == image.sizes[40]
    assert finding.file in str(finding)


def test_segment_under_a_name_that_is_no_place_is_left_alone(image):
    moved = image.segment(image.end).with_name(f"{8 * SEGMENT_BYTES + 1:020d}")
    shutil.copy(image.segment(image.end), moved)
    before = moved.read_bytes()
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == list(ALL)
        assert "log-file-stray" in {f.code for f in store.recovery.findings}
    assert moved.read_bytes() == before


@pytest.mark.parametrize("name", ["README", "00000000000000000000.bak", "9" * 20])
def test_stray_files_are_named_and_left_alone(image, name):
    (image.root / "commitlog" / name).write_bytes(b"x")
    (image.root / "consumequeue" / "T" / "0" / name).write_bytes(b"x")
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == list(ALL)
        assert {f.code for f in store.recovery.findings} == {"log-file-stray", "queue-file-stray"}
    assert (image.root / "commitlog" / name).read_bytes() == b"x"
    assert (image.root / "consumequeue" / "T" / "0" / name).read_bytes() == b"x"


def test_directories_that_are_no_queues_are_left_alone(image):
    for name in ("00", "x", "-1", "99999999999999999999"):
        shutil.copytree(image.root / "consumequeue" / "T" / "0", image.root / "consumequeue" / "T" / name)
    before = tree_digest(image.root / "consumequeue")
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == list(ALL)
        assert [(q.topic, q.queue_id) for q in store.queues()] == [("T", 0)]
    assert tree_digest(image.root / "consumequeue") == before


TOPICS = [b"../../../escaped", b"/etc", b"a/b", b"..", b".", b"nul\0", b"", b"x" * 300]


@pytest.mark.parametrize("topic", TOPICS)
def test_topic_in_a_record_never_leads_out_of_the_store(memory_path: Path, topic):
    root = memory_path / "outer" / "store"
    with MessageStore.open(root, clock=new_clock(), segment_size_bytes=SEGMENT_BYTES) as store:
        end = store.put("T", b"good").size_bytes
    bad = Record(topic=topic, phy_offset=end, store_timestamp_ms=new_clock().now_ms(), record_crc=True).pack()
    with (root / "commitlog" / FIRST).open("r+b") as log:
        log.seek(end)
        log.write(bad)
    outside = tree_digest(memory_path)
    for _ in range(2):
        with MessageStore.open(root, clock=new_clock()) as store:
            assert [m.body for m in read_all(store, "T", 0)] == [b"good"]
            assert store.message_at(end).body == b"body"
            assert store.max_phy_offset == end + len(bad)
    made_names = tree_digest(memory_path).keys() - outside.keys()
    assert all(name.startswith("outer/store/") for name in made_names)
    assert [path.name for path in (root / "consumequeue").iterdir()] == ["T"]


@pytest.mark.parametrize("damaged", [{5}, {0}, {9}, {4, 5}, {0, 1, 8, 9}], ids=str)
def test_queue_offsets_out_of_reason_do_not_take_all_memory_or_disk(memory_path: Path, damaged):
    """Without a record CRC nothing else shows that a bit of a queue offset was flipped."""
    root = memory_path / "store"
    with MessageStore.open(root, clock=new_clock(), record_crc=False, **SMALL) as store:
        starts = [store.put("T", b"%d " % slot).phy_offset for slot in range(10)]
    with (root / "commitlog" / FIRST).open("r+b") as log:
        for slot in damaged:
            log.seek(starts[slot] + 20)
            log.write(b"\x20")
    intact = {b"%d " % slot for slot in set(range(10)) - damaged}
    with MessageStore.open(root, read_only=True) as reader:
        assert {message.body for message in read_all(reader, "T", 0)} >= intact
        assert reader.max_offset("T", 0) <= 10
    with MessageStore.open(root, clock=new_clock()) as store:
        assert {message.body for message in read_all(store, "T", 0)} >= intact
        assert store.put("T", b"next").queue_offset <= 10
    assert sum(1 for _path in root.rglob("*")) < 20

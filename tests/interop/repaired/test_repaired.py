"""RocketMQ opens a damaged store that was repaired, and serves it whole; undone, it is what it was."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

from seglog import MessageStore
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.storage.directory.geometry import FileSizes
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.record.tombstone import LOST, LOST_FLAG
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, lost_keys, place
from tests.interop.judging.questions import SMALL_GEOMETRY
from tests.interop.judging.states import STATES, bare, crashed, states_of
from tests.interop.repaired.uncovered import standing_records
from tests.support.damage.campaign import KINDS
from tests.support.damage.subjects import make_subject
from tests.support.damage.trial import is_all_gone
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import new_clock
from tests.support.rows import every_row
from tests.support.scale import chance, is_full, scaled

pytestmark = pytest.mark.interop

SIZES = FileSizes(
    SMALL_GEOMETRY.queue_file_size_bytes,
    IndexGeometry(SMALL_GEOMETRY.index_slots, SMALL_GEOMETRY.index_entries),
)
DAMAGED = golden.golden_names(damaged=True)
IN_ALL = 3
"""How many rows of a table the gate tries in each state."""


def repaired(root):
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True, SIZES)
    return plan


def original(name):
    if name.startswith("d-propcrc"):
        return "propcrc"
    return "roll-halt" if name.endswith("-halt") else "roll"


def ends(lines):
    return {(line["topic"], line["queueId"]): line["maxOffset"] for line in lines if line["kind"] == "queue"}


def lost_in(plan):
    return {
        (one.topic, one.queue_id, offset)
        for action in plan.actions
        for one in action.lost
        for offset in one.offsets
    }


def is_tombstone(line):
    is_marked = line["properties"].get(LOST) == "1" or line["bodyLen"] < len(f"{LOST}=1;")
    return line["flag"] == LOST_FLAG and line["storeHost"].endswith(":0") and is_marked


def check_with_java(judge, root, whole, lost, standing=MappingProxyType({})):
    """Lets the real store open a repaired copy: everything is served but what is lost, at its place.

    Args:
        judge: The real store.
        root: The copy.
        whole: What it served of the undamaged store.
        lost: The places in the queues of what the repair gave up.
        standing: Records with damage that nothing covers, by their places in the queues.
    """
    with MessageStore.open(root, read_only=True) as store:
        start = store.min_phy_offset
    messages = [line for line in whole if line["kind"] == "msg"]
    intact = [
        line
        for line in messages
        if (line["topic"], line["queueId"], line["cqOffset"]) not in lost and line["cqPos"] >= start
    ]
    dump = judge.dump(root, SMALL_GEOMETRY)
    assert dump.refusal is None
    served = {place(line): line for line in dump.of_kind("msg")}
    intact = [
        standing[at].as_served(served.get(at)) if (at := place(line)) in standing else line for line in intact
    ]
    # Given up in its own queue for no damage that can be seen, but because it says that it is in another.
    moved = {at for at in lost & standing.keys() if standing[at].is_moved and "topic" not in served[at]}
    elsewhere = [line for at in moved for line in standing[at].elsewhere]
    wanted_ends = {(line["cqTopic"], line["cqQueueId"]): line["cqOffset"] + 1 for line in elsewhere}
    assert ends(dump.lines) == ends(whole) | wanted_ends
    wanted = {place(line) for line in (*intact, *elsewhere)}
    found = [line for at, line in served.items() if at in wanted]
    assert differences([*intact, *elsewhere], found, ignoring=["keyFound"]) == []
    others = {at: line for at, line in served.items() if at not in wanted}
    # RocketMQ counts the units before the first of a queue as units of it.
    blank = {at for at in others if at[:2] in wanted_ends}
    assert all("topic" not in others[at] for at in blank)
    stones = {at: line for at, line in others.items() if at not in blank}
    assert all(is_tombstone(line) for at, line in stones.items() if at not in moved)
    assert len(stones) == len(lost)
    return found


@pytest.mark.parametrize("name", DAMAGED)
def test_real_store_serves_every_intact_message_of_a_repaired_store(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], name
):
    root = golden.extract(name, tmp_path)
    before = tree_digest(root)
    plan = repaired(root)
    with every_row() as row:
        for state in states_of(name, DAMAGED, in_all=IN_ALL):
            with row(state.__name__):
                for_java = copied(root)
                state(for_java)
                found = check_with_java(judge, for_java, golden.expected(original(name)), lost_in(plan))
                assert lost_keys(found) == []

    assert not plan_repair(RealFiles(), root, new_clock(), SIZES).changes
    if plan.changes:
        undo_repair(RealFiles(), root)
    assert tree_digest(root) == before


SEGMENT = 64 << 10


def log_file(root, number):
    return root / "commitlog" / f"{number * SEGMENT:020d}"


def zero(path, start, size):
    data = bytearray(path.read_bytes())
    data[start : start + size] = bytes(size)
    path.write_bytes(data)


def noise(path, start, size):
    data = bytearray(path.read_bytes())
    data[start : start + size] = random.Random(start).randbytes(size)
    path.write_bytes(data)


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"more")


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


CASES = {
    "middle segment missing": lambda root: remove(log_file(root, 2)),
    "middle segment empty": lambda root: log_file(root, 2).write_bytes(b""),
    "middle segment cut": lambda root: cut(log_file(root, 2), 40_000),
    "middle segment missing, and all queues": lambda root: [
        remove(path) for path in (log_file(root, 2), root / "consumequeue")
    ],
    "two segments missing": lambda root: [remove(log_file(root, number)) for number in (2, 3)],
    "last segment missing": lambda root: remove(log_file(root, 4)),
    "first segment missing": lambda root: remove(log_file(root, 0)),
    "noise over many records": lambda root: noise(log_file(root, 1), 20_000, 16_384),
    "noise over a segment's end": lambda root: [
        noise(log_file(root, 1), SEGMENT - 5000, 5000), noise(log_file(root, 2), 0, 5000),
    ],
    "zeros at a segment's start": lambda root: zero(log_file(root, 3), 0, 4096),
    "BLANK lost": lambda root: zero(log_file(root, 1), SEGMENT - 150, 150),
    "noise, and all queues lost": lambda root: [
        noise(log_file(root, 1), 20_000, 3000), remove(root / "consumequeue"),
    ],
    "foreign files": lambda root: [
        (root / "commitlog" / ".DS_Store").write_bytes(b"x"),
        shutil.copy(log_file(root, 1), root / "commitlog" / "99999999999999999999"),
        (root / "consumequeue" / "TopicA" / "0" / "x.bak").write_bytes(bytes(2000)),
    ],
    "queue file of garbage units": lambda root: (
        root / "consumequeue" / "TopicB" / "0" / f"{0:020d}"
    ).write_bytes(bytes(6) + b"\x01\x02" + b"\0\0\0\x70" + bytes(8) + bytes(1980)),
    "queue file too long": lambda root: lengthen(root / "consumequeue" / "TopicB" / "0" / f"{0:020d}"),
    "log file too long": lambda root: lengthen(log_file(root, 1)),
}  # fmt: skip
RETENTION = "first segment missing"
"""Looks like what retention does: the two cannot be distinguished."""


@pytest.mark.parametrize("name", CASES)
def test_real_store_serves_the_rest_of_a_store_that_lost_much(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], name
):
    root = golden.extract("roll", tmp_path)
    CASES[name](root)
    before = tree_digest(root)
    plan = repaired(root)
    whole = golden.expected("roll")
    with every_row() as row:
        for state in states_of(name, CASES, in_all=IN_ALL):
            with row(state.__name__):
                for_java = copied(root)
                state(for_java)
                found = check_with_java(judge, for_java, whole, lost_in(plan))
                if name != RETENTION:
                    told = len(found) + len(lost_in(plan))
                    assert told == len([line for line in whole if line["kind"] == "msg"])
    undo_repair(RealFiles(), root) if plan.changes else None
    assert tree_digest(root) == before


UNCOVERED = {
    "flag": (16, 0x80),
    "a queue that no other record has, two bits from its own": (13, 0x11),
    "flags of compression": (38, 1),
    "a transaction that has not ended": (39, 4),
    "a batch": (39, 0x80),
    "time of birth": (44, 0x40),
    "port that no host has": (53, 1),
    "store time": (60, 1),
    "store host": (65, 8),
    "reconsume times": (72, 0x10),
    "prepared transaction offset": (80, 2),
    "a byte of the properties": (-3, 2),
}
"""Where in a record which bits become others, of those that no checksum covers."""


def test_real_store_serves_a_record_as_its_bytes_stand_where_nothing_covers_them(
    judge: Judge, tmp_path, copied: Callable[[Path], Path]
):
    subject = make_subject("roll", tmp_path)
    whole = golden.expected("roll")
    messages = [line for line in whole if line["kind"] == "msg"]
    with every_row() as row:
        for number, (name, (at, bits)) in enumerate(UNCOVERED.items()):
            line = chance("uncovered", name).choice(messages)
            root = tmp_path / f"uncovered-{number}"
            shutil.copytree(subject.root, root)
            place_in_file = line["cqPos"] % SEGMENT + (at if at >= 0 else line["cqSize"] + at)
            data = bytearray(log_file(root, line["cqPos"] // SEGMENT).read_bytes())
            data[place_in_file] ^= bits
            log_file(root, line["cqPos"] // SEGMENT).write_bytes(data)
            standing = standing_records(subject, root, whole)
            lost = lost_in(repaired(root))
            with row(name, line["cqPos"]):
                assert list(standing) == [place(line)]
                assert lost <= {place(line)}
                check_with_java(judge, copied(root), whole, lost, standing)


@contextlib.contextmanager
def noted(damage: str) -> Iterator[None]:
    """Adds the damage to an error."""
    try:
        yield
    except BaseException as error:
        error.add_note(damage)
        raise


def check_random_damage(judge, tmp_path, copied, drawn):
    subject = make_subject("roll", tmp_path)
    whole = golden.expected("roll")
    root = tmp_path / "copy"
    shutil.copytree(subject.root, root)
    while True:
        damage = KINDS[drawn.choice(sorted(KINDS))](subject, root, drawn)
        if not is_all_gone(subject, root):
            break
        shutil.rmtree(root)
        shutil.copytree(subject.root, root)
    standing = standing_records(subject, root, whole)
    lost = lost_in(repaired(root))
    state = drawn.choice(STATES)
    if state is bare and any(standing[at].is_moved for at in lost & standing.keys()):
        # Where a record of a queue names another, RocketMQ gives the messages behind it other offsets when it
        # makes the queue again: no repair can tell it otherwise.
        state = crashed
    if state is not bare or (root / "consumequeue").exists():
        state(root)
    with noted(f"{damage}, then {state.__name__}"):
        check_with_java(judge, copied(root), whole, lost, standing)


@pytest.mark.parametrize("seed", range(300 if is_full() else 12))
@pytest.mark.sampled(3)
def test_real_store_serves_the_rest_after_random_damage(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], seed
):
    check_random_damage(judge, tmp_path, copied, random.Random(seed))


@pytest.mark.parametrize("seed", range(scaled(12, 300)))
def test_real_store_serves_the_rest_after_random_damage_of_this_commit(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], seed
):
    check_random_damage(judge, tmp_path, copied, chance("repaired at random", seed))

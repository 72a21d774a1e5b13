"""An open that starts at a recovery point gives what a walk over the whole log gives, after any accident."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st

from seglog.doctor.check.verify import verify_store
from seglog.storage.files.files import RealFiles
from seglog.storage.format.ours.seal import SEAL_BLOCK_BYTES
from seglog.storage.small_files.recovery_point_file import RECOVERY_POINT_FILE_NAME, read_recovery_point
from seglog.storage.store import MessageStore
from seglog.storage.writes.values import NewMessage
from seglog.storage.writes.writer import Writer
from tests.support.material.golden import tree_digest
from tests.support.material.records import Record
from tests.support.material.stores import SMALL_INDEX, Lengths, new_clock, read_all
from tests.support.scale import scaled


class Step(TypedDict):
    """How far apart recovery points are."""

    recovery_step_bytes: int


SEGMENT_BYTES = 3 * SEAL_BLOCK_BYTES + 4096
"""Several blocks, and the last one shorter."""
SIZES: Lengths = {"segment_size_bytes": SEGMENT_BYTES, "queue_file_size_bytes": 200}
IN_MEMORY = Path("/dev/shm")
PREPARED, COMMIT, ROLLBACK = 0x4, 0x8, 0xC
QUEUES = [("A", 0), ("A", 1), ("B", 0), ("C", 7)]
FULL_WALK: Step = {"recovery_step_bytes": 0}
POINTS: Step = {"recovery_step_bytes": 1}


# ------------------------------------------------------------------------------------- what is done


@dataclass(frozen=True)
class Act:
    """One step in the life of a store; what the values mean depends on the kind."""

    kind: str
    where: float
    value: int


shares = st.floats(0, 1)
writes = st.builds(
    Act, st.sampled_from(["put", "put", "batch", "batch", "transaction"]), shares, st.integers(0, 30_000)
)
stops = st.builds(Act, st.sampled_from(["point", "seal", "close", "kill"]), shares, st.just(0))
long_lives = st.lists(
    st.builds(Act, st.sampled_from(["put", "put", "transaction"]), shares, st.integers(5000, 30_000))
    | st.builds(Act, st.sampled_from(["seal", "batch", "close"]), shares, st.integers(0, 100)),
    min_size=3,
    max_size=15,
).map(lambda acts: [Act("put", 0.4, 30_000)] * 7 + acts)
"""Enough to fill some blocks."""
lives = st.lists(writes | writes | writes | stops, min_size=4, max_size=30)


class Life:
    """A store through its writers."""

    def __init__(self, folder: Path, *, record_crc: bool) -> None:
        self.folder = folder
        self.root = folder / "0"
        self.clock = new_clock()
        self.record_crc = record_crc
        self.copies = 0
        self.bodies: dict[tuple[str, int, int], bytes] = {}
        self.places: list[int] = []
        self.store = self.open()

    def open(self) -> MessageStore:
        return MessageStore.open(
            self.root, clock=self.clock, record_crc=self.record_crc, **SIZES, **SMALL_INDEX, **POINTS
        )

    def do(self, act: Act) -> None:
        topic, queue_id = QUEUES[int(act.where * (len(QUEUES) - 1))]
        body = b"%d:" % act.value + bytes([act.value % 251]) * act.value
        match act.kind:
            case "put":
                self.clock.advance(act.value % 7 - 2)
                put = self.store.put(topic, body, queue_id=queue_id, tags="t", keys=f"k{act.value % 5}")
                self.bodies[topic, queue_id, put.queue_offset] = body
                self.places.append(put.phy_offset)
            case "batch":
                bodies = [b"%d/%d" % (number, act.value) for number in range(act.value % 25 + 1)]
                batch = self.store.put_batch(topic, [NewMessage(each) for each in bodies], queue_id=queue_id)
                for number, each in enumerate(bodies):
                    self.bodies[topic, queue_id, batch.queue_offset + number] = each
            case "transaction":
                bits = (PREPARED, COMMIT, ROLLBACK)[act.value % 3]
                put = self.store.append(topic, queue_id, body, b"", 0, sys_flag=bits)
                if bits == COMMIT:
                    self.bodies[topic, queue_id, put.queue_offset] = body
            case "point":
                self.store.flush()
                side = self.store._core
                assert isinstance(side, Writer)
                side._points.finish()
            case "seal":
                verify_store(self.root, seal=True, clock=self.clock)
            case "close":
                self.store.close()
                self.store = self.open()
            case "kill":
                self.kill()
                self.store = self.open()

    def kill(self) -> None:
        """Goes on with the directory as it is there while the store is open."""
        self.copies += 1
        killed = self.folder / str(self.copies)
        shutil.copytree(self.root, killed)
        self.store.close()
        shutil.rmtree(self.root)
        self.root = killed


def live(folder: Path, acts: list[Act], *, record_crc: bool, is_killed: bool) -> Life:
    life = Life(folder, record_crc=record_crc)
    for act in acts:
        life.do(act)
    if is_killed:
        life.kill()
    else:
        life.store.close()
    return life


# ----------------------------------------------------------------------------------- what happens then

DERIVED = ("consumequeue", "index", "checkpoint", RECOVERY_POINT_FILE_NAME, "seglog/seals", "lock", "abort")


def strike_derived(life: Life, act: Act) -> None:
    """Damages a file that is made from the log."""
    root = life.root
    tops = [root / name for name in DERIVED]
    files = sorted(
        path for top in tops for path in ([top] if top.is_file() else top.rglob("*")) if path.is_file()
    )
    if not files:
        return
    path = files[int(act.where * (len(files) - 1))]
    data = bytearray(path.read_bytes())
    at = act.value % max(1, len(data))
    match act.value % 5:
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(data[:at])
        case 2 if path.relative_to(root).parts[0] == "consumequeue":
            shutil.rmtree(path.parent)
        case 3:
            data[at : at + 40] = bytes(len(data[at : at + 40]))
            path.write_bytes(data)
        case _ if data:
            data[at] ^= 1 << act.value % 8
            path.write_bytes(data)


def end_of(life: Life) -> int:
    with MessageStore.open(life.root, read_only=True) as reader:
        return reader.max_phy_offset


def write_log(root: Path, phy_offset: int, data: bytes) -> None:
    while data:
        position = phy_offset % SEGMENT_BYTES
        piece, data = data[: SEGMENT_BYTES - position], data[SEGMENT_BYTES - position :]
        path = root / "commitlog" / f"{phy_offset - position:020d}"
        if path.exists():
            with path.open("r+b") as log:
                log.seek(position)
                log.write(piece)
        phy_offset += len(piece)


def append_records(life: Life, at: int, count: int, value: int) -> None:
    for number in range(count):
        topic, queue_id = QUEUES[(value + number) % len(QUEUES)]
        taken = [offset for name, queue, offset in life.bodies if (name, queue) == (topic, queue_id)]
        offset = max(taken, default=-1) + 1
        body = b"foreign %d" % number
        record = Record(
            topic=topic.encode(),
            queue_id=queue_id,
            queue_offset=offset,
            body=body,
            phy_offset=at,
            store_timestamp_ms=life.clock.now_ms(),
            record_crc=life.record_crc,
        ).pack()
        if at % SEGMENT_BYTES + len(record) + 8 > SEGMENT_BYTES:
            return
        life.bodies[topic, queue_id, offset] = body
        write_log(life.root, at, record)
        at += len(record)


def extend(life: Life, act: Act) -> None:
    """A writer wrote on: one of ours that was killed before its units, or RocketMQ."""
    if act.value % 2:
        say_rocketmq_started(life)
    append_records(life, end_of(life), act.value % 4 + 1, act.value)


def cut(life: Life, act: Act) -> None:
    """RocketMQ cut the log at a record and wrote on from there; what was behind it is not erased."""
    with MessageStore.open(life.root, read_only=True) as reader:
        starts = sorted(m.phy_offset for q in reader.queues() for m in read_all(reader, q.topic, q.queue_id))
    if starts:
        say_rocketmq_started(life)
        life.clock.advance(1000)
        append_records(life, starts[int(act.where * (len(starts) - 1))], act.value % 4, act.value)


def say_rocketmq_started(life: Life) -> None:
    path = life.root / "lock"
    mark = path.read_bytes() if path.exists() else b""
    path.write_bytes(b"lock" + mark[4:])


def expire(life: Life, act: Act) -> None:
    """Retention takes the oldest segments, and perhaps the queue files that lead into them only."""
    segments = sorted((life.root / "commitlog").iterdir())
    for path in segments[: int(act.where * (len(segments) - 1))]:
        path.unlink()
    start = min((int(path.name) for path in (life.root / "commitlog").iterdir()), default=0)
    if act.value % 2:
        folders = [path for path in (life.root / "consumequeue").glob("*/*") if path.is_dir()]
        for folder in folders:  # beside them are files ahead that have no place yet
            for path in sorted(folder.iterdir())[:-1]:
                if int.from_bytes(path.read_bytes()[-20:-12]) < start:
                    path.unlink()


def lose_tail(life: Life, act: Act) -> None:
    """Power was lost: of what is behind the recovery point some sectors never came to the disk."""
    begin = point_of(life)
    end = end_of(life)
    for number in range(act.value % 3 + 1):
        at = begin + int((act.where * 7919 * (number + 1)) % 1 * max(0, end - begin))
        at = max(begin, at - at % 512)
        write_log(life.root, at, bytes(min(512 * (act.value % 9 + 1), max(0, end - at))))


def tear(life: Life, act: Act) -> None:
    """The last write did not finish."""
    write_log(life.root, end_of(life), b"\x00\x00\x01\x00torn" * (act.value % 9 + 1))


def unlooked_at(share: float, end: int) -> int:
    """Returns a place below a point at which no open looks."""
    segment = int(share * 7919) % max(1, end // SEGMENT_BYTES) * SEGMENT_BYTES
    high = min(SEGMENT_BYTES, end - segment - SEAL_BLOCK_BYTES)
    return segment + SEAL_BLOCK_BYTES + int(share * 104_729) % (high - SEAL_BLOCK_BYTES)


def point_of(life: Life) -> int:
    point = None
    path = life.root / RECOVERY_POINT_FILE_NAME
    if path.exists():
        point = read_recovery_point(RealFiles(), life.root)
    return 0 if point is None else point.end_phy_offset


EVENTS = {"extend": extend, "cut": cut, "expire": expire, "lose tail": lose_tail, "tear": tear}


# ------------------------------------------------------------------------------------- what must hold


def everything(store: MessageStore) -> dict[str, object]:
    """Returns all that a store reports and serves."""
    queues = store.queues()
    return {
        "queues": queues,
        "messages": [read_all(store, queue.topic, queue.queue_id) for queue in queues],
        "log": (store.min_phy_offset, store.max_phy_offset),
        "holes": store._core.holes,
        "crc": store.record_crc,
        "mode": store.recovery.mode,
        "rewritten": store.recovery.rewritten_queue_files,
        "cut": store.recovery.cut_bytes,
        "findings": [f for f in store.recovery.findings if f.code != "recovery-point-unused"],
        "keys": [store.query(queue.topic, "k1", 10) for queue in queues],
        "times": [store.offset_by_time(q.topic, q.queue_id, 1_800_000_000_020) for q in queues],
        "bodies": [[bytes(body) for body in store.queue(q.topic, q.queue_id).bodies()] for q in queues],
    }


def go_on(store: MessageStore) -> list[object]:
    """Returns where new messages go."""
    return [
        store.put(topic, b"next", queue_id=queue_id, keys="k1") for topic, queue_id in [*QUEUES, ("D", 0)]
    ]


def left_behind(root: Path) -> dict[str, tuple[int, str]]:
    """Returns the files of RocketMQ in a closed store."""
    return {
        name: digest for name, digest in tree_digest(root).items() if not name.startswith(("seglog", "lock"))
    }


def compare(life: Life) -> None:
    """Opens two copies, from the point on and with a full walk, and continues with both."""
    quick, whole = life.folder / "quick", life.folder / "whole"
    shutil.copytree(life.root, quick)
    shutil.copytree(life.root, whole)
    now_ms = life.clock.now_ms()
    told = []
    for root, how in ((quick, POINTS), (whole, FULL_WALK)):
        clock = new_clock()
        clock.advance(now_ms - clock.now_ms())
        with MessageStore.open(root, clock=clock, **SMALL_INDEX, **how) as store:
            if how is POINTS:
                event(f"starts at the point: {store.recovery.walked_from > 0}")
                if not store.recovery.walked_from:
                    event(
                        f"{[f.found for f in store.recovery.findings if f.code == 'recovery-point-unused']}"
                    )
            told.append((everything(store), go_on(store), everything(store)))
    assert told[0] == told[1]
    assert left_behind(quick) == left_behind(whole)
    for root in (quick, whole):
        with MessageStore.open(root, clock=new_clock(), **POINTS) as store:
            again = everything(store)
            assert again["messages"] == told[0][2]["messages"]
    shutil.rmtree(quick)
    shutil.rmtree(whole)


def in_memory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None)


SETTINGS = settings(
    max_examples=scaled(80, 5000),
    deadline=None,
    phases=set(Phase) - {Phase.explain},
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SETTINGS
@given(acts=lives, record_crc=st.booleans(), is_killed=st.booleans())
def test_stores_that_nothing_happened_to_open_as_after_a_full_walk(acts, record_crc, is_killed):
    with in_memory() as folder:
        compare(live(Path(folder), acts, record_crc=record_crc, is_killed=is_killed))


@SETTINGS
@given(
    acts=lives,
    is_killed=st.booleans(),
    strikes=st.lists(st.builds(Act, st.just("strike"), shares, st.integers(0, 5000)), min_size=1, max_size=3),
)
@example(  # an entry of the last indexed record leads elsewhere: the point says that all its keys are in
    acts=[Act("point", 0, 0), Act("put", 0.5, 1), Act("put", 0.5, 3863), Act("close", 0, 0)],
    is_killed=True,
    strikes=[Act("strike", 0.75, 304)],
)
@example(  # one bit of a time in the checkpoint of a store that never had a message
    acts=[Act("point", 0, 0)], is_killed=False, strikes=[Act("strike", 0, 7)]
)
def test_damage_to_what_is_derived_changes_nothing(acts, is_killed, strikes):
    with in_memory() as folder:
        life = live(Path(folder), [*acts, Act("point", 0, 0)], record_crc=True, is_killed=is_killed)
        for strike in strikes:
            strike_derived(life, strike)
        compare(life)


@SETTINGS
@given(
    acts=lives,
    record_crc=st.booleans(),
    is_killed=st.booleans(),
    happenings=st.lists(
        st.builds(Act, st.sampled_from(sorted(EVENTS)), shares, st.integers(0, 5000)), min_size=1, max_size=3
    ),
)
@example(  # an offset too far on for what is there, and then a message of ours behind it
    acts=[Act("point", 0, 0), Act("put", 0, 0), Act("batch", 1, 210), Act("batch", 0, 11)],
    record_crc=False,
    is_killed=True,
    happenings=[Act("cut", 1, 3), Act("cut", 0.5, 3)],
)
def test_what_happens_to_the_log_is_seen_as_a_full_walk_sees_it(acts, record_crc, is_killed, happenings):
    with in_memory() as folder:
        life = live(Path(folder), acts, record_crc=record_crc, is_killed=is_killed)
        for happening in happenings:
            EVENTS[happening.kind](life, happening)
        compare(life)


@SETTINGS
@given(
    acts=long_lives,
    record_crc=st.booleans(),
    is_killed=st.booleans(),
    flips=st.lists(
        st.tuples(shares, st.integers(0, 7), st.none() | st.integers(0, 95)), min_size=1, max_size=4
    ),
)
def test_rot_in_what_was_not_walked_is_never_served(acts, record_crc, is_killed, flips):
    with in_memory() as folder:
        life = live(Path(folder), [*acts, Act("point", 0, 0)], record_crc=record_crc, is_killed=is_killed)
        end = point_of(life)
        for share, bit, in_head in flips:
            at = unlooked_at(share, end)
            if in_head is not None:
                at = max([place for place in life.places if place <= at], default=at) + in_head
            path = life.root / "commitlog" / f"{at - at % SEGMENT_BYTES:020d}"
            data = bytearray(path.read_bytes())
            data[at % SEGMENT_BYTES] ^= 1 << bit
            path.write_bytes(data)
        whole = life.folder / "whole"
        shutil.copytree(life.root, whole)
        with (
            MessageStore.open(life.root, clock=life.clock, **SMALL_INDEX, **POINTS) as store,
            MessageStore.open(whole, clock=life.clock, **SMALL_INDEX, **FULL_WALK) as walked,
        ):
            event(f"starts at the point: {store.recovery.walked_from > 0}")
            for topic, queue_id in QUEUES:
                found = read_all(store, topic, queue_id)
                for message in found:
                    assert message.body == life.bodies[topic, queue_id, message.queue_offset]
                    assert (message.topic, message.queue_id) == (topic, queue_id)
                if (topic, queue_id) in {(q.topic, q.queue_id) for q in store.queues()}:
                    view = store.queue(topic, queue_id)
                    for slot, body in enumerate(map(bytes, view.bodies()), view.min_offset):
                        assert body in (b"", life.bodies[topic, queue_id, slot])
                if record_crc:
                    # A walk mends what one flipped bit explains; without it such a message is left out.
                    mended = {message.queue_offset: message for message in read_all(walked, topic, queue_id)}
                    assert all(mended[message.queue_offset] == message for message in found)
                    for queue_offset, message in mended.items():
                        assert message.body == life.bodies[topic, queue_id, queue_offset]
                    assert store.max_offset(topic, queue_id) == walked.max_offset(topic, queue_id)


@SETTINGS
@given(
    acts=long_lives,
    record_crc=st.booleans(),
    is_killed=st.booleans(),
    where=shares,
    value=st.integers(0, 5000),
)
def test_a_log_that_rocketmq_cut_in_the_middle_ends_where_it_wrote_last(
    acts, record_crc, is_killed, where, value
):
    """No look at a few blocks shows it: what RocketMQ wrote is short, and the old records go on behind it."""
    with in_memory() as folder:
        life = live(Path(folder), [*acts, Act("point", 0, 0)], record_crc=record_crc, is_killed=is_killed)
        cut(life, Act("cut", where, value))
        compare(life)

"""RocketMQ's timer goes on from files that a repair made: nothing that waits is lost, or delivered twice."""

from __future__ import annotations

import os
import shutil
import struct
import time
from collections import Counter

import pytest

from seglog import MessageStore
from seglog.clock import SystemClock
from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.format.timer.timer_checkpoint import TimerCheckpoint, encode_timer_checkpoint
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import SMALL_GEOMETRY
from tests.interop.judging.writing import store_options
from tests.support.rows import every_row

pytestmark = pytest.mark.interop

TIMER_LOG = {"mappedFileSizeTimerLog": 520}
"""Nine units a file."""
WAITING = 24
TAKEN_OUT = 5
"""The number of a message that another one takes out of the timer, in the same second."""
REPAIRED_BY_S = 12.0
"""After so many seconds all stores are repaired, and what waits is due."""


def put(store, number, due_ms, delete=None):
    properties = {
        "REAL_TOPIC": "Alarm",
        "REAL_QID": "0",
        "TIMER_OUT_MS": str(due_ms),
        "UNIQ_KEY": f"u{number}",
    }
    if delete is not None:
        properties["TIMER_DEL_UNIQKEY"] = delete
    store.put("rmq_sys_wheel_timer", b"%60d" % number, properties=properties)


def poke(path, position, data):
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def log(root, number=0):
    return sorted((root / "timerlog").iterdir())[number]


DAMAGES = {
    "nothing": lambda root: None,
    "timercheck": lambda root: (root / "config" / "timercheck").unlink(),
    "half of timercheck": lambda root: os.truncate(root / "config" / "timercheck", 20),
    "a queue offset that is ahead": lambda root: poke(
        root / "config" / "timercheck", 16, struct.pack(">qq", 999, 999)
    ),
    "the wheel": lambda root: (root / "timerwheel").unlink(),
    "half of the wheel": lambda root: os.truncate(root / "timerwheel", 3200),
    "a unit": lambda root: poke(log(root), 3 * 52, bytes(52)),
    "the place of a unit": lambda root: poke(log(root, 1), 52 + 28, struct.pack(">q", 7)),
    "a short file": lambda root: os.truncate(log(root, 1), 300),
    "the timer log": lambda root: shutil.rmtree(root / "timerlog"),
    "a foreign file": lambda root: (root / "timerlog" / "x").write_bytes(b"x"),
}  # fmt: skip
REFUSED = {"half of the wheel", "a short file", "a foreign file"}
"""RocketMQ does not start with these."""
AGAIN = {"timercheck", "half of timercheck"}
"""Nothing shows how far the timer came in time: the last minute comes twice."""


def start_here(root, begun_s):
    """Lets the timer begin now; else it reads the slots of seven days first."""
    (root / "config").mkdir()
    check = TimerCheckpoint(int(begun_s) * 1000)
    (root / "config" / "timercheck").write_bytes(encode_timer_checkpoint(check))


@pytest.fixture(scope="module")
def stores(judge: Judge, tmp_path_factory):
    """A store of which the timer delivered three messages and has many waiting; copies of it, damaged."""
    folder = tmp_path_factory.mktemp("timers")
    begun_s = time.time()
    root = folder / "store"
    with MessageStore.open(root, **store_options(SMALL_GEOMETRY)) as store:
        for number in range(3):
            put(store, number, int(begun_s + 1) * 1000)
        for number in range(3, 3 + WAITING):
            put(store, number, int(begun_s + REPAIRED_BY_S + number % 3) * 1000)
        put(store, 99, int(begun_s + REPAIRED_BY_S + TAKEN_OUT % 3) * 1000, delete=f"u{TAKEN_OUT}")
    start_here(root, begun_s)
    assert judge.run_timer(root, 3.5, SMALL_GEOMETRY, **TIMER_LOG)["error"] is None
    assert delivered(root) == {0: 1, 1: 1, 2: 1}
    copies = {name: folder / name for name in DAMAGES}
    for name, copy in copies.items():
        shutil.copytree(root, copy)
        DAMAGES[name](copy)
    return copies, begun_s


def delivered(root):
    with MessageStore.open(root, read_only=True) as store:
        return dict(Counter(int(message.body) for message in store.get("Alarm", 0, 0, 1000)))


@pytest.fixture(scope="module")
def repaired(stores):
    copies, begun_s = stores
    for root in copies.values():
        repair_store(RealFiles(), root, SystemClock(), lambda _plan: True)
        report = check_store(root)
        assert report.is_clean, [str(finding) for finding in report.findings]
    time.sleep(max(0, begun_s + REPAIRED_BY_S + 3 - time.time()))
    return copies


def test_rocketmq_refuses_what_is_not_repaired(judge: Judge, stores, tmp_path):
    copies, _begun_s = stores
    with every_row() as row:
        for name in sorted(REFUSED):
            with row(name):
                shutil.copytree(copies[name], tmp_path / name)
                assert judge.run_timer(tmp_path / name, 0, SMALL_GEOMETRY, **TIMER_LOG)["error"]


def test_what_waits_is_delivered_once(judge: Judge, repaired):
    # Without any file of the timer log its files get the length that RocketMQ gives them.
    configs = {root: {} if name == "the timer log" else TIMER_LOG for name, root in repaired.items()}
    ran = judge.run_timers(configs, 3, SMALL_GEOMETRY)
    with every_row() as row:
        for (name, root), line in zip(repaired.items(), ran, strict=True):
            with row(name):
                assert line["error"] is None
                wanted = {number: 1 for number in range(3 + WAITING) if number != TAKEN_OUT}
                if name in AGAIN:
                    wanted |= dict.fromkeys(range(3), 2)
                assert delivered(root) == wanted


@pytest.mark.parametrize("kind", ["body", "header"])
def test_a_lost_timer_message_does_not_stop_those_behind_it(judge: Judge, tmp_path, kind):
    root, begun_s = tmp_path / "store", time.time()
    with MessageStore.open(root, record_crc=False, **store_options(SMALL_GEOMETRY)) as store:
        for number in range(6):
            put(store, number, int(begun_s + 1) * 1000)
        (found,) = store.get("rmq_sys_wheel_timer", 0, 2, 1)
    path = root / "commitlog" / f"{0:020d}"
    if kind == "body":  # two bits, or they would be flipped back
        poke(path, path.read_bytes().index(found.body), b"?")
    else:
        poke(path, found.phy_offset, bytes(60))
    plan, _pack = repair_store(RealFiles(), root, SystemClock(), lambda _plan: True)
    assert sum(action.lost_messages for action in plan.actions) == 1
    start_here(root, begun_s)
    assert judge.run_timer(root, 4, SMALL_GEOMETRY, **TIMER_LOG)["error"] is None
    assert delivered(root) == {0: 1, 1: 1, 3: 1, 4: 1, 5: 1}
    with MessageStore.open(root, read_only=True) as store:
        topic = "Alarm" if kind == "body" else "SEGLOG_LOST"
        assert sum(map(len, store.get(topic, 0, 0, 100).lost)) == 1

"""A writer that is killed at any moment loses nothing that it acknowledged, and leaves no garbage."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.crash.first_word import wait_for_first_word
from tests.support.machine.children import child
from tests.support.machine.patience import patience_s
from tests.support.material.stores import SMALL, SMALL_INDEX, SomeLengths, read_all, served
from tests.support.narrow import not_none
from tests.support.scale import chance, scaled, start

ROOT = Path(__file__).resolve().parents[2]

# The writer numbers its messages and reports each, once it is acknowledged, in a line of the pipe.
WRITER = """
    import os, sys, threading
    from seglog.storage.writes.flush import Durability
    from seglog.storage.format.index.index import IndexGeometry
    from seglog.storage.store import MessageStore
    from seglog.storage.writes.values import NewMessage

    root, kind, durability, number = sys.argv[1], sys.argv[2], Durability(sys.argv[3]), int(sys.argv[4])
    store = MessageStore.open(
        root, segment_size_bytes=16384, queue_file_size_bytes=2000, index_geometry=IndexGeometry(50, 200),
        durability=durability, flush_interval_ms=5)
    os.write(1, b"ready\\n")
    bodies = [b"x" * size for size in (0, 10, 100, 1000, 3000)]

    def body(number):
        return b"%d:" % number + bodies[number % 5]

    def one(number):
        put = store.put("T%d" % (number % 3), body(number), tags="t", keys="k%d" % number)
        os.write(1, b"%d %d\\n" % (number, put.queue_offset))

    def batch(number):
        items = [NewMessage(body(n), keys="k%d" % n) for n in range(number, number + 4)]
        put = store.put_batch("T%d" % (number % 3), items)
        os.write(1, b"".join(b"%d %d\\n" % (number + i, put.queue_offset + i) for i in range(4)))

    def threads(number):
        workers = [threading.Thread(target=one, args=(number + i,)) for i in range(4)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()

    def new_queue(number):
        put = store.put("T%d" % number, body(number))
        os.write(1, b"%d %d\\n" % (number, put.queue_offset))

    do = {"one": one, "batch": batch, "threads": threads, "new queue": new_queue}[kind]
    while True:
        do(number)
        number += 4
"""


@dataclass
class Killed:
    """One store through many lives of its writer."""

    root: Path
    kind: str
    durability: str
    number: int = 0
    acked: dict[int, int] = field(default_factory=dict)

    def live(self, delay_s: float, *, wait_ready: bool) -> int:
        """Lets the writer run for a while, kills it and notes what it acknowledged; returns how much."""
        command = [sys.executable, "-c", textwrap.dedent(WRITER)]
        command += [str(self.root), self.kind, self.durability, str(self.number)]
        with child(command, cwd=ROOT, stdout=subprocess.PIPE) as writer:
            if wait_ready:
                wait_for_first_word(writer)
            time.sleep(delay_s)
            writer.kill()
            lines = not_none(writer.stdout).read().decode().splitlines(keepends=True)
        news = [line.split() for line in lines if line.endswith("\n") and line[0].isdigit()]
        for number, offset in news:
            self.acked[int(number)] = int(offset)
        self.number += 1_000_000
        return len(news)

    def check(self, store: MessageStore) -> None:
        """Holds what the store serves against what was acknowledged."""
        found: dict[int, int] = {}
        for queue in served(store).values():
            low = queue[0].queue_offset if queue else 0
            assert [message.queue_offset for message in queue] == list(range(low, low + len(queue)))
            for message in queue:
                number, _colon, body = message.body.partition(b":")
                assert body == b"x" * (0, 10, 100, 1000, 3000)[int(number) % 5]
                assert int(number) not in found
                found[int(number)] = message.queue_offset
        lost = {number for number, offset in self.acked.items() if found.get(number) != offset}
        assert lost == set()


def moments(count: int, *names: object) -> list[float]:
    """Returns delays before each kill, most of them short: starts and first rolls are where it hurts."""
    draw = chance("moments", *names)
    return [draw.choice([0.0, 0.02, 0.2, 0.5]) * draw.random() for _ in range(count)]


@pytest.mark.parametrize(
    ("kind", "durability", "rounds"),
    [
        ("one", "sync", 20), ("batch", "sync", 8), ("threads", "sync", 6), ("new queue", "sync", 6),
        ("one", "async", 8), ("batch", "async", 6),
    ],
)  # fmt: skip
def test_nothing_acknowledged_is_lost_by_kills_of_one_growing_store(tmp_path, kind, durability, rounds):
    killed = Killed(tmp_path / "store", kind, durability)
    delays_s = moments(scaled(rounds, 30 * rounds), kind, durability)
    for number, delay_s in enumerate(delays_s, start(4, "moments", kind, durability)):
        # One life in four is cut short in its recovery or its first moments; the first one makes the store.
        killed.live(delay_s, wait_ready=number % 4 != 3 or not killed.number)
        with MessageStore.open(killed.root, read_only=True) as reader:
            killed.check(reader)
    while len(killed.acked) < rounds:
        killed.live(0.2, wait_ready=True)
    with MessageStore.open(killed.root) as store:
        assert store.recovery.mode == "abnormal"
        killed.check(store)
    found = survey(killed.root, RealFiles())
    assert (found.mode, found.findings) == ("normal", [])


def test_index_leads_to_every_message_after_kills(tmp_path):
    killed = Killed(tmp_path / "store", "one", "async")
    for delay_s in chance("index").sample([0.05, 0.1, 0.3], max(2, scaled(3, 3))):
        killed.live(delay_s, wait_ready=True)
    with MessageStore.open(killed.root) as store:
        for number in list(killed.acked)[:: max(1, len(killed.acked) // 50)]:
            found = store.query(f"T{number % 3}", f"k{number}")
            assert killed.acked[number] in {message.queue_offset for message in found}


def test_recovery_that_is_killed_again_and_again_finishes_in_the_end(tmp_path):
    killed = Killed(tmp_path / "store", "one", "async")
    while len(killed.acked) < 300:
        killed.live(0.3, wait_ready=True)
    shutil.rmtree(killed.root / "consumequeue")
    for delay_s in chance("recovery").sample([0.02 * step for step in range(6)] * 10, scaled(6, 60)):
        killed.live(delay_s, wait_ready=False)
    with MessageStore.open(killed.root) as store:
        killed.check(store)
    assert survey(killed.root, RealFiles()).findings == []


# A server that forks a writer for each call of the file layer; the writer dies right before that call.
DIES = """
    import json, os, sys
    from pathlib import Path
    from tests.support.crash.failing_files import FailingFiles, Fault
    from seglog.storage.writes.flush import Durability
    from seglog.storage.format.index.index import IndexGeometry
    from seglog.storage.store import MessageStore

    class Death(Fault):
        def check(self, name, path):
            self.count += 1
            if self.count == self.at:
                os._exit(0)

    def live(root, at, pipe):
        store = MessageStore.open(
            root, segment_size_bytes=4096, queue_file_size_bytes=200, index_geometry=IndexGeometry(50, 200),
            durability=Durability.SYNC, files=FailingFiles(Death(at)))
        for number in range(12):
            store.put("T", b"%d" % number + bytes(900), keys="k")
            os.write(pipe, b"%d " % number)
        store.close()
        os.write(pipe, b"closed")

    folder, step, at = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    answers = {}
    while not any("closed" in answer for answer in answers.values()):
        read_end, write_end = os.pipe()
        if (child := os.fork()) == 0:
            try:
                live(folder / f"store{at}", at, write_end)
            finally:
                os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            answers[at] = pipe.read()
        os.waitpid(child, 0)
        at += step
    print(json.dumps(answers))
"""


def test_writer_that_dies_before_any_call_of_the_disk_leaves_what_it_acknowledged(memory_path: Path):
    step = scaled(3, 1)
    first = 1 + start(step, "dies")
    command = [sys.executable, "-c", textwrap.dedent(DIES), str(memory_path), str(step), str(first)]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=patience_s(100), check=True
    )
    answers = {int(at): answer.split() for at, answer in json.loads(ran.stdout).items()}
    assert len(answers) > 75 // step
    for at, answer in answers.items():
        root = memory_path / f"store{at}"
        acked = [int(word) for word in answer if word.isdigit()]
        if not root.exists():
            continue
        lengths: SomeLengths = {} if acked else {**SMALL}
        with MessageStore.open(root, **lengths, **SMALL_INDEX) as store:
            found = [int(message.body.rstrip(b"\0")) for message in read_all(store, "T", 0)]
            assert found[: len(acked)] == acked, f"death at call {at}"
            assert found == list(range(len(found)))
            assert store.put("T", b"77").queue_offset == len(found)
        assert survey(root, RealFiles()).findings == [], f"death at call {at}"

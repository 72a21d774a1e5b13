"""An explicit commit, or a close, in the process of a broker with SYNC durability waits for the disk.

What is on the disk is what a copy of the store has that is made at once: the broker is as if it was killed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from seglog import (
    AsyncLitePullConsumer,
    AsyncOrderlyConsumer,
    AsyncPushConsumer,
    Broker,
    ConsumeFrom,
    Durability,
    LitePullConsumer,
    OrderlyConsumer,
    Producer,
    PushConsumer,
)
from seglog.broker.offsets.offset_history_query import OFFSET_HISTORY
from seglog.storage.format.ours import decode_changes
from tests.support.faces import driven
from tests.support.machine.patience import patience_s, wait_until
from tests.support.material.stores import copy_store
from tests.support.scale import scaled

COUNT = 20
LISTENING = [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer]
POLLING = [LitePullConsumer, AsyncLitePullConsumer]


def open_store(root: Path, durability: Durability = Durability.SYNC) -> Broker:
    return Broker.open(root, small=True, durability=durability)


def fill(broker: Broker, topic: str = "T", count: int = COUNT) -> None:
    with Producer(broker) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, queue_id=0)


def after_a_kill(broker: Broker, to: Path) -> int | None:
    """Returns the offset that a broker has which opens the store as it is on the disk."""
    with open_store(copy_store(broker.path, to)) as opened:
        return opened.offsets.query("g", "T", 0)


@pytest.fixture
def broker(tmp_path: Path):
    with open_store(tmp_path / "s") as opened:
        fill(opened)
        yield opened


def consumed(consumer) -> None:
    assert consumer.run_until_idle(timeout_s=patience_s(60)) == COUNT


@pytest.mark.parametrize("kind", LISTENING)
def test_a_commit_of_what_listeners_have_done_is_on_the_disk(broker, tmp_path, kind):
    with driven(kind, broker, "g", "T", lambda _message: None, consume_from=ConsumeFrom.FIRST) as consumer:
        consumer.start()

        def is_committed() -> bool:
            consumer.commit()
            return bool(broker.offsets.query("g", "T", 0) == COUNT)

        wait_until(is_committed, "all are committed")
        assert after_a_kill(broker, tmp_path / "killed") == COUNT


@pytest.mark.parametrize("kind", POLLING)
def test_a_commit_of_what_was_polled_is_on_the_disk(broker, tmp_path, kind):
    with driven(kind, broker, "g", "T", consume_from=ConsumeFrom.FIRST) as consumer:
        for done in range(1, 4):
            assert len(consumer.poll(patience_s(60), 1)) == 1
            consumer.commit()
            assert after_a_kill(broker, tmp_path / f"killed-{done}") == done


@pytest.mark.parametrize("kind", LISTENING)
def test_what_a_close_commits_is_on_the_disk(broker, tmp_path, kind):
    with driven(kind, broker, "g", "T", lambda _message: None, consume_from=ConsumeFrom.FIRST) as consumer:
        consumed(consumer)
    assert after_a_kill(broker, tmp_path / "killed") == COUNT


def test_without_sync_durability_no_commit_waits(tmp_path):
    with open_store(tmp_path / "s", Durability.ASYNC) as broker:
        fill(broker)
        with OrderlyConsumer(broker, "g", "T", lambda _m: None, consume_from=ConsumeFrom.FIRST) as consumer:
            consumed(consumer)
            consumer.commit()
            assert broker.settle().is_done
            assert broker.offsets.has_unsynced


def test_those_that_wait_at_once_are_written_together(tmp_path):
    """A change more in the history for each, in far fewer writes than there are commits."""
    groups, rounds = 8, scaled(40, 200)
    with open_store(tmp_path / "s") as broker:
        for number in range(groups):
            fill(broker, f"T{number}", rounds)
        ready = threading.Barrier(groups)

        def work(number: int) -> None:
            for offset in range(1, rounds + 1):
                ready.wait()
                broker.offsets.commit("g", f"T{number}", 0, offset)
                broker.settle().wait()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(groups)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        copied = copy_store(broker.path, tmp_path / "killed")
    with open_store(copied) as opened:
        assert opened.offsets.of_group("g") == {(f"T{number}", 0): rounds for number in range(groups)}


class TestWhoChangedTheTable:
    """The history counts where the table is as it was saved last, and else the table."""

    @pytest.fixture
    def killed(self, tmp_path: Path) -> Path:
        """A store whose table has offset 5, and whose history has 9."""
        with open_store(tmp_path / "s") as broker:
            fill(broker)
            for offset in (3, 5):
                broker.offsets.commit("g", "T", 0, offset)
                broker.persist()
                copied = tmp_path / f"table-{offset}"
                copied.write_bytes((broker.path / "config" / "consumerOffset.json").read_bytes())
            broker.offsets.commit("g", "T", 0, 9)
            broker.offsets.sync()
            return copy_store(broker.path, tmp_path / "killed")

    def opened_at(self, root: Path) -> int | None:
        with open_store(root) as broker:
            return broker.offsets.query("g", "T", 0)

    def test_as_it_was_saved_last(self, killed: Path):
        assert self.opened_at(killed) == 9
        assert self.opened_at(killed) == 9

    def test_its_backup_alone_is_left(self, killed: Path):
        (killed / "config" / "consumerOffset.json").unlink()
        assert self.opened_at(killed) == 9

    def test_rocketmq_has_committed(self, killed: Path):
        path = killed / "config" / "consumerOffset.json"
        path.write_text(path.read_text().replace("0:5", "0:7"))
        assert self.opened_at(killed) == 7
        (found,) = [
            change
            for change in decode_changes(min((killed / OFFSET_HISTORY).iterdir()).read_bytes()).changes
            if change.kind.name == "FOUND"
        ]
        assert (found.before, found.after) == (9, 7)

    def test_an_operator_put_an_older_copy_back(self, killed: Path, tmp_path: Path):
        with open_store(killed) as broker:
            broker.offsets.commit("g", "T", 0, 10)
        (killed / "config" / "consumerOffset.json").write_bytes((tmp_path / "table-3").read_bytes())
        assert self.opened_at(killed) == 3

    def test_a_new_file_of_the_history_was_begun(self, killed: Path):
        with open_store(killed) as broker:
            broker.persist()
            while not broker.offsets.is_history_long:
                for offset in range(20_000):
                    broker.offsets.commit("g", "T", 0, offset % 2)
                broker.offsets.sync()
            broker.offsets.commit("g", "T", 0, 11)
            broker.offsets.sync()
            broker.offsets.tidy()
            broker.offsets.commit("g", "T", 0, 12)
            broker.offsets.sync()
            copied = copy_store(broker.path, killed.parent / "again")
        assert len(list((copied / OFFSET_HISTORY).iterdir())) > 1
        assert self.opened_at(copied) == 12


LIFE = """
import os, signal, sys
from seglog import Broker, ConsumeFrom, Durability, OrderlyConsumer, Producer, PushConsumer

root, kind, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])
out = os.open(root + ".done", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def work(message):
    os.write(out, b"%d/%d\\n" % (message.queue_id, message.queue_offset))

broker = Broker.open(root, small=True, durability=Durability.SYNC)
with Producer(broker) as producer:
    for number in range(jobs):
        producer.send("Jobs", b"job")
ends = sum(queue.max_offset for queue in broker.store.queues() if queue.topic == "Jobs")
make = OrderlyConsumer if kind == "orderly" else PushConsumer
consumer = make(broker, "g", "Jobs", work, consume_from=ConsumeFrom.FIRST)
consumer.start()
while sum(broker.offsets.of_group("g").values()) < ends:
    consumer.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_job_is_done_again_by_a_worker_that_was_killed_after_its_commit(tmp_path: Path):
    root, jobs = tmp_path / "s", 4
    for life in range(1, scaled(40, 200) + 1):
        kind = ("orderly", "push")[life % 2]
        ran = subprocess.run(
            [sys.executable, "-c", LIFE, root, kind, str(jobs)],
            stderr=subprocess.PIPE,
            timeout=patience_s(120),
            check=False,
        )
        assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()
        done = Counter(Path(f"{root}.done").read_text().split())
        assert {job for job, times in done.items() if times > 1} == set(), f"life {life}, {kind}"
        assert len(done) == life * jobs

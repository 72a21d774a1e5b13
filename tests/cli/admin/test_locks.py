"""``seglog locks`` shows the queue locks of the broker that has the store open."""

from __future__ import annotations

import pytest

from seglog.broker.broker import Broker
from seglog.errors import CorruptError
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.names import OURS
from tests.support.command_line import Seglog
from tests.support.material import golden

QUEUES = [MessageQueue("T", "broker-a", queue_id) for queue_id in range(2)]


@pytest.fixture
def broker(tmp_path):
    with Broker.open(tmp_path / "s", background=False) as opened:
        opened.store.put("T", b"x")
        yield opened


def test_s2_29_locks_are_shown_with_group_queue_client_age_and_expiry(seglog: Seglog, broker):
    broker.locks.lock("g", QUEUES, "a")
    broker.locks.lock("h", QUEUES[:1], "b")
    broker.persist()
    lines = seglog("locks", broker.path, "--json").lines
    assert [(line["group"], line["queueId"], line["client"]) for line in lines] == [
        ("g", 0, "a"),
        ("g", 1, "a"),
        ("h", 0, "b"),
    ]
    for line in lines:
        assert 0 <= line["ageMs"] < 60_000
        assert line["ageMs"] + line["expiresInMs"] == 60_000
        assert not line["expired"]
    (shown,) = seglog("locks", broker.path, "h").stdout.splitlines()[1:]
    assert shown.split()[:3] == ["h", "T/0", "b"]


def test_locks_that_were_given_back_are_shown_no_more(seglog: Seglog, broker):
    broker.locks.lock("g", QUEUES, "a")
    broker.persist()
    broker.locks.unlock("g", QUEUES, "a")
    broker.persist()
    assert seglog("locks", broker.path).stdout == "no locks\n"


def test_without_a_broker_all_queues_are_free(seglog: Seglog, broker):
    broker.locks.lock("g", QUEUES, "a")
    broker.persist()
    picture = (broker.path / OURS / "locks.json").read_bytes()
    broker.close()
    assert not (broker.path / OURS / "locks.json").exists()
    (broker.path / OURS / "locks.json").write_bytes(picture)  # as a broker that was killed leaves it
    assert "all queues are free" in seglog("locks", broker.path).stdout


def test_without_a_broker_the_queues_of_clients_of_other_processes_are_kept(seglog: Seglog, broker):
    broker.locks.lock("g", QUEUES, "a", is_lasting=True)
    broker.persist()
    broker.close()
    said = seglog("locks", broker.path).stdout
    assert said == "no broker has the store open: 2 queues kept for the owners of before\n"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"drawnMs":1,"liveMs":2}', '{"drawnMs":1,"liveMs":2,"locks":[1]}']
)
def test_a_damaged_picture_is_said_to_be_one(seglog: Seglog, broker, text):
    (broker.path / OURS).mkdir(exist_ok=True)
    (broker.path / OURS / "locks.json").write_text(text)
    assert seglog("locks", broker.path).exit_code == CorruptError.exit_code


def test_showing_locks_changes_nothing(seglog: Seglog, broker):
    broker.locks.lock("g", QUEUES, "a")
    broker.persist()
    folders = [broker.path / name for name in ("config", OURS, "commitlog")]
    before = [golden.file_digest(folder) for folder in folders]
    assert seglog("locks", broker.path).exit_code == 0
    assert [golden.file_digest(folder) for folder in folders] == before

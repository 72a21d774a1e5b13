"""``seglog query``: by key, by unique key, by id; the messages decide, not the index."""

from __future__ import annotations

import base64

import pytest

from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.stores import Lengths

SMALL: Lengths = {"segment_size_bytes": 1 << 16, "queue_file_size_bytes": 2000}


@pytest.fixture
def store(tmp_path):
    """A store of which message ``n`` has the keys ``all`` and ``n``; the puts are returned beside it."""
    with MessageStore.open(tmp_path / "s", **SMALL) as store:
        puts = [
            store.put(
                "orders",
                b"body %d" % n,
                queue_id=n % 2,
                keys=["all", str(n)],
                properties={"UNIQ_KEY": f"U{n}"},
            )
            for n in range(10)
        ]
    return tmp_path / "s", puts


def test_a_key_finds_its_messages_and_nothing_changes(seglog: Seglog, store):
    path, _puts = store
    before = golden.tree_digest(path)
    ran = seglog("query", path, "orders", "7", "--json")
    assert ran.exit_code == 0
    assert [(line["queueId"], line["queueOffset"], line["body"]) for line in ran.lines] == [(1, 3, "body 7")]
    shown = seglog("query", path, "orders", "all")
    assert "body 0" in shown.stdout
    assert "10 messages" in shown.stdout
    assert golden.tree_digest(path) == before


def test_count_keeps_the_newest_and_times_bound_the_answer(seglog: Seglog, store):
    path, puts = store
    bodies = [line["body"] for line in seglog("query", path, "orders", "all", "--count", "2", "--json").lines]
    assert bodies == ["body 8", "body 9"]
    last = puts[-1].store_timestamp_ms
    assert len(seglog("query", path, "orders", "all", "--to", last, "--json").lines) == 10
    assert seglog("query", path, "orders", "all", "--from", last + 1).exit_code == NotFoundError.exit_code
    assert len(seglog("query", path, "orders", "all", "--from", "2020-01-01T00:00Z", "--json").lines) == 10
    assert seglog("query", path, "orders", "all", "--to", "2020-01-01").exit_code == NotFoundError.exit_code


def test_an_id_names_one_message_by_its_place_or_by_its_unique_key(seglog: Seglog, store):
    path, puts = store
    (found,) = seglog("query", path, "--id", puts[4].message_id, "--json").lines
    assert found["body"] == "body 4"
    assert seglog("query", path, "orders", "--id", puts[4].message_id, "--json").lines == [found]
    assert seglog("query", path, "orders", "--id", "U4", "--json").lines == [found]
    shown = seglog("query", path, "--id", puts[4].message_id).stdout
    assert "orders/0" in shown
    assert "UNIQ_KEY=U4" in shown


def test_what_is_not_there_ends_with_13(seglog: Seglog, store):
    path, puts = store
    for arguments in (
        ["orders", "nosuch"],
        ["nosuch", "all"],
        ["orders", "--id", "nosuch"],
        ["--id", "7F" + puts[0].message_id[2:-1] + "1"],
        ["others", "--id", puts[0].message_id],
    ):
        assert seglog("query", path, *arguments).exit_code == NotFoundError.exit_code


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["orders"],
        ["orders", "k", "--id", "x"],
        ["--id", "nosuch"],
        ["orders", "k", "--count", "0"],
        ["orders", "k", "--from", "yesterday"],
        ["orders", "k", "--to", "-1"],
        ["orders", "k", "--to", "9" * 30],
    ],
)
def test_what_makes_no_sense_is_refused(seglog: Seglog, store, arguments):
    path, _puts = store
    assert seglog("query", path, *arguments).exit_code == InvalidArgumentError.exit_code


@pytest.mark.parametrize("name", ["roll", "d-noindex-halt", "d-indexgarbage", "idxroll"])
def test_keys_of_a_real_store_lead_to_the_messages_that_have_them(seglog: Seglog, tmp_path, name):
    path = golden.extract(name, tmp_path)
    before = golden.tree_digest(path)
    with MessageStore.open(path, read_only=True) as store:
        queue = next(queue for queue in store.queues() if queue.max_offset > queue.min_offset)
        message = next(m for m in store.get(queue.topic, queue.queue_id, queue.min_offset, 8) if m.keys)
    lines = seglog("query", path, message.topic, message.keys[0], "--count", 9999, "--json").lines
    assert message.phy_offset in {line["commitLogOffset"] for line in lines}
    assert golden.tree_digest(path) == before


@pytest.mark.parametrize(
    "words", [["get", "STORE", "BCQTopic", "--queue", "0"], ["query", "STORE", "BCQTopic", "ibk2"]]
)
def test_the_messages_of_an_inner_batch_are_shown(seglog: Seglog, tmp_path, words):
    root = golden.extract("innerbatch", tmp_path)
    words = [str(root) if word == "STORE" else word for word in words]
    shown = seglog(*words).stdout
    assert "(batch of 3 messages) " in shown
    assert "WAIT" not in shown, "no properties of theirs"
    (batch,) = (line["batch"] for line in seglog(*words, "--json").lines if line.get("keys") == ["ibk2"])
    assert [(part["queueOffset"], part["keys"]) for part in batch] == [
        (1, ["ib2k0"]),
        (2, ["ib2k1"]),
        (3, ["ib2k2"]),
    ]
    assert [len(base64.b64decode(part["body"])) for part in batch] == [10, 15, 20]

"""``seglog offsets local``: where clients that broadcast go on, by the files on their machine."""

from __future__ import annotations

import pytest

from seglog import MessageStore
from seglog.consumer.offsets.local_offsets_json import encode_local_offsets
from seglog.remoting.message_queue import MessageQueue
from tests.support.command_line import Seglog
from tests.support.material import golden


@pytest.fixture
def store(tmp_path):
    """Queue 0 of ``T`` has 5 messages."""
    with MessageStore.open(tmp_path / "s", small=True) as opened:
        for _ in range(5):
            opened.put("T", b"x")
    return tmp_path / "s"


@pytest.fixture
def folder(tmp_path):
    """Two clients: one is at 3 in queue 0 and at 1 in a queue that is not there, one is beyond the end."""
    _write(tmp_path / "offsets", "10.0.0.1@a", "g", {("T", 0): 3, ("T", 1): 1})
    _write(tmp_path / "offsets", "10.0.0.1@b", "g", {("T", 0): 9})
    return tmp_path / "offsets"


def _write(folder, client, group, offsets):
    path = folder / client / group / "offsets.json"
    path.parent.mkdir(parents=True)
    queues = {MessageQueue(topic, "broker-a", number): at for (topic, number), at in offsets.items()}
    path.write_bytes(encode_local_offsets(queues))
    return path


def test_each_client_is_held_against_the_queues_of_the_store(seglog: Seglog, store, folder):
    lines = seglog("offsets", "local", store, folder, "--json").lines
    assert [
        (line["client"], line["queueId"], line["offset"], line["maxOffset"], line["lag"]) for line in lines
    ] == [("10.0.0.1@a", 0, 3, 5, 2), ("10.0.0.1@a", 1, 1, None, None), ("10.0.0.1@b", 0, 9, 5, -4)]
    assert [line["state"] for line in lines] == [
        "",
        "no such queue in this store",
        "beyond the end: the broker moves it to an offset that it has",
    ]


def test_a_damaged_file_counts_by_its_backup_and_without_one_says_that_the_client_does_not_start(
    seglog: Seglog, store, folder
):
    damaged = folder / "10.0.0.1@b" / "g" / "offsets.json"
    damaged.with_suffix(".json.bak").write_bytes(damaged.read_bytes())
    damaged.write_bytes(b"{]")
    lines = seglog("offsets", "local", store, folder, "--json").lines
    assert [line["offset"] for line in lines if line["client"] == "10.0.0.1@b"] == [9]
    damaged.with_suffix(".json.bak").unlink()
    (line,) = (
        line for line in seglog("offsets", "local", store, folder, "--json").lines if "problem" in line
    )
    assert line["kind"] == "local-offset-damage"
    assert line["file"] == str(damaged)
    assert "the client does not start" in seglog("--wide", "offsets", "local", store, folder).stdout


def test_nothing_is_written_and_names_cannot_move_the_cursor(seglog: Seglog, store, tmp_path):
    folder = tmp_path / "offsets"
    _write(folder, "a\x1b[2J", "g\n", {("T", 0): 1})
    before = golden.file_digest(folder), golden.file_digest(store)
    run = seglog("offsets", "local", store, folder)
    assert run.exit_code == 0
    assert "\x1b[2J" not in run.stdout
    assert (golden.file_digest(folder), golden.file_digest(store)) == before


def test_without_a_folder_it_says_what_to_type(seglog: Seglog, store, tmp_path):
    run = seglog("offsets", "local", store, tmp_path / "none")
    assert run.exit_code != 0
    assert "rocketmq.client.localOffsetStoreDir" in run.stderr

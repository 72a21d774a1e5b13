"""``seglog branch``: a branch appends, consumes and recovers, and no byte of its store changes."""

from __future__ import annotations

import pytest

from seglog.broker.broker import Broker
from seglog.client.links.local_link import LocalLink
from seglog.consumer.orderly import OrderlyConsumer
from seglog.errors import InvalidArgumentError, InvalidNameError, NotFoundError, StoreLockedError
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.lives import BODY, GROUP, TOPIC, UNIQUE, live, write_offsets
from tests.support.material.stores import fill, served


@pytest.fixture
def life(tmp_path):
    return live(tmp_path / "s", others=200)


def branch_of(seglog, life, *arguments):
    ran = seglog("branch", "create", life.path, "replay", *arguments, "--json")
    assert ran.exit_code == 0, ran.stderr
    return life.path / "seglog" / "branches" / "replay"


def own_files(path):
    """The files of a store without those of its branches."""
    return {
        name: it
        for name, it in golden.tree_digest(path).items()
        if not name.startswith("seglog/branches") and name != "seglog/"
    }


def test_a_branch_serves_what_its_store_does_and_shares_full_files(seglog: Seglog, life):
    before = own_files(life.path)
    branch = branch_of(seglog, life)
    assert own_files(life.path) == before
    with (
        MessageStore.open(life.path, read_only=True) as one,
        MessageStore.open(branch, read_only=True) as two,
    ):
        assert served(one) == served(two)
    assert (branch / "commitlog" / f"{0:020d}").stat().st_nlink == 2
    assert any(file.stat().st_nlink == 1 for file in (branch / "commitlog").iterdir())


def test_appending_consuming_and_recovering_a_branch_changes_nothing_of_the_store(seglog: Seglog, life):
    write_offsets(life.path, {f"{TOPIC}@{GROUP}": {0: 5}})
    branch = branch_of(seglog, life)
    before = own_files(life.path)
    with MessageStore.open(branch) as store:
        fill(store, 300, topics=3)
    seen = []
    with (
        Broker.open(branch, background=False) as broker,
        OrderlyConsumer(LocalLink(broker), GROUP, {TOPIC: "*"}, seen.append) as consumer,
    ):
        consumer.run_until_idle()
    assert len(seen) >= 500
    assert own_files(life.path) == before
    # A crash, and a log whose end is damaged back into a file that is shared.
    (branch / "abort").touch()
    files = sorted((branch / "commitlog").iterdir())
    shared = [file for file in files if file.stat().st_nlink > 1]
    for file in files[len(shared) :]:
        file.unlink()
    with MessageStore.open(branch) as store:
        fill(store, 50)
    assert own_files(life.path) == before


def test_a_shared_file_whose_tail_is_lost_is_recovered_in_a_copy(seglog: Seglog, life):
    branch = branch_of(seglog, life)
    files = sorted((branch / "commitlog").iterdir())
    shared = [file for file in files if file.stat().st_nlink > 1]
    # Damage the shared bytes themselves: recovery of the branch must still write elsewhere.
    with shared[-1].open("r+b") as stream:
        stream.seek(30_000)
        stream.write(bytes(20_000))
    for file in files[len(shared) :]:
        file.unlink()
    (branch / "abort").touch()
    before = own_files(life.path)
    with MessageStore.open(branch) as store:
        store.put("t", b"x")
    assert own_files(life.path) == before
    assert (shared[-1]).stat().st_nlink == 1


def test_changes_of_the_store_do_not_reach_the_branch(seglog: Seglog, life):
    branch = branch_of(seglog, life)
    before = golden.tree_digest(branch)
    with MessageStore.open(life.path) as store:
        fill(store, 300)
    assert seglog("skip", life.path, "audit", TOPIC, 0, "--apply").exit_code == 0
    assert golden.tree_digest(branch) == before


def test_an_erase_goes_through_all_branches(seglog: Seglog, life):
    branch = branch_of(seglog, life)
    with MessageStore.open(branch) as store:
        store.put(f"%RETRY%{GROUP}", BODY, properties={"UNIQ_KEY": UNIQUE})
    ran = seglog("erase", life.path, UNIQUE, "--apply", "--yes", "--json")
    assert ran.exit_code == 0, ran.stdout
    stores = [copy["store"] for copy in ran.lines[0]["copies"]]
    assert (stores.count(""), stores.count("seglog/branches/replay")) == (6, 7)
    for file in life.path.rglob("*"):
        assert not file.is_file() or BODY not in file.read_bytes()


def test_diff_tells_offsets_retries_dead_letters_and_new_messages(seglog: Seglog, life):
    branch = branch_of(seglog, life)
    with MessageStore.open(branch) as store:
        store.put(f"%DLQ%{GROUP}", b"dead", properties={"UNIQ_KEY": "X"})
        for _number in range(3):
            store.put(f"%RETRY%{GROUP}", b"again")
        store.put("new", b"1")
    with MessageStore.open(life.path) as store:
        store.put(TOPIC, b"went on")
    assert seglog("skip", branch, "audit", TOPIC, 0, "--to", "300", "--apply").exit_code == 0
    lines = seglog("branch", "diff", life.path, "replay", "--json").lines
    queues = {
        (one["use"], one["topic"]): (one["inStore"], one["inBranch"])
        for one in lines
        if one["kind"] == "branch-queue"
    }
    assert queues == {
        ("dead", f"%DLQ%{GROUP}"): (0, 1),
        ("retry", f"%RETRY%{GROUP}"): (0, 3),
        ("new", "new"): (0, 1),
        ("new", TOPIC): (1, 0),
    }
    (offset,) = [one for one in lines if one["kind"] == "branch-offset"]
    at = life.born.queue_offset
    assert (offset["group"], offset["atBranch"], offset["inStore"], offset["inBranch"]) == (
        "audit",
        at,
        at,
        300,
    )
    shown = seglog("branch", "diff", life.path, "replay").stdout
    assert "dead letters: 1 in the branch, 0 in the store" in shown


def test_groups_of_a_branch_can_go_back_in_time(seglog: Seglog, life):
    branch = branch_of(seglog, life, "--rewind", life.born.store_timestamp_ms, "--group", "audit")
    assert {one["group"]: one["nextOffset"] for one in explained(seglog, branch)} == {
        GROUP: life.born.queue_offset + 1,
        "audit": 0,
    }
    other = seglog("branch", "create", life.path, "other", "--rewind", "0", "--group", "nobody")
    assert other.exit_code == NotFoundError.exit_code
    assert [one["name"] for one in seglog("branch", "list", life.path, "--json").lines] == ["replay"]


def explained(seglog, path):
    return next(
        line["groups"] for line in seglog("explain", path, UNIQUE, "--json").lines if "groups" in line
    )


def test_drop_removes_the_branch_and_nothing_else(seglog: Seglog, life):
    before = own_files(life.path)
    branch = branch_of(seglog, life)
    seglog("branch", "create", life.path, "second")
    assert [one["name"] for one in seglog("branch", "list", life.path, "--json").lines] == [
        "replay",
        "second",
    ]
    assert "replay" in seglog("branch", "list", life.path).stdout
    lock = RealFiles().lock(branch)
    try:
        assert (
            seglog("branch", "drop", life.path, "replay", "--apply").exit_code == StoreLockedError.exit_code
        )
    finally:
        lock.release()
    assert seglog("branch", "drop", life.path, "replay", "--apply").exit_code == 0
    assert seglog("branch", "drop", life.path, "second", "--apply").exit_code == 0
    assert not branch.exists()
    assert list(branch.parent.iterdir()) == []
    assert own_files(life.path) == before
    assert (life.path / "commitlog" / f"{0:020d}").stat().st_nlink == 1
    assert seglog("branch", "list", life.path).stdout == "no branches\n"


def test_what_makes_no_sense_is_refused(seglog: Seglog, life, tmp_path):
    branch_of(seglog, life)
    assert seglog("branch", "create", life.path, "replay").exit_code == InvalidArgumentError.exit_code
    for name in ("../x", "", ".hidden", "a/b", "x.unfinished"):
        assert seglog("branch", "create", life.path, name).exit_code == InvalidNameError.exit_code
        assert seglog("branch", "drop", life.path, name, "--apply").exit_code == InvalidNameError.exit_code
    assert seglog("branch", "diff", life.path, "nosuch").exit_code == NotFoundError.exit_code
    assert seglog("branch", "drop", life.path, "nosuch", "--apply").exit_code == NotFoundError.exit_code
    assert seglog("branch", "create", tmp_path / "nosuch", "x").exit_code == NotFoundError.exit_code
    assert not (tmp_path / "nosuch").exists()


def test_what_killed_commands_left_is_no_branch(seglog: Seglog, life):
    branch = branch_of(seglog, life)
    for name in ("x.unfinished", "y.dropped"):
        (branch.parent / name).mkdir()
    assert [one["name"] for one in seglog("branch", "list", life.path, "--json").lines] == ["replay"]
    assert seglog("erase", life.path, UNIQUE, "--apply", "--yes").exit_code == 0


def test_a_branch_of_an_open_store(seglog: Seglog, life):
    with MessageStore.open(life.path) as store:
        put = store.put("t", b"just now")
        branch = branch_of(seglog, life)
        store.put("t", b"later")
    with MessageStore.open(branch) as store:
        assert store.message_at(put.phy_offset).body == b"just now"
        assert store.max_offset("t", 0) == 1

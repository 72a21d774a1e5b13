"""``seglog offsets``: where groups stand, who moved them, and how they get back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError, NotFoundError, OffsetRangeError, SeglogError, StoreLockedError
from tests.support.brokers import open_broker, send
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.narrow import not_none
from tests.support.rows import every_row

START_MS = 1_800_000_000_000


@pytest.fixture
def store(tmp_path):
    """Two queues of 5 and 2 messages, a second apart; ``g`` went on to 4 and 2, and back to 1."""
    clock = VirtualClock(START_MS)
    with open_broker(tmp_path / "s", clock) as broker:
        for queue_id in (0, 0, 0, 0, 0, 1, 1):
            send(broker, "T", queue_id=queue_id)
            clock.advance(1000)
        for queue_id, offset, client in ((0, 4, "a"), (1, 2, "a"), (0, 1, "b")):
            broker.offsets.commit("g", "T", queue_id, offset, client)
            clock.advance(1000)
        broker.offsets.commit("h", "T", 0, 5, "a")
    return tmp_path / "s"


def offsets(seglog, store, group="g"):
    return {
        line["queueId"]: line["offset"] for line in seglog("offsets", "show", store, group, "--json").lines
    }


def test_show_tells_offset_range_and_lag_of_each_queue(seglog: Seglog, store):
    lines = seglog("offsets", "show", store, "g", "--json").lines
    assert [(line["queueId"], line["offset"], line["maxOffset"], line["lag"]) for line in lines] == [
        (0, 1, 5, 4),
        (1, 2, 2, 0),
    ]
    assert {line["group"] for line in seglog("offsets", "show", store, "--json").lines} == {"g", "h"}


def test_lag_sums_the_queues_of_a_topic(seglog: Seglog, store):
    lines = seglog("offsets", "lag", store, "--json").lines
    assert [(line["group"], line["queues"], line["lag"], line["lost"]) for line in lines] == [
        ("g", 2, 4, 0),
        ("h", 1, 0, 0),
    ]


def test_log_flags_the_step_back_and_blame_names_its_client(seglog: Seglog, store):
    lines = seglog("offsets", "log", store, "g", "--json").lines
    assert [(line["before"], line["after"], line["client"], line["backwards"]) for line in lines] == [
        (None, 4, "a", False),
        (None, 2, "a", False),
        (4, 1, "b", True),
    ]
    assert [line["after"] for line in seglog("offsets", "log", store, "--backwards", "--json").lines] == [1]
    assert [line["after"] for line in seglog("offsets", "log", store, "--count", 1, "--json").lines] == [5]
    blamed = seglog("offsets", "blame", store, "g", "--json").lines
    assert [(line["queueId"], line["client"]) for line in blamed] == [(0, "b"), (1, "a")]
    assert "BACKWARDS" in seglog("offsets", "log", store).stdout


def test_reading_commands_change_nothing(seglog: Seglog, store):
    before = golden.file_digest(store)
    for name in ("show", "lag", "log", "blame"):
        assert seglog("offsets", name, store).exit_code == 0
    assert seglog("offsets", "reset", store, "g", "T", "--start").exit_code == 0
    assert seglog("offsets", "restore", store, "--at", START_MS + 8000).exit_code == 0
    assert golden.file_digest(store) == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--start"], {0: 0, 1: 0}),
        (["--end"], {0: 5, 1: 2}),
        (["--at", str(START_MS + 3000)], {0: 3, 1: 0}),
        (["--to", "2"], {0: 2, 1: 2}),
        (["--to", "3", "--queue", "0"], {0: 3, 1: 2}),
    ],
)
def test_reset_shows_the_moves_and_makes_them_when_told(seglog: Seglog, store, arguments, expected):
    command = ["offsets", "reset", store, "g", "T", *arguments]
    *planned, _preview = seglog(*command, "--json").lines
    assert offsets(seglog, store) == {0: 1, 1: 2}
    done = seglog(*command, "--apply", "--json").lines
    assert offsets(seglog, store) == expected
    assert [line["applied"] for line in planned + done] == [False] * len(planned) + [True] * len(done)
    assert [line["after"] for line in planned] == [line["after"] for line in done]
    moved = [line for line in done if line["before"] != line["after"]]
    newest = seglog("offsets", "log", store, "g", "--json").lines[3:]
    assert [line["client"] for line in newest] == ["seglog offsets reset"] * len(moved)


def test_a_group_that_never_committed_is_reset_too_and_a_broker_takes_it(seglog: Seglog, store):
    told = seglog("offsets", "reset", store, "new", "T", "--end", "--apply")
    assert told.exit_code == 0
    assert "warning: group new has no offset in T yet" in told.stderr
    assert "warning" not in seglog("offsets", "reset", store, "g", "T", "--end").stderr
    with open_broker(store) as broker:
        assert broker.offsets.of_group("new") == {("T", 0): 5, ("T", 1): 2}
        assert broker.offsets.take_reset("new", "T", 0) is None


def test_a_reset_that_makes_no_sense_changes_nothing(seglog: Seglog, store):
    refused: dict[str, type[SeglogError]] = {
        "g T": InvalidArgumentError,
        "g T --start --to 1": InvalidArgumentError,
        "g T --to 3 --apply": OffsetRangeError,
        "g U --start": NotFoundError,
        "g T --queue 7 --start": NotFoundError,
    }
    before = golden.file_digest(store)
    with every_row() as row:
        for words, error in refused.items():
            with row(words):
                assert seglog("offsets", "reset", store, *words.split()).exit_code == error.exit_code
                assert golden.file_digest(store) == before


def test_restore_brings_groups_back_to_where_they_stood(seglog: Seglog, store):
    command = ["offsets", "restore", store, "--at", START_MS + 8000]
    move, _preview = seglog(*command, "--json").lines
    assert (move["group"], move["queueId"], move["before"], move["after"]) == ("g", 0, 1, 4)
    assert seglog(*command, "--apply").exit_code == 0
    assert offsets(seglog, store) == {0: 4, 1: 2}
    assert offsets(seglog, store, "h") == {0: 5}
    assert "already" in seglog(*command).stdout
    assert seglog("offsets", "blame", store, "g", "--json").lines[0]["client"] == "seglog offsets restore"


def test_restore_names_the_queues_that_had_no_offset_then(seglog: Seglog, store):
    ran = seglog("offsets", "restore", store, "--at", START_MS + 7_500)
    assert [line.split()[1] for line in ran.stdout.splitlines()[1:-2]] == ["T/0"]
    assert ran.stderr == (
        "warning: 2 queues had no offset then, and stay: g in T/1, h in T/0;"
        " `seglog offsets reset STORE GROUP TOPIC --queue N --start --apply` moves one\n"
    )
    assert seglog("offsets", "restore", store, "--at", START_MS + 7_500, "--topic", "U").stderr == ""


def test_a_retry_topic_without_a_message_is_no_queue_that_is_gone(seglog: Seglog, store):
    with open_broker(store, VirtualClock(START_MS + 60_000)) as broker:
        broker.offsets.commit("g", "%RETRY%g", 0, 0, "a")
        broker.offsets.commit("g", "gone", 0, 0, "a")
        broker.offsets.commit("g", "T", 3, 0, "a")  # of the queues that topics.json has
        broker.topics.put(replace(not_none(broker.topics.get("T")), read_queue_nums=4, write_queue_nums=4))
    shown = seglog("offsets", "show", store, "g").stdout.splitlines()
    assert shown[1].endswith("no message yet")
    assert [line.split()[-1] for line in shown if "T/3" in line] == ["yet"]
    assert shown[-1].endswith("no such queue")


def test_restore_to_a_moment_before_the_history_is_refused(seglog: Seglog, store):
    ran = seglog("offsets", "restore", store, "--at", START_MS)
    assert ran.exit_code == NotFoundError.exit_code
    assert "begins" in ran.stderr


def test_diff_tells_what_changed_between_two_moments(seglog: Seglog, store):
    lines = seglog("offsets", "diff", store, START_MS + 7000, START_MS + 9000, "--json").lines
    assert [(line["queueId"], line["before"], line["after"]) for line in lines] == [(0, 4, 1), (1, None, 2)]
    assert "no difference" in seglog("offsets", "diff", store, START_MS + 9000, START_MS + 9999).stdout


def test_moves_are_refused_while_a_broker_has_the_store(seglog: Seglog, store):
    with Broker.open(store, background=False):
        assert seglog("offsets", "show", store).exit_code == 0
        for command in (["reset", store, "g", "T", "--start"], ["restore", store, "--at", START_MS + 8000]):
            assert seglog("offsets", *command, "--apply").exit_code == StoreLockedError.exit_code


def test_a_store_without_offsets_says_so(seglog: Seglog, tmp_path):
    golden.extract("roll", tmp_path)
    assert "no offsets" in seglog("offsets", "show", tmp_path / "roll").stdout
    assert "no changes" in seglog("offsets", "log", tmp_path / "roll").stdout


@pytest.mark.parametrize("arguments", [("log",), ("blame",), ("restore", "g", "--at", str(START_MS + 9_500))])
def test_damage_of_the_history_is_told(seglog: Seglog, store, arguments):
    command, *options = arguments
    assert seglog("offsets", command, store, *options).stderr == ""
    file = store / "seglog" / "offsets" / "00000000000000000000"
    data = bytearray(file.read_bytes())
    data[data.index(b"OFH1", len(data) // 2) + 12] ^= 4
    file.write_bytes(data)
    ran = seglog("offsets", command, store, *options, "--json")
    assert ran.exit_code == 0
    assert "bytes of the history are damaged" in ran.stderr

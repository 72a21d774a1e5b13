"""The history of offsets shows who moved which group where; it survives crashes and stays short."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from seglog.broker.offsets.offset_history import OffsetHistory, join_commits
from seglog.broker.offsets.offset_history_query import (
    OFFSET_HISTORY,
    OffsetDifference,
    OffsetPast,
    QueueKey,
    apply,
)
from seglog.broker.offsets.offsets import ConsumerOffsets
from seglog.clock import VirtualClock
from seglog.errors import FullError, NotFoundError
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import UpdateConsumerOffsetHeader
from seglog.storage.format.ours.offset_history import (
    MAX_CLIENT_BYTES,
    OFFSET_CHANGE,
    ChangeKind,
    OffsetChange,
    decode_changes,
    decode_offsets,
    encode_changes,
)
from seglog.storage.small_files.config_file import ConfigFile
from tests.support.brokers import open_broker, send
from tests.support.crash.crash_files import CrashFile, CrashFiles, KilledError
from tests.support.rows import each_row
from tests.support.scale import scaled

ROOT = Path("/store")
START_MS = 1_000_000
CHANGES = [
    OffsetChange(ChangeKind.BEGIN, 5),
    OffsetChange(ChangeKind.STATE, 5, "g", "T", 1, None, 7),
    OffsetChange(ChangeKind.COMMIT, 6, "g", "T", 1, 7, 9, "client@1", 3),
    OffsetChange(ChangeKind.DELETE, 7, "grüppe", "%RETRY%g", 1, 9, None),
]


def open_table(files, clock, **bounds):
    file = ConfigFile(files, ROOT / "config" / "consumerOffset.json")
    return ConsumerOffsets(file, clock, OffsetHistory(files, ROOT, clock, **bounds))


def past(files):
    return OffsetPast(files, ROOT)


def told(changes):
    return [(change.kind.name, change.before, change.after, change.client_id) for change in changes]


def sizes(files):
    return [entry.size_bytes for entry in files.list_dir(ROOT / OFFSET_HISTORY)]


def test_changes_come_back_as_they_were_written():
    data = encode_changes(CHANGES)
    decoded = decode_changes(data)
    assert (decoded.changes, decoded.end_bytes, decoded.damaged_bytes) == (CHANGES, len(data), 0)


@each_row("cut_bytes", range(1, len(encode_changes([CHANGES[-1]])) + 1))
def test_a_torn_last_change_is_no_change(cut_bytes):
    data = encode_changes(CHANGES)
    decoded = decode_changes(data[:-cut_bytes])
    assert decoded.changes == CHANGES[:-1]
    assert decoded.end_bytes == len(encode_changes(CHANGES[:-1]))
    assert decoded.damaged_bytes == 0


@given(st.integers(0, len(encode_changes([CHANGES[1]])) - 1), st.integers(1, 255))
def test_damage_costs_the_change_it_lies_in(at, flip):
    data = bytearray(encode_changes(CHANGES))
    begin_bytes = len(encode_changes([CHANGES[0]]))
    data[begin_bytes + at] ^= flip
    decoded = decode_changes(bytes(data))
    assert decoded.changes == [CHANGES[0], *CHANGES[2:]]
    assert decoded.damaged_bytes == len(encode_changes([CHANGES[1]]))
    assert decoded.end_bytes == len(data)


@given(
    st.lists(
        st.builds(
            OffsetChange,
            st.sampled_from(ChangeKind),
            st.just(1),
            st.sampled_from(["g", "h"]),
            st.sampled_from(["T", "ü"]),
            st.integers(0, 1),
            before=st.none(),
            after=st.none() | st.integers(0, 9),
            client_id=st.just(""),
            commits=st.just(1),
        ),
        max_size=12,
    ),
    st.integers(0, 800),
    st.integers(0, 255),
)
def test_offsets_are_decoded_as_the_changes_one_by_one_lead_to(changes, at, flip):
    data = bytearray(encode_changes(changes))
    if at < len(data):
        data[at] ^= flip
    expected: dict[QueueKey, int] = {}
    decoded, found = decode_changes(bytes(data)), decode_offsets(bytes(data))
    for change in decoded.changes:
        apply(expected, change)
    assert found.offsets == expected
    assert (found.state_bytes, found.end_bytes) == (decoded.state_bytes, decoded.end_bytes)


def test_a_long_name_of_a_client_is_cut_between_characters():
    change = OffsetChange(ChangeKind.COMMIT, 1, "g", "T", 0, None, 1, "ü" * MAX_CLIENT_BYTES)
    data = encode_changes([change])
    assert decode_changes(data).changes[0].client_id == "ü" * (MAX_CLIENT_BYTES // 2)
    assert len(data) == OFFSET_CHANGE.size_bytes + 2 + MAX_CLIENT_BYTES


def test_every_commit_is_told_with_its_client_and_going_back_is_flagged():
    files, clock = CrashFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    for offset, client in ((5, "a"), (9, "a"), (7, "b"), (7, "c")):
        table.commit("g", "T", 0, offset, client)
        clock.advance(1000)
    table.persist()
    changes = list(past(files).log())
    assert told(changes) == [("COMMIT", None, 5, "a"), ("COMMIT", 5, 9, "a"), ("COMMIT", 9, 7, "b")]
    assert [change.is_backwards for change in changes] == [False, False, True]
    assert [change.timestamp_ms - START_MS for change in changes] == [0, 1000, 2000]
    assert told(past(files).blame()) == [("COMMIT", 9, 7, "b")]


@pytest.mark.parametrize("after", ["after_kill", "after_power_loss"])
def test_the_table_never_says_what_the_history_does_not(after):
    for calls in range(60):
        files, clock = CrashFiles(), VirtualClock(START_MS)
        table = open_table(files, clock, file_bytes=100)
        for offset in (5, 6):
            table.commit("g", "T", 0, offset, "a")
            table.persist()
            table.tidy()
        for queue_id in range(8):
            table.commit("g", "T", queue_id, 7, "b")
        files.calls_left = calls
        try:
            table.persist()
            table.tidy()
        except KilledError:
            files = getattr(files, after)()
        else:
            assert len(sizes(files)) == 3
            assert calls > 15
            return
        again = open_table(files, clock)
        again.persist()
        here = again.query("g", "T", 0)
        assert here in (6, 7)
        assert ("COMMIT", here) in [(change.kind.name, change.after) for change in past(files).log()]
        assert past(files).at(START_MS)[("g", "T", 0)] == here
    pytest.fail("a save takes more calls than that")


def test_groups_are_found_where_they_stood_at_a_moment():
    files, clock = CrashFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    table.commit("g", "T", 0, 5)
    clock.advance(1000)
    table.commit("g", "T", 0, 8)
    table.commit("h", "T", 1, 1)
    table.persist()
    assert past(files).at(START_MS) == {("g", "T", 0): 5}
    assert past(files).at(START_MS + 999) == {("g", "T", 0): 5}
    assert past(files).at(START_MS + 1000) == {("g", "T", 0): 8, ("h", "T", 1): 1}
    assert past(files).diff(START_MS, START_MS + 1000) == [
        OffsetDifference("g", "T", 0, 5, 8),
        OffsetDifference("h", "T", 1, None, 1),
    ]
    begin = "begins at 1970-01-01 00:16:40 UTC, after 1970-01-01 00:16:39 UTC"
    with pytest.raises(NotFoundError, match=begin):
        past(files).at(START_MS - 1)


def test_a_store_without_a_history_says_so():
    files = CrashFiles()
    assert past(files).begin_ms is None
    assert list(past(files).log()) == []
    with pytest.raises(NotFoundError, match="no history"):
        past(files).at(START_MS)


def test_restoring_puts_offsets_back_and_clamps_them_to_what_the_queue_has():
    files, clock = CrashFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    table.commit("g", "T", 0, 50)
    table.commit("g", "T", 1, 5)
    table.persist()
    clock.advance(1000)
    for queue_id in range(3):
        table.commit("g", "T", queue_id, 1)
    clamped = table.restore(past(files).at(START_MS), {("T", 0): 40, ("T", 1): 40}, "admin")
    assert [(one.queue_id, one.committed_offset, one.max_offset) for one in clamped] == [(0, 50, 40)]
    assert table.of_group("g") == {("T", 0): 40, ("T", 1): 5, ("T", 2): 1}
    table.persist()
    assert told(past(files).blame("g"))[:2] == [("RESTORE", 1, 40, "admin"), ("RESTORE", 1, 5, "admin")]


def test_what_others_changed_is_found_when_the_table_is_opened_again():
    files, clock = CrashFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    table.commit("g", "T", 0, 5, "a")
    table.persist()
    other = ConsumerOffsets(ConfigFile(files, ROOT / "config" / "consumerOffset.json"), clock)
    other.commit("g", "T", 0, 3)
    other.commit("g", "U", 0, 1)
    other.persist()
    open_table(files, clock).persist()
    assert told(past(files).log()) == [
        ("COMMIT", None, 5, "a"),
        ("FOUND", 5, 3, ""),
        ("FOUND", None, 1, ""),
    ]


def test_a_cut_tail_is_written_over():
    files, clock = CrashFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    table.commit("g", "T", 0, 5, "a")
    table.persist()
    table.close()
    (path,) = (path for path in files.contents() if OFFSET_HISTORY in str(path))
    whole = files.read_file(path)
    files.write_file(path, whole + encode_changes([CHANGES[3]])[:-1] + bytes(5000))
    table = open_table(files, clock)
    table.commit("g", "T", 0, 6, "a")
    table.persist()
    assert told(past(files).log()) == [("COMMIT", None, 5, "a"), ("COMMIT", 5, 6, "a")]
    assert past(files).damaged_bytes() == 0
    assert files.read_file(path).startswith(whole)


def test_a_full_disk_loses_no_change():
    class FullFiles(CrashFiles):
        is_full = True

        @override
        def write_file(self, path, data, *, sync=True):
            if self.is_full:
                raise FullError("no space left")
            super().write_file(path, data, sync=sync)

    files, clock = FullFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    table.commit("g", "T", 0, 5, "a")
    with pytest.raises(FullError):
        table.persist()
    table.commit("g", "T", 0, 6, "a")
    files.is_full = False
    table.persist()
    assert told(past(files).log()) == [("COMMIT", None, 5, "a"), ("COMMIT", 5, 6, "a")]


def test_space_that_is_made_ahead_of_changes_is_none_of_them_and_goes_with_a_close():
    files, clock = CrashFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    for offset in (5, 6):
        table.commit("g", "T", 0, offset, "a")
        table.sync()
    (path,) = (path for path in files.contents() if OFFSET_HISTORY in str(path))
    ahead = files.read_file(path)
    assert told(past(files).log()) == [("COMMIT", None, 5, "a"), ("COMMIT", 5, 6, "a")]
    assert past(files).damaged_bytes() == 0
    table.close()
    whole = files.read_file(path)
    assert ahead == whole.ljust(len(ahead), b"\0")
    assert len(whole) == decode_changes(whole).end_bytes < len(ahead)

    killed = files.after_kill()
    killed.write_file(path, ahead)  # as a broker leaves it that is not closed
    again = open_table(killed, clock)
    assert again.query("g", "T", 0) == 6
    again.commit("g", "T", 0, 7, "b")
    again.sync()
    again.close()
    assert told(past(killed).log())[1:] == [("COMMIT", 5, 6, "a"), ("COMMIT", 6, 7, "b")]
    assert killed.read_file(path).startswith(whole)


def test_a_change_is_written_where_there_is_space_for_it_and_not_for_more():
    class FullFile(CrashFile):
        @override
        def write_at(self, data, position):
            if len(data) > 4096:
                raise FullError("no space left")
            super().write_at(data, position)

    class FullFiles(CrashFiles):
        @override
        def open(self, path, *, writable):
            return FullFile(self, self._content(path), writable=writable)

    files, clock = FullFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    for offset in (5, 6):
        table.commit("g", "T", 0, offset, "a")
        table.sync()
    assert told(past(files).log()) == [("COMMIT", None, 5, "a"), ("COMMIT", 5, 6, "a")]


def test_a_write_that_fails_half_way_leaves_nothing_of_itself():
    class Torn(CrashFile):
        @override
        def write_at(self, data, position):
            if files.is_full:
                super().write_at(data[:-1], position)
                raise FullError("no space left")
            super().write_at(data, position)

    class FullFiles(CrashFiles):
        is_full = False

        @override
        def open(self, path, *, writable):
            return Torn(self, self._content(path), writable=writable)

    files, clock = FullFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    for offset in range(1, 9):
        table.commit("g", "T", 0, offset, "a")
    files.is_full = True
    with pytest.raises(FullError):
        table.sync()
    assert table.has_unsynced
    table.delete("g")
    files.is_full = False
    table.sync()
    assert past(files).damaged_bytes() == 0
    assert past(files).newest() == {}


def test_the_history_stays_within_its_bounds_and_every_moment_left_can_be_told():
    files, clock = CrashFiles(), VirtualClock(START_MS)
    table = open_table(files, clock, file_bytes=2000, max_bytes=5000)
    stood = {}
    for offset in range(400):
        table.commit("g", "T", offset % 3, offset, f"client-{offset}")
        table.persist()
        table.tidy()
        stood[clock.now_ms()] = {
            ("g", topic, queue_id): at for (topic, queue_id), at in table.of_group("g").items()
        }
        clock.advance(1000)
    assert sum(sizes(files)) < 5000 + 3000
    begin_ms = past(files).begin_ms
    assert START_MS < begin_ms < clock.now_ms() - 20_000
    for moment_ms, offsets in stood.items():
        if moment_ms >= begin_ms:
            assert past(files).at(moment_ms) == offsets


def test_old_commits_are_joined_and_steps_back_are_kept():
    def commit(at_ms, before, after, client="a"):
        return OffsetChange(ChangeKind.COMMIT, at_ms, "g", "T", 0, before, after, client)

    changes = [
        commit(0, None, 1),
        commit(1, 1, 2),
        commit(2, 2, 3, "b"),
        commit(3, 3, 1, "b"),
        commit(4, 1, 2, "b"),
        commit(5, 2, 5, "b"),
        commit(70, 5, 6, "b"),
    ]
    joined = join_commits(changes, 60)
    assert [(one.timestamp_ms, one.before, one.after, one.client_id, one.commits) for one in joined] == [
        (1, None, 2, "a", 2),
        (2, 2, 3, "b", 1),
        (3, 3, 1, "b", 1),
        (5, 1, 5, "b", 2),
        (70, 5, 6, "b", 1),
    ]
    assert join_commits(joined, 60) == joined


@settings(max_examples=scaled(50, 2_000), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("gh"), st.integers(0, 2), st.integers(0, 9), st.booleans())))
def test_the_history_ends_where_the_table_is(commits):
    files, clock = CrashFiles(), VirtualClock(START_MS)
    table = open_table(files, clock, file_bytes=600, max_bytes=1 << 20)
    for group, queue_id, offset, is_saved in commits:
        table.commit(group, "T", queue_id, offset)
        clock.advance(1000)
        if is_saved:
            table.persist()
            table.tidy()
    table.persist()
    table.tidy()
    if commits:
        assert past(files).at(clock.now_ms()) == table.all()
        before = {}
        for change in past(files).log():
            key = change.group, change.topic, change.queue_id
            assert change.before == before.get(key)
            before[key] = change.after


def test_very_many_waiting_commits_do_not_pile_up():
    files, clock = CrashFiles(), VirtualClock(START_MS)
    table = open_table(files, clock)
    for offset in range(40_000):
        table.commit("g", "T", 0, offset, "a")
    table.persist()
    changes = list(past(files).log())
    assert len(changes) < 17_000
    assert sum(change.commits for change in changes) == 40_000
    assert changes[-1].after == 39_999


def test_a_brokers_commits_name_their_client_and_outlive_it(tmp_path):
    with open_broker(tmp_path) as broker:
        send(broker, "T")
        broker.groups.find("g")
        header = UpdateConsumerOffsetHeader("g", "T", 0, 1)
        broker.dispatch(Request(RequestCode.UPDATE_CONSUMER_OFFSET, header))
    with open_broker(tmp_path) as broker:
        assert told(broker.offset_past.log()) == [("COMMIT", None, 1, "local")]

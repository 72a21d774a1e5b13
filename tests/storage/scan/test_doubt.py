"""Whether more may be lost than is counted: what knew of the lost end, and which queues do not."""

from __future__ import annotations

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.findings import Finding
from seglog.storage.scan import Doubt, doubt_of, load_holes, lost_end, note_hole

CHECKPOINT = Finding("checkpoint-ahead", "checkpoint")
QUEUE = Finding("queue-missing", "consumequeue/T/3", messages=5)
OTHER = Finding("queue-short", "batchconsumequeue/B/0/00000000000000000000", messages=1)
ALL = Finding("queue-length-unknown", "consumequeue")


def test_a_lost_end_is_counted_where_each_queue_has_its_units():
    assert not doubt_of([CHECKPOINT])
    assert not doubt_of([QUEUE])


def test_queues_without_units_behind_the_end_may_have_lost_more():
    doubt = doubt_of([CHECKPOINT, QUEUE, OTHER])
    assert doubt.is_at_end
    assert doubt.concerns("T", 3)
    assert doubt.concerns("B", 0)
    assert not doubt.concerns("T", 4)


def test_without_any_queue_file_each_queue_may_have_lost_more():
    assert doubt_of([CHECKPOINT, QUEUE, ALL]).concerns("T", 4)
    assert (doubt_of([CHECKPOINT, QUEUE]) | doubt_of([CHECKPOINT, ALL])).concerns("T", 4)


@pytest.mark.parametrize(("expected", "is_behind"), [("places before 100", True), ("", False)])
def test_stray_index_entries_show_a_lost_end_only_behind_it(expected, is_behind):
    stray = Finding("index-entry-stray", "index", expected=expected, found="from 90 to 120")
    assert doubt_of([stray, QUEUE]).is_at_end is is_behind


def test_a_hole_that_no_message_is_known_of_may_have_held_some():
    assert doubt_of([Finding("log-hole", "commitlog/00000000000000000000", 10, 90)]).concerns("T", 0)
    assert not doubt_of([Finding("log-hole", "commitlog/00000000000000000000", 10, 90, messages=1)])


def test_a_lost_end_is_noted_once_with_all_queues_and_its_first_time(tmp_path):
    files = RealFiles()
    for queue, now_ms in ((("T", 3), 20), (("B", 0), 30)):
        (hole,) = lost_end(Doubt(is_at_end=True, queues=frozenset([queue])), 100, now_ms)
        note_hole(files, tmp_path, hole)
    (noted,) = load_holes(files, tmp_path)
    assert (noted.phy_offset, noted.first_seen_ms, noted.queues) == (100, 20, (("B", 0), ("T", 3)))

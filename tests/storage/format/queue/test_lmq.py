"""A record appears in the queues that its properties name, with the offsets they state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import InvalidArgumentError
from seglog.storage.format.queue.lmq import (
    MultiQueue,
    is_queue_name,
    lmq_names,
    multi_queues,
    topic_allows_lmq,
    with_queue_offsets,
)
from seglog.storage.format.record.properties import decode_properties, encode_properties
from tests.support.rows import every_row

NAMES = st.lists(
    st.text("abc%LMQ-_é", min_size=1, max_size=8).map(lambda name: f"%LMQ%{name}"), min_size=1, max_size=5
)


def properties(names, offsets):
    return encode_properties(
        {"INNER_MULTI_DISPATCH": names, "INNER_MULTI_QUEUE_OFFSET": offsets, "KEYS": "k"}
    )


@given(NAMES, st.data())
def test_offsets_read_back_as_they_were_written(names, data):
    offsets = [data.draw(st.integers(0, 10**18 - 1)) for _name in names]
    asked = encode_properties({"WAIT": "true", "INNER_MULTI_DISPATCH": ",".join(names), "KEYS": "k"})
    written = with_queue_offsets(asked, offsets)
    assert lmq_names(written) == names
    assert multi_queues("T", 3, written) == [
        MultiQueue(name, 0, offset) for name, offset in zip(names, offsets, strict=True)
    ]
    assert with_queue_offsets(written, offsets) == written
    assert "WAIT" not in decode_properties(written)
    assert decode_properties(written)["KEYS"] == "k"


def test_only_names_with_the_prefix_have_queue_0():
    assert multi_queues("T", 3, properties("%LMQ%a,plain", "5,6")) == [("%LMQ%a", 0, 5), ("plain", 3, 6)]


ODD_VALUES = {
    "a slash would leave the store": ("%LMQ%a/b,%LMQ%c", "1,2", [("%LMQ%c", 0, 2)]),
    "so would two dots": ("..,%LMQ%c", "1,2", [("%LMQ%c", 0, 2)]),
    "counts differ": ("%LMQ%a,%LMQ%b", "1", []),
    "trailing empty pieces do not count": ("%LMQ%a,,", "1,,", [("%LMQ%a", 0, 1)]),
    "an offset that was never given": ("%LMQ%a,%LMQ%b", "1,", []),
    "the first was never given": ("%LMQ%a,%LMQ%b", ",2", [("%LMQ%b", 0, 2)]),
    "no number": ("%LMQ%a,%LMQ%b", "null,2", [("%LMQ%b", 0, 2)]),
    "a number without end": ("%LMQ%a", "9" * 5000, []),
    "a digit that is no number": ("%LMQ%a", "²", []),
    "blank": (" ", " ", []),
    "nothing but commas": (",", ",", []),
}


def test_odd_values_name_no_queue():
    with every_row() as row:
        for name, (names, offsets, found) in ODD_VALUES.items():
            with row(name):
                assert multi_queues("T", 0, properties(names, offsets)) == found


def test_both_properties_are_needed():
    assert multi_queues("T", 0, encode_properties({"INNER_MULTI_DISPATCH": "%LMQ%a"})) == []
    assert multi_queues("T", 0, encode_properties({"INNER_MULTI_QUEUE_OFFSET": "1"})) == []
    assert multi_queues("T", 0, b"") == []


@pytest.mark.parametrize("topic", ["%RETRY%group", "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX"])
def test_retry_and_system_topics_are_not_dispatched_further(topic):
    assert not topic_allows_lmq(topic)
    assert multi_queues(topic, 0, properties("%LMQ%a", "1")) == []


def test_another_number_of_offsets_is_refused():
    with pytest.raises(InvalidArgumentError, match="1 offsets for 2 queues"):
        with_queue_offsets(encode_properties({"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b"}), [1])


def test_names_that_no_folder_can_have_are_passed_over():
    assert is_queue_name("%LMQ%" + "x" * 250)
    assert not is_queue_name("%LMQ%" + "x" * 251)
    assert not is_queue_name("%LMQ%" + "é" * 126)
    assert not is_queue_name("")
    assert not is_queue_name("a\0b")


@given(st.binary(max_size=80))
def test_arbitrary_properties_raise_nothing(raw):
    multi_queues("T", 0, b"INNER_MULTI_DISPATCH\x01" + raw + b"\x02INNER_MULTI_QUEUE_OFFSET\x01" + raw)

"""The text of a client's own offset file is the one that clients in Java write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.consumer.offsets.local_offsets_json import decode_local_offsets, encode_local_offsets
from seglog.errors import CorruptError
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.config import decode_config
from tests.support.rows import each_row

WRITTEN_BY_5_4_0 = (
    b'{\n\t"offsetTable":{\n'
    b'\t\t{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":1,\n\t\t\t"topic":"TopicTest"\n\t\t}:5,\n'
    b'\t\t{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":2,\n\t\t\t"topic":"a\\"\xc3\xa4"\n\t\t}:10\n'
    b"\t}\n}"
)
OFFSETS = {MessageQueue("TopicTest", "broker-a", 1): 5, MessageQueue('a"ä', "broker-a", 2): 10}
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
QUEUES = st.builds(MessageQueue, NAMES, NAMES, st.integers(0, 2**31 - 1))


def test_s4_07_the_text_equals_javas_byte_for_byte():
    assert encode_local_offsets(OFFSETS) == WRITTEN_BY_5_4_0
    assert decode_local_offsets(decode_config(WRITTEN_BY_5_4_0)) == OFFSETS


def test_s4_07_a_file_without_queues_too():
    assert encode_local_offsets({}) == b'{\n\t"offsetTable":{\n\t\t\n\t}\n}'
    assert decode_local_offsets(decode_config('{\n\t"offsetTable":{}\n}')) == {}, "5.5.1 writes this"


@given(st.dictionaries(QUEUES, st.integers(0, 2**63 - 1), max_size=5))
def test_what_is_written_is_read(offsets):
    assert decode_local_offsets(decode_config(encode_local_offsets(offsets))) == offsets


def test_s4_07_an_offset_of_minus_one_is_none():
    text = encode_local_offsets(OFFSETS).replace(b":5", b":-1")
    assert text != encode_local_offsets(OFFSETS)
    assert set(decode_local_offsets(decode_config(text))) < set(OFFSETS)


@each_row(
    "text",
    [
        "[]",
        "{}",
        '{"offsetTable":[]}',
        '{"offsetTable":{"x":1}}',
        '{"offsetTable":{1:1}}',
        '{"offsetTable":{{"topic":"T","brokerName":"b","queueId":true}:1}}',
        '{"offsetTable":{{"topic":"T","brokerName":"b","queueId":-1}:1}}',
        '{"offsetTable":{{"topic":"T","brokerName":3,"queueId":0}:1}}',
        '{"offsetTable":{{"topic":"T","queueId":0}:1}}',
        '{"offsetTable":{{"topic":"T","brokerName":"b","queueId":0}:-2}}',
        '{"offsetTable":{{"topic":"T","brokerName":"b","queueId":0}:9223372036854775808}}',
        '{"offsetTable":{{"topic":"T","brokerName":"b","queueId":0}:"1"}}',
    ],
)
def test_what_is_no_table_is_refused(text):
    with pytest.raises(CorruptError):
        decode_local_offsets(decode_config(text))

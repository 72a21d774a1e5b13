"""Sends are checked in RocketMQ's order and stored with the properties that its brokers add."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.broker.handlers.send import MOST_OF_BATCH
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import TopicConfig
from seglog.clock import VirtualClock
from seglog.errors import FullError
from seglog.remoting.batch import encode_batch
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import GetMaxOffsetHeader, SendMessageHeader
from seglog.remoting.peer import Peer
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.properties import decode_properties, encode_properties
from seglog.storage.format.record.sys_flag import TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from seglog.storage.writes.flush import Durability
from tests.support.brokers import open_broker, send, send_header
from tests.support.narrow import not_none

STAMP = {"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


def stored(broker, topic="T", queue_id=0):
    return broker.store.get(topic, queue_id, 0, 100).messages


def props_of(message):
    found = dict(message.properties)
    found.pop("__CRC32#", None)
    return found


def test_a_message_is_stored_with_what_a_broker_adds(broker: Broker):
    answer = send(broker, "T", b"body", properties=encode_properties({"TAGS": "A", "KEYS": "k"}))
    assert answer.code is ResponseCode.SUCCESS
    (message,) = stored(broker)
    unique_id = message.properties["UNIQ_KEY"]
    assert props_of(message) == {"TAGS": "A", "KEYS": "k", "UNIQ_KEY": unique_id, **STAMP}
    assert (message.body, message.born_timestamp_ms) == (b"body", 1_234)
    assert send_header(answer).msg_id == message.message_id
    assert send_header(answer).transaction_id == unique_id
    assert (send_header(answer).queue_id, send_header(answer).queue_offset) == (0, 0)
    assert send_header(answer).durability == Durability.ASYNC.value


def test_a_unique_key_that_came_is_kept(broker: Broker):
    answer = send(broker, "T", properties=encode_properties({"UNIQ_KEY": "mine"}))
    assert stored(broker)[0].unique_key == send_header(answer).transaction_id == "mine"


def test_the_brokers_own_properties_replace_those_that_came_and_pop_ck_goes(broker: Broker):
    came = {"CLUSTER": "x", "MSG_REGION": "x", "TRACE_ON": "false", "POP_CK": "x", "a": "b", "UNIQ_KEY": "u"}
    send(broker, "T", properties=encode_properties(came))
    assert props_of(stored(broker)[0]) == {"a": "b", "UNIQ_KEY": "u", **STAMP}


def test_names_that_only_look_like_the_brokers_own_are_left_alone(broker: Broker):
    came = {"XCLUSTER": "x", "note": "CLUSTER\x01x", "UNIQ_KEY": "u"}
    send(broker, "T", properties=encode_properties(came))
    assert props_of(stored(broker)[0]) == {**came, **STAMP}


def test_properties_of_old_clients_without_the_last_separator_are_taken(broker: Broker):
    send(broker, "T", properties=b"TAGS\x01A\x02UNIQ_KEY\x01u")
    assert props_of(stored(broker)[0]) == {"TAGS": "A", "UNIQ_KEY": "u", **STAMP}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(["TAGS", "UNIQ_KEY", "CLUSTER", "POP_CK", "a", "WAIT", "ключ"]),
        st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=6),
    ),
    st.booleans(),
)
def test_whatever_comes_the_rest_is_as_java_would_store_it(broker: Broker, came, is_cut):
    raw = encode_properties(came)
    offset = send_header(send(broker, "T", properties=raw[:-1] if is_cut else raw)).queue_offset
    (message,) = broker.store.get("T", 0, offset, 1).messages
    expected = {name: value for name, value in decode_properties(raw).items() if name != "POP_CK"} | STAMP
    found = props_of(message)
    expected.setdefault("UNIQ_KEY", found["UNIQ_KEY"])
    assert found == expected


def test_the_tag_can_be_pulled_by(broker: Broker):
    send(broker, "T", properties=encode_properties({"TAGS": "A"}))
    send(broker, "T", properties=encode_properties({"TAGS": "B"}))
    assert [message.tags for message in broker.store.get("T", 0, 0, 10, "B")] == ["B"]


def test_the_first_send_creates_the_topic_with_the_queues_the_client_wants(broker: Broker):
    assert send(broker, "T", queue_id=3).code is ResponseCode.SUCCESS
    assert not_none(broker.topics.get("T")).write_queue_nums == 4


def test_a_negative_queue_lets_the_broker_choose(broker: Broker):
    chosen = {send_header(send(broker, "T", queue_id=-1)).queue_id for _ in range(200)}
    assert chosen == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("topic", "queue_id", "default_topic", "code", "says"),
    [
        pytest.param(" ", 0, "TBW102", ResponseCode.INVALID_PARAMETER, "blank", id="blank"),
        pytest.param("a/b", 0, "TBW102", ResponseCode.INVALID_PARAMETER, "illegal", id="characters"),
        pytest.param("x" * 128, 0, "TBW102", ResponseCode.INVALID_PARAMETER, "longer", id="too long"),
        pytest.param("SELF_TEST_TOPIC", 0, "TBW102", ResponseCode.NO_PERMISSION, "forbidden", id="forbidden"),
        pytest.param("SCHEDULE_TOPIC_XXXX", 0, "TBW102", ResponseCode.NO_PERMISSION, "forbidden", id="delay"),
        pytest.param("T", 0, "absent", ResponseCode.TOPIC_NOT_EXIST, "not exist, apply first", id="no model"),
        pytest.param("T", 4, "TBW102", ResponseCode.INVALID_PARAMETER, "queueId[4]", id="queue"),
    ],
)
@pytest.mark.parametrize("code_asked", [RequestCode.SEND_MESSAGE, RequestCode.SEND_BATCH_MESSAGE], ids=str)
def test_what_is_refused_is_not_stored(
    broker: Broker, code_asked, topic, queue_id, default_topic, code, says
):
    body = encode_batch(MessageBatch([BatchMessage(b"x")]))
    answer = send(broker, topic, body, queue_id=queue_id, default_topic=default_topic, code=code_asked)
    assert answer.code is code
    assert says in not_none(answer.remark)
    assert broker.store.queues() == []


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"DELAY": "three"}, ResponseCode.SYSTEM_ERROR),
        ({"DELAY": "3", "TRAN_MSG": "true"}, ResponseCode.NO_PERMISSION),
        ({"TIMER_DELAY_SEC": "3"}, ResponseCode.SYSTEM_ERROR),
        ({"TIMER_DELIVER_MS": "3"}, ResponseCode.SYSTEM_ERROR),
        ({"TRAN_MSG": "true"}, ResponseCode.NO_PERMISSION),
    ],
    ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_what_would_never_come_out_again_is_refused(broker: Broker, properties, code):
    assert send(broker, "T", properties=encode_properties(properties)).code is code
    assert broker.store.queues() == []


@pytest.mark.parametrize("sys_flag", [TRANSACTION_PREPARED, TRANSACTION_ROLLBACK])
def test_the_level_of_what_opens_or_undoes_a_transaction_is_not_looked_at(broker: Broker, sys_flag):
    header = SendMessageHeader("pg", "T", "TBW102", 4, 0, sys_flag, 1_234, 0, b"DELAY\x01three\x02")
    answer = broker.dispatch(Request(RequestCode.SEND_MESSAGE_V2, header, b"x"))
    assert answer.code is ResponseCode.SUCCESS


def test_a_transaction_is_refused_before_its_level_is_looked_at(broker: Broker):
    raw = encode_properties({"DELAY": "three", "TRAN_MSG": "true"})
    assert send(broker, "T", properties=raw).code is ResponseCode.NO_PERMISSION


@pytest.mark.parametrize("properties", [{"DELAY": "0"}, {"DELAY": "-1"}, {"TRAN_MSG": "false"}], ids=str)
def test_marks_that_mean_nothing_are_stored(broker: Broker, properties):
    assert send(broker, "T", properties=encode_properties(properties)).code is ResponseCode.SUCCESS
    assert properties.items() <= stored(broker)[0].properties.items()


@pytest.mark.parametrize(
    ("body", "properties"),
    [(bytes((4 << 20) + 1), b""), (b"", encode_properties({"a": "x" * 32_768}))],
    ids=["body", "properties"],
)
def test_what_is_too_large_is_refused(broker: Broker, body, properties):
    assert send(broker, "T", body, properties=properties).code is ResponseCode.MESSAGE_ILLEGAL
    assert broker.store.queues() == []


def test_a_body_of_4_mib_fits(tmp_path):
    with Broker.open(tmp_path, background=False, segment_size_bytes=8 << 20) as broker:
        assert send(broker, "T", bytes(4 << 20)).code is ResponseCode.SUCCESS


def test_every_answer_to_a_send_has_ext_fields(broker: Broker):
    assert send(broker, "T").ext == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


@pytest.mark.parametrize("is_encoded", [False, True], ids=["in process", "from the wire"])
def test_a_batch_is_stored_message_by_message_with_its_own_properties(broker: Broker, is_encoded):
    own = [encode_properties({"UNIQ_KEY": f"u{number}", "TAGS": "A"}) for number in range(3)]
    batch = MessageBatch([BatchMessage(b"%d" % number, raw, number) for number, raw in enumerate(own)])
    body = encode_batch(batch) if is_encoded else batch
    send(broker, "T")
    answer = send(broker, "T", body, code=RequestCode.SEND_BATCH_MESSAGE)
    assert send_header(answer).queue_offset == 1
    messages = stored(broker)[1:]
    assert [(message.body, message.flag) for message in messages] == [(b"0", 0), (b"1", 1), (b"2", 2)]
    assert [props_of(message) for message in messages] == [
        {"UNIQ_KEY": f"u{number}", "TAGS": "A"} for number in range(3)
    ]
    assert send_header(answer).msg_id == ",".join(message.message_id for message in messages)


def test_a_batch_with_a_key_of_its_own_is_answered_with_it(broker: Broker):
    batch = MessageBatch([BatchMessage(b"x", encode_properties({"UNIQ_KEY": "of the message"}))])
    raw = encode_properties({"UNIQ_KEY": "of the batch"})
    answer = send(broker, "T", batch, properties=raw, code=RequestCode.SEND_BATCH_MESSAGE)
    assert send_header(answer).transaction_id == "of the batch"
    answer = send(broker, "T", batch, code=RequestCode.SEND_BATCH_MESSAGE)
    assert send_header(answer).transaction_id is None
    assert [props_of(message) for message in stored(broker)] == [{"UNIQ_KEY": "of the message"}] * 2


def test_a_batch_keeps_the_bytes_of_its_properties_and_who_sent_it_when(broker: Broker):
    raw = b"empty\x01\x02TAGS\x01A\x02UNIQ_KEY\x01u\x02"
    peer = Peer("x", Host.parse("10.1.2.3:4000"))
    header = SendMessageHeader("pg", "T", "TBW102", 4, 0, 0, 1_234, 0)
    body = MessageBatch([BatchMessage(b"x", raw)])
    broker.dispatch(Request(RequestCode.SEND_BATCH_MESSAGE, header, body), peer)
    (message,) = stored(broker)
    assert message.properties_raw.startswith(raw)
    assert (message.born_host, message.born_timestamp_ms) == (peer.host, 1_234)
    assert len(broker.store.get("T", 0, 0, 1, "A")) == 1


def test_a_batch_for_a_retry_topic_is_refused(broker: Broker):
    body = MessageBatch([BatchMessage(b"x")])
    answer = send(broker, "%RETRY%g", body, code=RequestCode.SEND_BATCH_MESSAGE)
    assert answer.code is ResponseCode.MESSAGE_ILLEGAL
    assert "does not support retry group" in not_none(answer.remark)


def test_a_batch_larger_than_a_message_may_be_is_refused(broker: Broker):
    body = MessageBatch([BatchMessage(bytes(1 << 20))] * 5)
    assert send(broker, "T", body, code=RequestCode.SEND_BATCH_MESSAGE).code is ResponseCode.MESSAGE_ILLEGAL
    assert broker.store.queues() == []


@pytest.mark.parametrize("body", [b"", b"x", bytes(30)], ids=["empty", "cut", "zeros"])
def test_a_damaged_batch_is_refused(broker: Broker, body):
    assert send(broker, "T", body, code=RequestCode.SEND_BATCH_MESSAGE).code is ResponseCode.SYSTEM_ERROR
    assert broker.store.queues() == []


def test_wait_false_is_answered_before_the_disk(tmp_path):
    with Broker.open(tmp_path, background=False, durability=Durability.SYNC) as broker:
        assert send_header(send(broker, "T")).durability == "sync"
        raw = encode_properties({"WAIT": "false"})
        assert send_header(send(broker, "T", properties=raw)).durability == "async"
        batch = MessageBatch([BatchMessage(b"x")])
        assert send_header(send(broker, "T", batch, code=RequestCode.SEND_BATCH_MESSAGE)).durability == "sync"
        answer = send(broker, "T", batch, properties=raw, code=RequestCode.SEND_BATCH_MESSAGE)
        assert send_header(answer).durability == "async"


def test_a_header_of_another_request_is_refused(broker: Broker):
    request = Request(RequestCode.SEND_MESSAGE_V2, GetMaxOffsetHeader("T", 0), b"x")
    assert broker.dispatch(request).code is ResponseCode.SYSTEM_ERROR


def test_a_body_of_another_request_is_refused(broker: Broker):
    assert send(broker, "T", MessageBatch([])).code is ResponseCode.SYSTEM_ERROR
    assert broker.store.queues() == []


def test_a_full_disk_is_service_not_available(tmp_path):
    class FullFiles(RealFiles):
        is_full = False

        @override
        def write_file(self, path, data, *, sync=True):
            if self.is_full:
                raise FullError("no space left")
            super().write_file(path, data, sync=sync)

    files = FullFiles()
    with Broker.open(tmp_path, background=False, files=files) as broker:
        files.is_full = True
        assert send(broker, "T").code is ResponseCode.SERVICE_NOT_AVAILABLE
        files.is_full = False
        assert send(broker, "T").code is ResponseCode.SUCCESS


def test_names_of_cluster_and_region_are_the_brokers(tmp_path):
    config = BrokerConfig(cluster_name="C", region_id="R", is_trace_on=False)
    with open_broker(tmp_path, VirtualClock(), config) as broker:
        header = SendMessageHeader("pg", "T", "TBW102", 4, 0, 0, 0, 0)
        broker.dispatch(Request(RequestCode.SEND_MESSAGE, header, b""))
        found = props_of(stored(broker)[0])
    assert (found["CLUSTER"], found["MSG_REGION"], found["TRACE_ON"]) == ("C", "R", "false")


def test_a_broker_that_takes_no_messages_refuses_those_of_order_first(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(broker_permission=4)) as broker:
        broker.topics.put(TopicConfig("ordered", 4, 4, is_order=True))
        answer = send(broker, "ordered", queue_id=99)
        assert answer.code is ResponseCode.NO_PERMISSION
        assert answer.remark == "the broker[127.0.0.1] sending message is forbidden"
        assert send(broker, "T").code is ResponseCode.SUCCESS


@pytest.mark.parametrize("is_new", [True, False])
def test_a_send_to_any_queue_of_a_topic_that_has_none_to_write_is_refused(broker: Broker, is_new: bool):
    if not is_new:
        broker.topics.put(TopicConfig("T", 1, 0))
    header = SendMessageHeader("pg", "T", "TBW102", 0, -1, 0, 1_234, 0, b"")
    answer = broker.dispatch(Request(RequestCode.SEND_MESSAGE_V2, header, b"x"))
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "topic[T] has no queue that can be written",
    )
    assert broker.store.max_phy_offset == 0


def test_a_batch_whose_ids_would_fit_into_no_answer_is_refused_before_it_is_stored(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(max_message_size_bytes=8 << 20)) as broker:
        batch = MessageBatch([BatchMessage(b"")] * (MOST_OF_BATCH + 1))
        answer = send(broker, "T", batch, code=RequestCode.SEND_BATCH_MESSAGE)
        assert answer.code is ResponseCode.MESSAGE_ILLEGAL
        assert answer.remark == f"the batch has {MOST_OF_BATCH + 1} messages, at most {MOST_OF_BATCH}"
        assert stored(broker) == []

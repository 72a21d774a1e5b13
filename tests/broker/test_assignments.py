"""A broker that allocates for its clients gives each queue to one member, and notes how groups consume."""

from __future__ import annotations

import json

import pytest

from seglog.remoting.allocation import (
    QueryAssignmentBody,
    RequestMode,
    RequestModeBody,
)
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.headers import CreateTopicHeader
from seglog.remoting.heartbeat import MessageModel
from seglog.remoting.peer import Peer
from seglog.storage.format.record import Host
from seglog.storage.threads import WouldWaitError, without_waiting
from tests.support.asks import beat_of
from tests.support.brokers import ask, open_broker
from tests.support.connections import QuietConnection

HOST = Host(b"\x7f\x00\x00\x01", 1)
FILE = "store/config/messageRequestMode.json"


def join(broker, *names, group="g"):
    for name in names:
        peer = Peer(name, HOST, QuietConnection(), is_remote=True)
        assert broker.dispatch(beat_of(name, "T", group), peer).code is ResponseCode.SUCCESS


def make_topic(broker, name="T", queues=5, perm=6):
    header = CreateTopicHeader(name, "TBW102", queues, queues, perm)
    assert ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header).code is ResponseCode.SUCCESS


def asked(broker, topic="T", client="c1", strategy="AVG", group="g", model=MessageModel.CLUSTERING):
    """Returns numbers of the queues that a client is given, None where the broker cannot say."""
    body = QueryAssignmentBody(topic, group, client, strategy, model)
    answer = ask(broker, RequestCode.QUERY_ASSIGNMENT, body=body)
    assert answer.code is ResponseCode.SUCCESS
    given = answer.body.assignments
    if given is None:
        return None
    assert all(each.mode is RequestMode.PULL for each in given)
    assert {(each.queue.topic, each.queue.broker_name) for each in given} <= {(topic, "broker-a")}
    return [each.queue.queue_id for each in given]


def set_mode(broker, topic="T", group="g", mode=RequestMode.PULL, share=0):
    body = RequestModeBody(topic, group, mode, share)
    return ask(broker, RequestCode.SET_MESSAGE_REQUEST_MODE, body=body)


def test_members_are_given_every_queue_once_and_by_the_strategy_that_they_name(broker):
    make_topic(broker)
    join(broker, "c2", "c1")  # the order in which they came has no say
    assert [asked(broker, client=client) for client in ("c1", "c2")] == [[0, 1, 2], [3, 4]]
    by_circle = [asked(broker, client=client, strategy="AVG_BY_CIRCLE") for client in ("c1", "c2")]
    assert by_circle == [[0, 2, 4], [1, 3]]


def test_who_is_no_member_is_given_no_queue(broker):
    make_topic(broker)
    join(broker, "c1")
    assert asked(broker, client="stranger") == []


@pytest.mark.parametrize(
    "how",
    [
        {"strategy": "CONSISTENT_HASH"},
        {"strategy": ""},
        {"group": "offline"},
        {"topic": "none"},
        {"client": ""},
    ],
    ids=["another strategy", "no strategy", "offline", "no topic", "no client"],
)
def test_where_the_broker_cannot_say_the_client_keeps_what_it_has(broker, how):
    make_topic(broker)
    join(broker, "c1")
    assert asked(broker, **how) is None


def test_a_topic_that_cannot_be_read_has_no_queues_to_share(broker):
    make_topic(broker, perm=2)
    join(broker, "c1")
    assert asked(broker) is None
    assert asked(broker, model=MessageModel.BROADCASTING) == []


def test_who_broadcasts_is_given_all_queues_without_a_strategy_or_a_group(broker):
    make_topic(broker, queues=3)
    assert asked(broker, strategy="", group="none", model=MessageModel.BROADCASTING) == [0, 1, 2]


def test_a_retry_topic_and_a_light_queue_are_shared_too(broker):
    make_topic(broker)
    join(broker, "c1", "c2")
    assert [asked(broker, "%RETRY%g", client) for client in ("c1", "c2")] == [[0], []]
    assert [asked(broker, "%LMQ%a", client) for client in ("c1", "c2")] == [[0], []]
    assert asked(broker, "%LMQ%a", model=MessageModel.BROADCASTING) is None


def test_a_mode_is_kept_over_a_restart_in_the_file_of_rocketmq(broker, tmp_path):
    make_topic(broker)
    make_topic(broker, "U")
    assert set_mode(broker).code is ResponseCode.SUCCESS
    assert set_mode(broker, "U", "h", share=3).code is ResponseCode.SUCCESS
    broker.close()
    with open_broker(tmp_path / "store") as again:
        assert set_mode(again, "T", "h").code is ResponseCode.SUCCESS
    table = json.loads((tmp_path / FILE).read_text())["messageRequestModeMap"]
    assert {
        (topic, group): row["popShareQueueNum"] for topic in table for group, row in table[topic].items()
    } == {
        ("T", "g"): 0,
        ("T", "h"): 0,
        ("U", "h"): 3,
    }
    assert table["U"]["h"] == {"consumerGroup": "h", "mode": "PULL", "popShareQueueNum": 3, "topic": "U"}


@pytest.mark.parametrize(
    ("how", "code", "remark"),
    [
        ({"topic": "%RETRY%g"}, ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode"),
        ({"topic": "none"}, ResponseCode.TOPIC_NOT_EXIST, "topic[none] not exist"),
        ({"group": "no group"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "group does not exist"),
        ({"mode": RequestMode.POP}, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "POP is not served here"),
    ],
)
def test_a_mode_that_cannot_be_is_refused_and_changes_nothing(broker, tmp_path, how, code, remark):
    make_topic(broker)
    answer = set_mode(broker, **how)
    assert answer.code is code
    assert remark in answer.remark
    assert not (tmp_path / FILE).exists()


def test_pop_of_a_java_broker_is_told_once_stays_in_the_file_and_means_pull(broker, tmp_path, caplog):
    make_topic(broker)
    set_mode(broker)
    broker.close()
    said = json.loads((tmp_path / FILE).read_text())
    said["messageRequestModeMap"]["T"]["g"] |= {"mode": "POP", "popShareQueueNum": 4, "later": 1}
    (tmp_path / FILE).write_text(json.dumps(said))
    (tmp_path / f"{FILE}.bak").unlink(missing_ok=True)
    with open_broker(tmp_path / "store") as again:
        assert "they are told to pull: g of T" in caplog.text
        join(again, "c1")
        assert asked(again) == [0, 1, 2, 3, 4]
        set_mode(again, group="h")
    rows = json.loads((tmp_path / FILE).read_text())["messageRequestModeMap"]["T"]
    assert rows["g"] == {"consumerGroup": "g", "mode": "POP", "popShareQueueNum": 4, "topic": "T", "later": 1}
    assert rows["h"]["mode"] == "PULL"


def test_a_thread_that_may_not_wait_sets_no_mode(broker):
    make_topic(broker)
    with pytest.raises(WouldWaitError), without_waiting():
        broker._state.request_modes.put(RequestModeBody("T", "g"))

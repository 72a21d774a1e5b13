"""What requests touch, code by code: found in header and body, and said before the handler runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.broker.access import Access, Action, Resource, Touch, touch
from seglog.broker.handlers.table import HANDLERS
from seglog.errors import NoPermissionError
from seglog.remoting import admin_headers as admin
from seglog.remoting import client_headers as client
from seglog.remoting import headers as header
from seglog.remoting.admin_bodies import ConfigBody, GroupListBody
from seglog.remoting.allocation import QueryAssignmentBody, RequestModeBody
from seglog.remoting.batch import encode_batch
from seglog.remoting.bodies import BatchMessage, LockBatchBody, MessageBatch
from seglog.remoting.codes import RequestCode as Code
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import NO_HEADER, Request
from seglog.remoting.heartbeat import CheckClientBody, ConsumerData, HeartbeatBody
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import SubscriptionData
from seglog.remoting.subscription_group import SubscriptionGroup
from tests.support.brokers import open_broker, send, send_header
from tests.support.rows import each_row


def send_to(topic, properties=b"", producer_group="pg"):
    return header.SendMessageHeader(producer_group, topic, "TBW102", 4, 0, 0, 1_234, 0, properties)


def pull_of(topic, group="g"):
    return header.PullMessageHeader(group, topic, 0, 0, 32, 4, 0, 0, 0, "*")


def batch_of(*properties):
    return MessageBatch([BatchMessage(b"x", raw) for raw in properties])


FURTHER = b"INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02"
QUEUES = frozenset(MessageQueue(topic, "broker-a", queue_id) for topic in ("T", "U") for queue_id in (0, 1))
OF_RETRY = frozenset((MessageQueue("%RETRY%g", "broker-a", 0),))
SUBSCRIPTIONS = tuple(map(SubscriptionData, ("T", "%RETRY%g")))
HEARTBEAT = HeartbeatBody(
    "c", ("pg", "ph"), (ConsumerData("g", SUBSCRIPTIONS), ConsumerData("h", (SubscriptionData("U"),)))
)
SENDS = (Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2)
PULLS = (Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE)
LOCKS = (Code.LOCK_BATCH_MQ, Code.UNLOCK_BATCH_MQ)
OF_BODY = NO_HEADER
ROWS = [
    *((code, send_to("T"), b"x", "Topic T Pub") for code in SENDS),
    *((code, send_to("%DLQ%g"), b"x", "Topic %DLQ%g Pub") for code in SENDS),
    *((code, send_to("%RETRY%g"), b"x", "Group g Sub") for code in SENDS),
    (Code.SEND_MESSAGE, send_to("%RETRY%g", producer_group="mine"), b"x", "Group g Sub"),
    *(
        (code, send_to("T", FURTHER), b"x", "Topic T Pub, Topic %LMQ%a Pub, Topic %LMQ%b Pub")
        for code in SENDS
    ),
    (Code.SEND_MESSAGE, send_to("%RETRY%g", FURTHER), b"x", "Group g Sub"),
    (Code.SEND_BATCH_MESSAGE, send_to("T"), batch_of(b"", b"TAGS\x01a\x02"), "Topic T Pub"),
    (
        Code.SEND_BATCH_MESSAGE,
        send_to("T"),
        batch_of(b"", FURTHER, FURTHER),
        "Topic T Pub, Topic %LMQ%a Pub, Topic %LMQ%b Pub",
    ),
    (
        Code.SEND_BATCH_MESSAGE,
        send_to("T"),
        encode_batch(batch_of(b"", FURTHER)),
        "Topic T Pub, Topic %LMQ%a Pub, Topic %LMQ%b Pub",
    ),
    *((code, pull_of("T"), None, "Topic T Sub, Group g Sub") for code in PULLS),
    *((code, pull_of("%RETRY%g"), None, "Group g Sub") for code in PULLS),
    *((code, pull_of("%RETRY%h"), None, "Group h Sub, Group g Sub") for code in PULLS),
    *((code, pull_of("%RETRY%h+T"), None, "Group h Sub, Group g Sub") for code in PULLS),
    (
        Code.QUERY_CONSUMER_OFFSET,
        header.QueryConsumerOffsetHeader("g", "T", 0),
        None,
        "Topic T Sub/Get, Group g Sub/Get",
    ),
    (
        Code.UPDATE_CONSUMER_OFFSET,
        header.UpdateConsumerOffsetHeader("g", "%RETRY%g", 0, 1),
        None,
        "Group g Sub/Update",
    ),
    (
        Code.UPDATE_CONSUMER_OFFSET,
        header.UpdateConsumerOffsetHeader("g", "T", 0, 1),
        None,
        "Topic T Sub/Update, Group g Sub/Update",
    ),
    (Code.GET_MAX_OFFSET, header.GetMaxOffsetHeader("T", 0), None, "Topic T Get"),
    (Code.GET_MIN_OFFSET, header.GetMinOffsetHeader("T", 0), None, "Topic T Get"),
    (Code.SEARCH_OFFSET_BY_TIMESTAMP, header.SearchOffsetHeader("T", 0, 1), None, "Topic T Get"),
    (Code.GET_EARLIEST_MSG_STORETIME, admin.EarliestTimeHeader("%RETRY%g", 0), None, "Group g Get"),
    (
        Code.INVOKE_BROKER_TO_RESET_OFFSET,
        header.ResetOffsetHeader("g", "T", -1, is_forced=False),
        None,
        "Topic T Update, Group g Update",
    ),
    (
        Code.CLONE_GROUP_OFFSET,
        header.CloneGroupOffsetHeader("g", "h", "T"),
        None,
        "Group g Get, Group h Update, Topic T Update",
    ),
    *(
        (
            Code.CLONE_GROUP_OFFSET,
            header.CloneGroupOffsetHeader("g", "h", none),
            None,
            "Group g Get, Group h Update, Topic * Update",
        )
        for none in (None, "")
    ),
    (
        Code.QUERY_CORRECTION_OFFSET,
        admin.CorrectionOffsetHeader("T", "g", "i,h"),
        None,
        "Topic T Get, Group g Get, Group h Get, Group i Get, Group * Get",
    ),
    (
        Code.QUERY_CORRECTION_OFFSET,
        admin.CorrectionOffsetHeader("T", "g"),
        None,
        "Topic T Get, Group g Get, Group * Get",
    ),
    *(
        (code, OF_BODY, LockBatchBody("g", "c", QUEUES), "Group g Sub, Topic T Sub, Topic U Sub")
        for code in LOCKS
    ),
    *((code, OF_BODY, LockBatchBody("g", "c", OF_RETRY), "Group g Sub") for code in LOCKS),
    (Code.QUERY_ASSIGNMENT, OF_BODY, QueryAssignmentBody("T", "g", "c", "AVG"), "Group g Sub, Topic T Sub"),
    (Code.QUERY_ASSIGNMENT, OF_BODY, QueryAssignmentBody("%RETRY%g", "g", "c", "AVG"), "Group g Sub"),
    (Code.SET_MESSAGE_REQUEST_MODE, OF_BODY, RequestModeBody("T", "g"), "Group g Update, Topic T Update"),
    (
        Code.HEART_BEAT,
        OF_BODY,
        HEARTBEAT,
        "Group g Sub, Group h Sub, Topic T Sub, Topic U Sub, ProducerGroup pg Pub, ProducerGroup ph Pub",
    ),
    (Code.HEART_BEAT, OF_BODY, HeartbeatBody("c"), ""),
    (
        Code.UNREGISTER_CLIENT,
        client.UnregisterClientHeader("c", "pg", "g"),
        None,
        "Group g Sub, ProducerGroup pg Pub",
    ),
    (Code.UNREGISTER_CLIENT, client.UnregisterClientHeader("c", "pg"), None, "ProducerGroup pg Pub"),
    (Code.UNREGISTER_CLIENT, client.UnregisterClientHeader("c", None, "g"), None, "Group g Sub"),
    (
        Code.CHECK_CLIENT_CONFIG,
        OF_BODY,
        CheckClientBody("c", "g", SubscriptionData("T")),
        "Group g Sub, Topic T Sub",
    ),
    (Code.CHECK_CLIENT_CONFIG, OF_BODY, CheckClientBody("c", "g", None), "Group g Sub"),
    (Code.GET_CONSUMER_LIST_BY_GROUP, client.ConsumerGroupHeader("g"), None, "Group g Sub/Get"),
    (Code.GET_CONSUMER_CONNECTION_LIST, client.ConsumerGroupHeader("g"), None, "Group g Get"),
    (Code.GET_PRODUCER_CONNECTION_LIST, client.ProducerGroupHeader("pg"), None, "ProducerGroup pg Get"),
    (Code.GET_CONSUMER_RUNNING_INFO, client.RunningInfoHeader("g", "c"), None, "Group g Get"),
    (Code.CONSUME_MESSAGE_DIRECTLY, client.ConsumeDirectlyHeader("g", "c"), None, "Group g Sub, Topic * Sub"),
    (
        Code.CONSUME_MESSAGE_DIRECTLY,
        client.ConsumeDirectlyHeader("g", "c", "not an id", topic="T"),
        None,
        "Group g Sub, Topic T Sub, Topic * Sub",
    ),
    (
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        client.ConsumerStatusHeader("T", "g", "c"),
        None,
        "Topic T Get, Group g Get",
    ),
    (Code.GET_ROUTEINFO_BY_TOPIC, header.GetRouteInfoHeader("T"), None, "Topic T Pub/Sub/Get"),
    (Code.GET_ROUTEINFO_BY_TOPIC, header.GetRouteInfoHeader("%RETRY%g"), None, "Group g Sub/Get"),
    (Code.QUERY_MESSAGE, admin.QueryMessageHeader("T", "k", 1, 0, 1), None, "Topic T Get"),
    (Code.VIEW_MESSAGE_BY_ID, admin.ViewMessageHeader(1 << 40, "T"), None, "Topic T Get, Topic * Get"),
    (Code.VIEW_MESSAGE_BY_ID, admin.ViewMessageHeader(1 << 40), None, "Topic * Get"),
    (Code.QUERY_CONSUME_QUEUE, admin.QueryQueueHeader("T", 0, 0, 1), None, "Topic T Get"),
    (Code.QUERY_CONSUME_QUEUE, admin.QueryQueueHeader("T", 0, 0, 1, "g"), None, "Topic T Get, Group g Get"),
    (Code.GET_BROKER_CLUSTER_INFO, NO_HEADER, None, "Cluster * Get"),
    (Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NO_HEADER, None, "Topic * List"),
    (Code.GET_TOPICS_BY_CLUSTER, admin.ClusterHeader("DefaultCluster"), None, "Topic * List"),
    (Code.GET_SYSTEM_TOPIC_LIST_FROM_NS, NO_HEADER, None, "Topic * List"),
    (Code.DELETE_TOPIC_IN_NAMESRV, admin.NameServerTopicHeader("T"), None, "Topic T Delete"),
    (Code.WIPE_WRITE_PERM_OF_BROKER, admin.BrokerNameHeader("broker-a"), None, "Cluster * Update"),
    (Code.ADD_WRITE_PERM_OF_BROKER, admin.BrokerNameHeader("broker-a"), None, "Cluster * Update"),
    (Code.PUT_KV_CONFIG, admin.KeyValueHeader("n", "k", "v"), None, "Cluster * Update"),
    (Code.GET_KV_CONFIG, admin.KeyHeader("n", "k"), None, "Cluster * Get"),
    (Code.DELETE_KV_CONFIG, admin.KeyHeader("n", "k"), None, "Cluster * Update"),
    (Code.GET_KVLIST_BY_NAMESPACE, admin.NamespaceHeader("n"), None, "Cluster * Get"),
    (Code.VIEW_BROKER_STATS_DATA, admin.FiguresHeader("TOPIC_PUT_NUMS", "T"), None, "Topic T Get"),
    (
        Code.VIEW_BROKER_STATS_DATA,
        admin.FiguresHeader("GROUP_GET_NUMS", "T@g"),
        None,
        "Topic T Get, Group g Get",
    ),
    (
        Code.GET_BROKER_CONSUME_STATS,
        admin.BrokerConsumeStatsHeader(is_order_only=False),
        None,
        "Group * Get, Topic * Get",
    ),
    (Code.GET_ALL_PRODUCER_INFO, NO_HEADER, None, "ProducerGroup * List"),
    (Code.UPDATE_BROKER_CONFIG, NO_HEADER, b"a=b", "Cluster * Update"),
    (Code.GET_BROKER_CONFIG, NO_HEADER, None, "Cluster * Get"),
    (Code.UPDATE_NAMESRV_CONFIG, NO_HEADER, b"a=b", "Cluster * Update"),
    (Code.GET_NAMESRV_CONFIG, NO_HEADER, None, "Cluster * Get"),
    (Code.SEND_REPLY_MESSAGE, send_to("T"), b"x", "Topic T Pub"),
    (Code.SEND_REPLY_MESSAGE_V2, send_to("%RETRY%g"), b"x", "Group g Sub"),
    (Code.GET_BROKER_RUNTIME_INFO, NO_HEADER, None, "Cluster * Get"),
    (Code.GET_BROKER_HA_STATUS, NO_HEADER, None, "Cluster * Get"),
    (
        Code.UPDATE_AND_CREATE_TOPIC_LIST,
        NO_HEADER,
        ConfigBody({"topicConfigList": [{"topicName": "T"}, {"topicName": "%RETRY%g"}]}),
        "Topic T Create, Group g Create",
    ),
    (Code.UPDATE_AND_CREATE_TOPIC, header.CreateTopicHeader("T", "TBW102", 1, 1, 6), None, "Topic T Create"),
    (Code.DELETE_TOPIC_IN_BROKER, admin.DeleteTopicHeader("T"), None, "Topic T Delete"),
    (Code.DELETE_TOPIC_IN_BROKER, admin.DeleteTopicHeader("%RETRY%g"), None, "Group g Delete"),
    (Code.GET_ALL_TOPIC_CONFIG, admin.PageHeader(), None, "Topic * List"),
    (Code.GET_TOPIC_CONFIG, admin.TopicHeader("T"), None, "Topic T Get"),
    (Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, NO_HEADER, None, "Topic * List"),
    (Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, OF_BODY, SubscriptionGroup("g"), "Group g Create"),
    (
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        OF_BODY,
        GroupListBody((SubscriptionGroup("g"), SubscriptionGroup("h"))),
        "Group g Create, Group h Create",
    ),
    (Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, admin.PageHeader(), None, "Group * List"),
    (Code.GET_SUBSCRIPTIONGROUP_CONFIG, admin.GroupHeader("g"), None, "Group g Get"),
    (Code.DELETE_SUBSCRIPTIONGROUP, header.DeleteGroupHeader("g"), None, "Group g Delete"),
    (
        Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
        client.GroupForbiddenHeader("g", "T"),
        None,
        "Group g Update, Topic T Update",
    ),
    (Code.GET_ALL_CONSUMER_OFFSET, NO_HEADER, None, "Group * List, Topic * List"),
    (Code.GET_ALL_DELAY_OFFSET, NO_HEADER, None, "Cluster * Get"),
    (Code.GET_TOPIC_STATS_INFO, admin.TopicHeader("T"), None, "Topic T Get"),
    (Code.GET_CONSUME_STATS, admin.ConsumeStatsHeader("g", "T"), None, "Group g Get, Topic T Get"),
    (Code.GET_CONSUME_STATS, admin.ConsumeStatsHeader("g"), None, "Group g Get, Topic * Get"),
    (
        Code.GET_CONSUME_STATS,
        admin.ConsumeStatsHeader("g", "not looked at", "T;U"),
        None,
        "Group g Get, Topic T Get, Topic U Get",
    ),
    (Code.QUERY_CONSUME_TIME_SPAN, admin.TimeSpanHeader("T", "g"), None, "Topic T Get, Group g Get"),
    (Code.QUERY_TOPIC_CONSUME_BY_WHO, admin.TopicHeader("T"), None, "Topic T Get, Group * List"),
    (
        Code.QUERY_SUBSCRIPTION_BY_CONSUMER,
        admin.GroupSubscriptionHeader("g", "x"),
        None,
        "Group g Get, Topic x Get",
    ),
    (Code.QUERY_TOPICS_BY_CONSUMER, admin.GroupHeader("g"), None, "Group g Get, Topic * List"),
    *(
        (code, NO_HEADER, None, "Cluster * Update")
        for code in (
            Code.DELETE_EXPIRED_COMMITLOG,
            Code.CLEAN_EXPIRED_CONSUMEQUEUE,
            Code.CLEAN_UNUSED_TOPIC,
        )
    ),
    (Code.CONSUMER_SEND_MSG_BACK, header.SendBackHeader(1 << 40, "g", 0), None, "Group g Sub, Topic * Sub"),
    (
        Code.CONSUMER_SEND_MSG_BACK,
        header.SendBackHeader(1 << 40, "g", 0, None, "T"),
        None,
        "Group g Sub, Topic T Sub, Topic * Sub",
    ),
]


def text_of(one: Touch) -> str:
    """Returns a touch as the table has it."""
    actions = "/".join(action.value for action in Action if action in one.actions)
    return f"{one.resource.value} {'*' if one.name is None else one.name} {actions}"


@pytest.fixture
def seen() -> list[Access]:
    return []


@pytest.fixture
def guarded(tmp_path, seen):
    with open_broker(tmp_path / "store", before=seen.append) as broker:
        yield broker


def test_the_table_has_every_code_that_is_answered():
    assert {code for code, *_ in ROWS} == set(HANDLERS)


@each_row("code, head, body, expected", ROWS)
def test_a_request_touches_what_header_and_body_name(guarded, seen, code, head, body, expected):
    seen.clear()
    guarded.dispatch(Request(code, head, body))
    assert [access.code for access in seen] == [code]
    assert ", ".join(map(text_of, seen[0].touches)) == expected


def test_every_handler_has_a_rule_and_every_rule_an_action():
    for handler in HANDLERS.values():
        assert handler.rules
        assert all(rule.actions for rule in handler.rules)


def sent_back(phy_offset, origin_topic=None, group="g", origin_message_id=None):
    head = header.SendBackHeader(phy_offset, group, 0, origin_message_id, origin_topic)
    return Request(Code.CONSUMER_SEND_MSG_BACK, head)


@pytest.mark.parametrize(
    ("topic", "said", "expected"),
    [
        ("T", None, "Group g Sub, Topic T Sub"),
        ("T", "T", "Group g Sub, Topic T Sub"),
        ("secret", "T", "Group g Sub, Topic T Sub, Topic secret Sub"),
        ("%RETRY%g", "T", "Group g Sub, Topic T Sub"),
        ("%RETRY%h", None, "Group g Sub, Group h Sub"),
    ],
)
def test_a_message_sent_back_is_of_the_topic_of_its_record_and_not_only_of_the_one_said(
    guarded, seen, topic, said, expected
):
    send(guarded, "first")
    place = guarded.store.max_phy_offset
    send_header(send(guarded, topic))
    seen.clear()
    guarded.dispatch(sent_back(place, said))
    assert ", ".join(map(text_of, seen[0].touches)) == expected


def test_a_message_of_a_compaction_topic_is_sent_back_by_its_id(guarded, seen):
    create = header.CreateTopicHeader("T", "TBW102", 1, 1, 6, attributes="+cleanup.policy=COMPACTION")
    guarded.dispatch(Request(Code.UPDATE_AND_CREATE_TOPIC, create))
    message_id = send_header(send(guarded, "T", properties=b"KEYS\x01k\x02")).transaction_id
    seen.clear()
    guarded.dispatch(sent_back(1 << 40, "T", origin_message_id=message_id))
    assert ", ".join(map(text_of, seen[0].touches)) == "Group g Sub, Topic T Sub"


def test_a_client_is_given_a_message_of_the_topic_of_its_record_and_not_of_the_one_said(guarded, seen):
    message_id = send_header(send(guarded, "secret")).msg_id
    seen.clear()
    head = client.ConsumeDirectlyHeader("g", "c", message_id, topic="T")
    guarded.dispatch(Request(Code.CONSUME_MESSAGE_DIRECTLY, head))
    assert ", ".join(map(text_of, seen[0].touches)) == "Group g Sub, Topic T Sub, Topic secret Sub"


NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)
TOPICS = st.builds(str.__add__, st.sampled_from(("", "%RETRY%", "%DLQ%")), NAMES)
DATA = st.builds(ConsumerData, NAMES, st.lists(st.builds(SubscriptionData, TOPICS), max_size=3).map(tuple))
ACTIONS = st.frozensets(st.sampled_from(Action), min_size=1)


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """Returns a broker that refuses all, and what it was asked."""
    asked: list[Access] = []

    def refuse(access: Access) -> None:
        asked.append(access)
        raise NoPermissionError("no")

    with open_broker(tmp_path_factory.mktemp("refusing") / "s", before=refuse) as broker:
        yield broker, asked


@given(st.lists(DATA, max_size=3), st.lists(NAMES, max_size=3))
def test_no_group_or_topic_of_a_heartbeat_is_left_out(refusing, consumers, producers):
    broker, asked = refusing
    body = HeartbeatBody("c", tuple(producers), tuple(consumers))
    assert broker.dispatch(Request(Code.HEART_BEAT, body=body)).code is ResponseCode.NO_PERMISSION
    found = {(one.resource, one.name) for one in asked.pop().touches}
    topics = {one.topic for data in consumers for one in data.subscriptions}
    groups = {data.group for data in consumers}
    groups |= {topic.removeprefix("%RETRY%") for topic in topics if topic.startswith("%RETRY%")}
    topics = {topic for topic in topics if not topic.startswith("%RETRY%")}
    assert found == {
        *((Resource.GROUP, name) for name in groups),
        *((Resource.TOPIC, name) for name in topics),
        *((Resource.PRODUCER_GROUP, name) for name in producers),
    }
    assert all(broker.clients.consumers(group) is None for group in groups)
    assert not asked


@given(st.sampled_from(Resource), TOPICS, ACTIONS)
def test_only_a_retry_topic_becomes_something_else_and_only_pub_on_it_sub(resource, name, actions):
    one = touch(resource, name, actions)
    if resource is Resource.TOPIC and name.startswith("%RETRY%"):
        assert (one.resource, one.name) == (Resource.GROUP, name.removeprefix("%RETRY%"))
        assert one.actions - {Action.SUB} == actions - {Action.PUB, Action.SUB}
        assert (Action.SUB in one.actions) == bool(actions & {Action.PUB, Action.SUB})
    else:
        assert one == Touch(resource, name, actions)

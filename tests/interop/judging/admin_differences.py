"""What our broker answers tools otherwise than RocketMQ on purpose; ``differences.py`` has these rows too."""

from __future__ import annotations

import json
from typing import Any, Final

from seglog.broker.broker import Broker
from seglog.broker.filters.subscription_filter import MAX_SQL_CHARACTERS
from seglog.broker.tables.groups import MAX_GROUP_SETTINGS
from seglog.remoting.admin_headers import (
    BrokerConsumeStatsHeader,
    FiguresHeader,
    QueryQueueHeader,
    TimeSpanHeader,
    TopicHeader,
)
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import CloneGroupOffsetHeader, CreateTopicHeader
from seglog.remoting.heartbeat import CheckClientBody, ConsumerData, HeartbeatBody
from seglog.remoting.subscription import SQL_TYPE, SubscriptionData
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.remoting.topics import MAX_QUEUES
from seglog.storage.format.config import parse_java_properties
from seglog.storage.format.config.config_json import decode_config
from tests.interop.judging import difference_cases as cases
from tests.interop.judging.alike import Essence
from tests.interop.judging.difference import Difference, Holds
from tests.interop.judging.requests import clone, commit, make_group, make_topic, pull, send
from tests.interop.judging.wire import is_untyped

_PATH: Final = "storePathEpochFile"
"""A path that nothing here or there reads."""
_NUMBER: Final = "shortPollingTimeMills"
_A_YEAR_MS: Final = 31_536_000_000


def _set(text: str) -> Request:
    return Request(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())


def _units(topic: str, first: int, group: str | None = None) -> Request:
    return Request(RequestCode.QUERY_CONSUME_QUEUE, QueryQueueHeader(topic, 0, first, 1, group))


def _topic_of_type(topic: str, filter_type: str | None) -> Request:
    header = CreateTopicHeader(topic, "TBW102", 4, 4, 6, filter_type)
    return Request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)


def _pulled(answer: Essence) -> Any:
    """Returns how many messages groups have pulled and not committed, as it is told of all together."""
    body: Any = decode_config(answer["body"])
    return body["totalInflightDiff"] > 0


def _set_by(request: Request) -> dict[str, str]:
    is_change = request.code == RequestCode.UPDATE_BROKER_CONFIG and isinstance(request.body, bytes)
    return parse_java_properties(bytes(request.body)) if is_change else {}  # type: ignore[arg-type]  # bytes, as asked


def _sets_path(request: Request, _broker: Broker) -> bool:
    return any(name.startswith("storePath") for name in _set_by(request))


def _sets_no_value(request: Request, _broker: Broker) -> bool:
    return not _set_by(request).get(_NUMBER, "0").isdigit()


def _is_offline(request: Request, ours: Essence, _theirs: Essence) -> bool:
    return request.code == RequestCode.QUERY_CONSUME_QUEUE and b" is not online!" in ours["body"]


def _is_beyond(request: Request, ours: Essence, _theirs: Essence) -> bool:
    return request.code == RequestCode.QUERY_CONSUME_QUEUE and not json.loads(ours["body"])["queueData"]


def _is_pulled(request: Request, _ours: Essence, _theirs: Essence) -> bool:
    return request.code == RequestCode.GET_BROKER_CONSUME_STATS


def _is_loose(request: Request, _broker: Broker) -> bool:
    return request.code == RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP and isinstance(request.body, bytes)


def _is_long(request: Request, _broker: Broker) -> bool:
    body = request.body
    said = body.subscription if isinstance(body, CheckClientBody) else None
    return said is not None and len(said.expression) > MAX_SQL_CHARACTERS


def _is_large(request: Request, _broker: Broker) -> bool:
    return isinstance(request.body, SubscriptionGroup) and bool(request.body.unknown)


def _check(expression: str) -> Request:
    """Asks whether a subscription can be served."""
    said = SubscriptionData("T", expression, 1, SQL_TYPE)
    return Request(RequestCode.CHECK_CLIENT_CONFIG, body=CheckClientBody("c1", "long-sql", said))


def _beat(group: str, topic: str) -> Request:
    """Has a client of a group say that it subscribes to one topic."""
    data = ConsumerData(group, (SubscriptionData(topic, version=1),))
    return Request(RequestCode.HEART_BEAT, body=HeartbeatBody(f"{group}@c1", (), (data,)))


def _clones_to_no_name(request: Request, _broker: Broker) -> bool:
    return isinstance(request.header, CloneGroupOffsetHeader) and not request.header.target_group


def _is_untyped(request: Request, _broker: Broker) -> bool:
    return is_untyped(request)


def _asks(code: RequestCode) -> Holds:
    return lambda request, _ours, _theirs: request.code == code


def _delay_ms(answer: Essence) -> int:
    """Returns how long the first queue's next message has waited."""
    spans: list[dict[str, int]] = json.loads(answer["body"])["consumeTimeSpanSet"]
    return max(span["delayTime"] for span in spans)


def _has_too_many(request: Request, _broker: Broker) -> bool:
    header = request.header
    return isinstance(header, CreateTopicHeader) and header.read_queue_nums > MAX_QUEUES


ADMIN_DIFFERENCES: Final = (
    Difference(
        name="too-many-queues",
        request=f"topic with more than {MAX_QUEUES:,} queues, or retry topic of a group",
        theirs="is made",
        ours="is refused with 29; where a file has such a topic, its route and its queues are not listed",
        why="what lists them would keep broker and clients busy, and fit into no frame",
        shown_by=(make_topic("too-many-queues", MAX_QUEUES + 1),),
        there=0,
        here=29,
        leads_apart=_has_too_many,
        is_drawn=False,
    ),
    Difference(
        name="large-settings",
        request=f"settings of a group or topic that take more than {MAX_GROUP_SETTINGS:,} characters, or that"
        ' would be read back from their file as something else (such as a value `{"$ref":…}`)',
        theirs="are taken",
        ours="are refused with 29",
        why="the tables are files, which have to be written with each change, and read when the broker opens",
        shown_by=(
            Request(
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
                body=SubscriptionGroup("large-settings", unknown={"more": "x" * MAX_GROUP_SETTINGS}),
            ),
        ),
        there=0,
        here=29,
        leads_apart=_is_large,
        is_drawn=False,
    ),
    Difference(
        name="loose-json",
        request="JSON with single quotes, a comma before a bracket, a comment, a key twice, or numbers such"
        " as `+3`, `.5`, `03` and `1L`",
        theirs="is read",
        ours="is refused with 1",
        why="what is no JSON is a mistake, and what fastjson reads of it is not the same in all releases",
        shown_by=(
            Request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=b"{'groupName':'loose-json',}"),
        ),
        there=0,
        here=1,
        leads_apart=_is_loose,
        is_drawn=False,
    ),
    Difference(
        name="long-sql",
        request=f"subscription by SQL92 of more than {MAX_SQL_CHARACTERS:,} characters",
        theirs="is taken",
        ours="is refused with 23",
        why="each message is tested against all of it",
        shown_by=(_check("a = '" + "x" * MAX_SQL_CHARACTERS + "'"),),
        there=0,
        here=23,
        leads_apart=_is_long,
        is_drawn=False,
    ),
    Difference(
        name="path-setting",
        request="change of a setting that is a path (UPDATE_BROKER_CONFIG)",
        theirs="is done, unless the path is in its black list",
        ours="is refused with 16",
        why="who may ask would choose where files are written",
        shown_by=(_set(f"{_PATH}=elsewhere"),),
        there=0,
        here=16,
        leads_apart=_sets_path,
        is_drawn=False,
    ),
    Difference(
        name="no-setting",
        request="change of a setting to what is no value of it",
        theirs="is passed over, and answered with success",
        ours="is refused with 29, and nothing is changed",
        why="the answer says what is wrong",
        shown_by=(_set(f"{_NUMBER}=soon"),),
        there=0,
        here=29,
        leads_apart=_sets_no_value,
        is_drawn=False,
    ),
    Difference(
        name="pulled-in-all",
        request="where all groups are (GET_BROKER_CONSUME_STATS)",
        theirs="says that they have pulled nothing, so that the total is below 0",
        ours="says what they have pulled",
        why="RocketMQ's slip",
        shown_by=(
            make_group("pulled-in-all"),
            send("pulled-in-all"),
            commit("pulled-in-all", "pulled-in-all", 0),
            pull("pulled-in-all", "pulled-in-all"),
            Request(RequestCode.GET_BROKER_CONSUME_STATS, BrokerConsumeStatsHeader(False)),
        ),
        looks_at=_pulled,
        there=False,
        here=True,
        fields=("body",),
        holds=_is_pulled,
    ),
    Difference(
        name="no-name-clone",
        request="clone of offsets to a group without a name (CLONE_GROUP_OFFSET)",
        theirs="is done",
        ours="is refused with 29",
        why="no group has that name",
        shown_by=(
            make_group("no-name-clone"),
            send("no-name-clone"),
            commit("no-name-clone", "no-name-clone", 1),
            clone("no-name-clone", "", "no-name-clone"),
        ),
        there=0,
        here=29,
        leads_apart=_clones_to_no_name,
        is_drawn=False,
    ),
    Difference(
        name="field-missing",
        request="request without a field that its clients always send, such as the `producerGroup` of a send",
        theirs="is answered as if it were `null` or 0, or fails; the mark `@CFNotNull` is not looked at",
        ours="is refused with 1, and the answer names the field; those of name servers, UNREGISTER_CLIENT,"
        " DELETE_TOPIC_IN_BROKER and GET_BROKER_CONSUME_STATS are answered as there",
        why="the answer says what is wrong",
        shown_by=(
            Request(
                RequestCode.SEND_MESSAGE_V2,
                body=b"x",
                ext={
                    "b": "field-missing",
                    "c": "TBW102",
                    "d": "4",
                    "e": "0",
                    "f": "0",
                    "g": "1",
                    "h": "0",
                    "j": "0",
                    "i": "",
                },
            ),
        ),
        there=0,
        here=1,
        leads_apart=_is_untyped,
        is_drawn=False,
    ),
    Difference(
        name="other-figures",
        request="figures of times, connections, reads from the disk, bills and POP (VIEW_BROKER_STATS_DATA)",
        theirs="are counted",
        ours="do not exist; of the others, the average of a send is 0",
        why="sends are not counted one by one, so that they cost nothing more",
        shown_by=(
            _beat("other-figures", "T"),
            Request(
                RequestCode.VIEW_BROKER_STATS_DATA, FiguresHeader("CONSUMER_REGISTER_TIME", "DefaultCluster")
            ),
        ),
        there=0,
        here=1,
        fields=("code", "remark", "body"),
        holds=_asks(RequestCode.VIEW_BROKER_STATS_DATA),
    ),
    Difference(
        name="subscribed-before",
        request="groups that consume a topic (QUERY_TOPIC_CONSUME_BY_WHO)",
        theirs="names a group of clients that have subscribed to it before, until it restarts",
        ours="names those that subscribe to it, and those that have offsets in it",
        why="RocketMQ's slip",
        shown_by=(
            _beat("subscribed-before", "before"),
            _beat("subscribed-before", "after"),
            Request(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, TopicHeader("before")),
        ),
        looks_at=lambda answer: json.loads(answer["body"])["groupList"],
        there=["subscribed-before"],
        here=[],
        fields=("body",),
        holds=_asks(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO),
    ),
    Difference(
        name="never-committed",
        request="how long the next message has waited for a group that never committed"
        " (QUERY_CONSUME_TIME_SPAN)",
        theirs="is the time since 1970",
        ours="is the time since the first message was stored",
        why="RocketMQ's slip",
        shown_by=(
            send("never-committed"),
            Request(RequestCode.QUERY_CONSUME_TIME_SPAN, TimeSpanHeader("never-committed", "g")),
        ),
        looks_at=lambda answer: _delay_ms(answer) > _A_YEAR_MS,
        there=True,
        here=False,
        fields=("body",),
        holds=_asks(RequestCode.QUERY_CONSUME_TIME_SPAN),
    ),
    Difference(
        name="units-beyond",
        request="units of a queue from one on that is not there (QUERY_CONSUME_QUEUE)",
        theirs="has no body",
        ours="says the range of the queue",
        why="who asks sees where the queue is",
        shown_by=(send("units-beyond"), _units("units-beyond", 7)),
        looks_at=lambda answer: "body" in answer and json.loads(answer["body"])["maxQueueIndex"],
        there=False,
        here=1,
        fields=("body",),
        holds=_is_beyond,
    ),
    Difference(
        name="units-offline",
        request="units of a queue for a group of which no client is connected and one has pulled"
        " (QUERY_CONSUME_QUEUE)",
        theirs="says for a day what the last pull wanted",
        ours="says that the group is not online",
        why="no member of it has subscribed to that",
        shown_by=(
            make_group("units-offline"),
            send("units-offline"),
            pull("units-offline", "units-offline"),
            _units("units-offline", 0, "units-offline"),
        ),
        looks_at=lambda answer: json.loads(answer["body"])["filterData"],
        there="null",
        here="units-offline@units-offline is not online!",
        fields=("body",),
        holds=_is_offline,
    ),
    Difference(
        name="no-filter-type",
        request="topic without a filter type (`topicFilterType`)",
        theirs="is refused with 1",
        ours="is made, with SINGLE_TAG",
        why="it is what all clients say",
        shown_by=(_topic_of_type("no-filter-type", None),),
        there=1,
        here=0,
        leads_apart=cases.has_no_filter_type,
        is_drawn=False,
    ),
    Difference(
        name="other-filter-type",
        request="topic with a filter type that there is not (1)",
        theirs="answers with the exception of Java and its place",
        ours="says the same without those",
        why="the answer says what is wrong",
        shown_by=(_topic_of_type("other-filter-type", "NONE"),),
        looks_at=lambda answer: answer["remark"].partition("topicFilterType")[0],
        there="org.apache.rocketmq.remoting.exception.RemotingCommandException: ",
        here="",
        fields=("remark",),
        holds=cases.is_no_filter_type,
    ),
)

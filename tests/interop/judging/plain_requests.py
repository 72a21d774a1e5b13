"""Requests as bytes, with the answers that both brokers give: those of tools, and mistakes of clients.

Each is asked of our server and of the real broker or its name server, in this order: later ones see what
earlier ones did. ``tests/server/test_plain_requests.py`` holds our answers against the table, and
``tests/interop/brokers/test_plain_requests_alike.py`` those of the real broker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from seglog.storage.format.config.config_json import decode_config
from tests.interop.judging.wire import WireAnswer, WireRequest

TOPIC: Final = "T"
GROUP: Final = "g"
_NAME_SERVER: Final = frozenset((100, 101, 102, 105, 205, 216, 219, 224, 327))
_SEND: Final = {"a": "pg", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1234", "h": "0", "j": "0"}
_ADDRESS: Final = re.compile(r"127\.0\.0\.1:\d+")
_OF_OURS: Final = frozenset(("seglogDurability",))
_TIMES: Final = frozenset(("indexLastUpdateTimestamp",))


class Plain(NamedTuple):
    """A request, and what is answered.

    Attributes:
        request: What is asked.
        code: Of the answer.
        holds: Of the body's JSON, members that are shown here because they are the point; None for any.
        fields: Names of the answer's fields; None for any.
        is_exact: Whether the fields and the body of both brokers are equal.
    """

    request: WireRequest
    code: int
    holds: Mapping[str, Any] | None = None
    fields: frozenset[str] | None = None
    is_exact: bool = True

    @property
    def is_for_name_server(self) -> bool:
        """Whether a name server answers it."""
        return self.request.code in _NAME_SERVER


def _ask(
    code: int,
    answer: int,
    ext: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    holds: Mapping[str, Any] | None = None,
    fields: tuple[str, ...] | None = None,
    is_exact: bool = True,
) -> Plain:
    names = None if fields is None else frozenset(fields)
    return Plain(WireRequest(code, ext or {}, body), answer, holds, names, is_exact)


def _send(topic: str, unit_mode: str = "false", code: int = 310, **more: str) -> WireRequest:
    ext = {**_SEND, "b": topic, "k": unit_mode, "i": "UNIQ_KEY\x01u\x02", **more}
    return WireRequest(code, ext, b"x")


def _beat(group: str, model: str) -> bytes:
    subscription = {"topic": TOPIC, "subString": "*", "subVersion": 1, "expressionType": "TAG"}
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": model,
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": [subscription],
    }
    return json.dumps({"clientID": "c1", "producerDataSet": [], "consumerDataSet": [consumer]}).encode()


def _assignment(topic: str, group: str, client_id: str) -> bytes:
    asked = {"topic": topic, "consumerGroup": group, "clientId": client_id}
    return json.dumps({**asked, "messageModel": "CLUSTERING", "strategyName": "AVG"}).encode()


def _find(key: str, most: int = 8) -> dict[str, str]:
    return {"topic": TOPIC, "key": key, "maxNum": str(most), "beginTimestamp": "0", "endTimestamp": "9" * 15}


_MADE: Final = {
    "defaultTopic": "TBW102",
    "writeQueueNums": "4",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "order": "false",
}
_INDEX: Final = ("indexLastUpdatePhyoffset", "indexLastUpdateTimestamp")
_PLACE: Final = ("msgId", "queueId", "queueOffset")
_TRACED: Final = ("MSG_REGION", "TRACE_ON")
_KEPT: Final = {"namespace": "space", "key": "k"}
_UNITS: Final = {"topic": TOPIC, "queueId": "0", "index": "0", "count": "8"}
_PULL: Final = {
    "topic": TOPIC,
    "queueId": "0",
    "queueOffset": "0",
    "maxMsgNums": "8",
    "sysFlag": "4",
    "commitOffset": "0",
    "suspendTimeoutMillis": "0",
    "subscription": "*",
    "subVersion": "1",
    "expressionType": "TAG",
}

PLAIN_REQUESTS: Final = (
    # What sends make.
    *(Plain(_send(TOPIC), 0) for _ in range(3)),
    Plain(_send("Unit", "true"), 0),
    _ask(351, 0, {"topic": "Unit"}, holds={"topicSysFlag": 1}),
    Plain(_send("%RETRY%unit", "true"), 0),
    _ask(351, 0, {"topic": "%RETRY%unit"}, holds={"topicSysFlag": 2}),
    Plain(_send(TOPIC, "true"), 0),
    _ask(351, 0, {"topic": TOPIC}, holds={"topicSysFlag": 0}),
    # Groups and topics.
    _ask(34, 0, body=_beat("broadcasting", "BROADCASTING")),
    _ask(34, 0, body=_beat(GROUP, "CLUSTERING")),
    _ask(300, 0, {"topic": TOPIC}, holds={"groupList": ["broadcasting", GROUP]}),
    _ask(300, 0, {"topic": "nothing"}, holds={"groupList": []}),
    _ask(15, 0, {"consumerGroup": GROUP, "topic": TOPIC, "queueId": "0", "commitOffset": "1"}),
    _ask(343, 0, {"group": GROUP}, holds={"topicList": [TOPIC], "brokerAddr": "ADDRESS"}),
    _ask(343, 0, {"group": "nothing"}, holds={"topicList": [], "brokerAddr": "ADDRESS"}),
    _ask(303, 0, {"topic": TOPIC, "group": GROUP}),
    _ask(303, 17, {"topic": "nothing", "group": GROUP}),
    _ask(314, 0, {"srcGroup": "", "destGroup": "to", "topic": TOPIC, "offline": "true"}),
    # Units of a queue.
    _ask(321, 0, _UNITS, holds={"maxQueueIndex": 4, "minQueueIndex": 0}),
    _ask(321, 0, _UNITS | {"count": "-1"}, holds={"maxQueueIndex": 4, "queueData": []}),
    _ask(321, 0, _UNITS | {"count": "0"}, holds={"maxQueueIndex": 4, "queueData": []}),
    _ask(321, 0, _UNITS | {"index": "9"}, is_exact=False),
    _ask(321, 1, _UNITS | {"queueId": "9"}),
    _ask(321, 1, _UNITS | {"topic": "nothing"}),
    # Queues of a client.
    _ask(17, 0, {"topic": "Unread", "readQueueNums": "0", **_MADE}),
    _ask(400, 0, body=_assignment(TOPIC, GROUP, "stranger"), holds={"messageQueueAssignments": []}),
    _ask(400, 0, body=_assignment("Unread", GROUP, "c1"), holds={}),
    _ask(400, 0, body=_assignment("nothing", GROUP, "c1"), holds={}),
    _ask(400, 1),
    # Messages by key.
    _ask(12, 0, _find("u"), fields=_INDEX, is_exact=False),
    _ask(12, 22, _find("none"), fields=_INDEX),
    _ask(12, 22, _find("u", 0), fields=_INDEX),
    _ask(12, 1, _find("u", -1)),
    # Replies to a producer that is not there.
    Plain(_send(TOPIC, code=325), 1, fields=frozenset((*_PLACE, *_TRACED))),
    Plain(_send(TOPIC, code=325, i="long\x01" + "y" * 40_000 + "\x02"), 1, fields=frozenset(_TRACED)),
    Plain(_send("no topic", code=325), 29, fields=frozenset(_TRACED)),
    # What a broker asks of its clients, with fields that are right and that are missing.
    *(_ask(code, 3, ext) for code in (39, 40, 220, 221, 326) for ext in ({}, {"consumerGroup": GROUP})),
    # Bodies that are missing.
    _ask(200, 0),
    _ask(200, 29, body=b"{}"),
    _ask(46, 0),
    *(_ask(code, 1) for code in (18, 34, 41, 42, 225, 401)),
    # Fields that are missing.
    _ask(35, 0),
    _ask(215, 29),
    _ask(317, 0, is_exact=False),
    *(_ask(code, 1) for code in (10, 11, 12, 14, 15, 17, 29, 30, 31, 32, 33, 36, 38, 202, 203, 204, 207)),
    *(_ask(code, 1) for code in (222, 223, 300, 303, 307, 308, 309, 310, 314, 315, 321, 343, 345, 351, 353)),
    # Name servers.
    _ask(100, 0, {**_KEPT, "value": "v"}),
    _ask(219, 0, {"namespace": "space"}, holds={"table": {"k": "v"}}),
    _ask(102, 0, _KEPT),
    _ask(219, 0, {"namespace": "space"}, holds={"table": {}}),
    _ask(219, 22, {"namespace": "nothing"}),
    _ask(101, 22, _KEPT),
    _ask(100, 1),
    *(_ask(code, 22, ext) for code, ext in ((101, {}), (101, {"namespace": "space"}), (219, {}))),
    *(_ask(102, 0, ext) for ext in ({}, {"namespace": "space"}, {"key": "k"})),
    _ask(105, 17),
    _ask(205, 0, fields=("wipeTopicCount",)),
    _ask(327, 0, fields=("addTopicCount",)),
    _ask(216, 0),
    _ask(224, 0, holds={"topicList": []}),
    # Figures: of what was counted alone.
    _ask(11, 0, {**_PULL, "consumerGroup": GROUP}, is_exact=False),
    *(
        _ask(315, code, {"statsName": name, "statsKey": key}, is_exact=False)
        for name, key, code in (
            ("TOPIC_PUT_NUMS", TOPIC, 0),
            ("TOPIC_PUT_NUMS", "Unread", 1),
            ("TOPIC_PUT_NUMS", "nothing", 1),
            ("TOPIC_PUT_SIZE", TOPIC, 0),
            ("TOPIC_PUT_SIZE", "Unread", 1),
            ("GROUP_GET_NUMS", f"{TOPIC}@{GROUP}", 0),
            ("GROUP_GET_NUMS", f"{TOPIC}@nothing", 1),
            ("GROUP_GET_SIZE", f"{TOPIC}@{GROUP}", 0),
            ("GROUP_GET_SIZE", TOPIC, 1),
            ("SNDBCK_PUT_NUMS", f"{TOPIC}@{GROUP}", 1),
            ("BROKER_PUT_NUMS", "DefaultCluster", 0),
            ("BROKER_PUT_NUMS", TOPIC, 1),
            ("BROKER_GET_NUMS", "DefaultCluster", 0),
            ("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", "DefaultCluster", 0),
            ("BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC", "DefaultCluster", 0),
            ("nothing", TOPIC, 1),
        )
    ),
)


def seen(answer: WireAnswer) -> dict[str, Any]:
    """Returns what of an answer has to be equal: not addresses, times and the fields that are ours."""
    found: dict[str, Any] = {
        "code": answer.code,
        "fields": {
            name: "" if name in _TIMES and int(value) else value
            for name, value in answer.ext.items()
            if name not in (*_OF_OURS, "msgId")
        },
    }
    if answer.body.startswith(b"{"):  # others are records, whose times and hosts differ
        found["body"] = _plain(decode_config(_ADDRESS.sub("ADDRESS", answer.body.decode("utf-8", "replace"))))
    return found


def _plain(value: Any) -> Any:
    """Returns JSON without the order of lists, and of times only whether there is one."""
    if isinstance(value, list):
        return sorted(map(_plain, value), key=str)
    if not isinstance(value, dict):
        return value
    return {name: _time(each) if _is_time(name) else _plain(each) for name, each in value.items()}


def _is_time(name: object) -> bool:
    return isinstance(name, str) and ("TimeStamp" in name or name == "delayTime")


def _time(value: Any) -> str:
    return re.sub(r"\d+", "0", str(value))

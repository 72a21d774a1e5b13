"""What the tables of a broker take can be read again; what cannot be read costs no more than that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.errors import ProtocolError
from seglog.remoting.admin_headers import KeyHeader, KeyValueHeader
from seglog.remoting.body_json.body_codec import BodyCodec
from seglog.remoting.body_json.table_bodies import CONFIG, GROUP, GROUP_LIST
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.exchanges import EXCHANGES
from seglog.remoting.frames.limits import DEFAULT_LIMITS
from tests.support.brokers import ask, open_broker
from tests.support.narrow import not_none
from tests.support.rows import each_row


def _has_json(codec: BodyCodec[Any] | None) -> bool:
    """Returns whether bodies of a code are JSON."""
    try:
        return codec is not None and codec.decode(b"{", DEFAULT_LIMITS) is None
    except ProtocolError as error:
        return "no JSON" in str(error)


NESTED = "[" * 31 + "]" * 31
"""As deep as a body may have it: deeper than a file, whose entries stand one level further down."""
HOSTILE = {
    "deep list": NESTED,
    "deep object": '{"a":' * 30 + "1" + "}" * 30,
    "reference": '{"$ref":"$.groupName"}',
    "hidden reference": '{"\\u0024ref":"$.x"}',
    "reference of another form": '{"$ref":"$"}',
    "half of a pair": '"\\ud800"',
    "zero": '"\\u0000"',
    "large": "1e308",
    "too large": "1e999",
    "small": "-5e-324",
    "long": "9" * 40,
    "too long": "9" * 41,
    "not a number": "NaN",
    "key that is an object": '{{"a":1}:2}',
    "key that is a number": "{-0:1,7:2}",
    "key that is half of a pair": '{"\\ud800":1}',
    "key that is a number in quotes": '{"7":1,7:2}',
}


def reopened(broker: Broker) -> Broker:
    broker.close()
    return open_broker(broker.path)


def settings_of(broker: Broker, member: str, text: str) -> list[Any]:
    """Sends settings of a group with one member that is hostile; returns those that were taken."""
    group = f'{{"groupName":"g","{member}":{text}}}'
    for codec, code, body in (
        (GROUP, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, group),
        (
            GROUP_LIST,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
            f'{{"groupConfigList":[{group}]}}',
        ),
    ):
        try:
            decoded: Any = codec.decode(body.encode(), DEFAULT_LIMITS)
        except ProtocolError:
            continue
        ask(broker, code, body=decoded)
    return [broker.groups.get("g")]


@each_row("member", ["groupRetryPolicy", "attributes", "more", "retryMaxTimes"])
@each_row("text", HOSTILE.values())
def test_settings_of_a_group_are_the_same_after_the_broker_opens_again(tmp_path, member, text):
    with open_broker(tmp_path) as broker:
        before = settings_of(broker, member, text)
        with reopened(broker) as again:
            assert [again.groups.get("g")] == before


@each_row("member", ["attributes", "more", "readQueueNums"])
@each_row("text", HOSTILE.values())
def test_settings_of_a_topic_are_the_same_after_the_broker_opens_again(tmp_path, member, text):
    body = f'{{"topicConfigList":[{{"topicName":"T","{member}":{text}}}]}}'
    try:
        decoded: Any = CONFIG.decode(body.encode(), DEFAULT_LIMITS)
    except ProtocolError:
        return
    with open_broker(tmp_path) as broker:
        ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=decoded)
        before = broker.topics.get("T")
        with reopened(broker) as again:
            assert again.topics.get("T") == before


def test_a_group_whose_policy_the_file_cannot_have_is_refused(broker):
    policy = f'{{"groupName":"g","groupRetryPolicy":{NESTED}}}'.encode()
    answer = ask(
        broker,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        body=GROUP.decode(policy, DEFAULT_LIMITS),
    )
    assert answer.code is ResponseCode.INVALID_PARAMETER
    assert "g could not be read again" in answer.remark
    assert broker.groups.get("g") is None


def put(broker: Broker, namespace: str, key: str, value: str) -> Any:
    return ask(broker, RequestCode.PUT_KV_CONFIG, KeyValueHeader(namespace, key, value))


@pytest.mark.parametrize("path", ["$", "$.configTable", "$.configTable.other", "anything"])
def test_a_value_that_its_file_would_take_for_a_reference_is_refused(broker, path):
    assert put(broker, "other", "k", "v").code is ResponseCode.SUCCESS
    assert put(broker, "n", "$ref", path).code is ResponseCode.INVALID_PARAMETER
    assert put(broker, "n", "k", "v").code is ResponseCode.SUCCESS
    assert put(broker, "n", "$ref", path).code is ResponseCode.SUCCESS
    gone = ask(broker, RequestCode.DELETE_KV_CONFIG, KeyHeader("n", "k"))
    assert gone.code is ResponseCode.INVALID_PARAMETER
    with reopened(broker) as again:
        assert ask(again, RequestCode.GET_KV_CONFIG, KeyHeader("n", "$ref")).header.value == path
        assert ask(again, RequestCode.GET_KV_CONFIG, KeyHeader("n", "k")).header.value == "v"


@pytest.mark.parametrize("name", ["$ref", "", "\ud800", "\ud83d\ude00", "\0", "7", "-0", '{"a":1}', "\n"])
def test_names_and_values_of_any_kind_are_the_same_after_the_broker_opens_again(broker, name):
    answers = [put(broker, *names) for names in ((name, "k", "v"), ("n", name, "v"), ("m", "k", name))]
    assert all(answer.code in (ResponseCode.SUCCESS, ResponseCode.INVALID_PARAMETER) for answer in answers)
    before = [dict(broker._state.key_values.namespace(one) or {}) for one in (name, "n", "m")]
    with reopened(broker) as again:
        assert [dict(again._state.key_values.namespace(one) or {}) for one in (name, "n", "m")] == before


@pytest.mark.parametrize(
    ("place", "table", "damaged"),
    [
        ("config/subscriptionGroup.json", "subscriptionGroupTable", json.loads(NESTED)),
        ("config/subscriptionGroup.json", "subscriptionGroupTable", {"retryMaxTimes": "many"}),
        ("config/subscriptionGroup.json", "subscriptionGroupTable", {"groupRetryPolicy": {"$ref": "$.none"}}),
        ("config/subscriptionGroup.json", "subscriptionGroupTable", {"consumeEnable": 1}),
        ("config/subscriptionGroup.json", "subscriptionGroupTable", 7),
        ("config/topics.json", "topicConfigTable", {"perm": None}),
        ("config/topics.json", "topicConfigTable", {"more": json.loads(NESTED)}),
        ("seglog/kvConfig.json", "configTable", {"$ref": "$"}),
        ("seglog/kvConfig.json", "configTable", {"k": 1}),
        ("config/consumerFilter.json", "filterDataByTopic", {"groupFilterData": 1}),
    ],
)
def test_an_entry_that_cannot_be_read_costs_that_entry_and_not_the_store(
    broker, caplog, place, table, damaged
):
    settings_of(broker, "retryMaxTimes", "3")
    body = {"topicConfigList": [{"topicName": "T", "readQueueNums": 3}]}
    ask(
        broker,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        body=CONFIG.decode(json.dumps(body).encode(), DEFAULT_LIMITS),
    )
    put(broker, "n", "k", "v")
    broker.close()
    file = broker.path / place
    found = json.loads(file.read_text()) if file.exists() else {table: {}}
    found[table]["bad"] = damaged
    file.with_name(f"{file.name}.bak").unlink(missing_ok=True)
    file.write_text(json.dumps(found))
    for _ in range(2):  # the file stays as long as nothing is saved
        with open_broker(broker.path) as again:
            assert not_none(again.groups.get("g")).retry_max_times == 3
            assert not_none(again.topics.get("T")).read_queue_nums == 3
            assert ask(again, RequestCode.GET_KV_CONFIG, KeyHeader("n", "k")).header.value == "v"
            assert again.groups.get("bad") is None
            assert again.topics.get("bad") is None
    assert "1 entries cannot be read, and are gone: bad" in caplog.text
    with open_broker(broker.path) as again:
        settings_of(again, "retryMaxTimes", "4")
        put(again, "n", "k", "w")
        body["topicConfigList"][0]["readQueueNums"] = 4
        ask(
            again,
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
            body=CONFIG.decode(json.dumps(body).encode(), DEFAULT_LIMITS),
        )
    if "consumerFilter" not in place:
        assert list((broker.path / "seglog/evidence").glob(f"{file.name}.*")), "the damaged file is kept"


LONG = "x" * 100_000
COPIES = ",".join(['{"$ref":"$.more"}'] * 5_000)
WITH_JSON = sorted(code for code, exchange in EXCHANGES.items() if _has_json(exchange.request_body))


@pytest.mark.parametrize("code", WITH_JSON, ids=str)
def test_references_make_no_request_much_longer_than_it_is(code):
    body = f'{{"more":"{LONG}","copies":[{COPIES}]}}'.encode()
    with pytest.raises(ProtocolError, match="characters with all references written out"):
        not_none(EXCHANGES[code].request_body).decode(body, DEFAULT_LIMITS)


def test_settings_that_take_much_are_refused(broker):
    for text in (f'"{LONG}"', f'["{LONG[:20_000]}",{",".join(["1"] * 30_000)}]'):
        assert settings_of(broker, "more", text) == [None]
    reference = '{"$ref":"$.more[0]"}'
    with_references = f'["{LONG[:4_000]}",{",".join([reference] * 30)}]'
    assert settings_of(broker, "more", with_references) == [None]

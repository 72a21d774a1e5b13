"""Our answers to requests as bytes; ``tests/interop/brokers`` holds them against the real broker's."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest

from tests.interop.judging.plain_requests import PLAIN_REQUESTS, seen
from tests.interop.judging.wire import RawClient, WireRequest
from tests.support.listening import BrokerServer
from tests.support.rows import every_row


@pytest.fixture
def server(tmp_path):
    with BrokerServer(tmp_path / "store", record_crc=False) as opened:
        yield opened


def test_each_request_is_answered_as_rocketmq_does(server):
    with RawClient(server.address) as client, every_row() as row:
        for number, plain in enumerate(PLAIN_REQUESTS):
            with row(f"{number}: {plain.request.code} {plain.request.ext!s:.200}"):
                answer = client.ask(plain.request)
                assert answer.code == plain.code, answer.remark
                if plain.fields is not None:
                    assert answer.ext.keys() - {"seglogDurability"} == plain.fields
                if plain.holds is not None:
                    shown = seen(answer).get("body", {})
                    assert {name: shown.get(name) for name in plain.holds} == plain.holds


def test_the_times_of_a_topic_are_told_as_numbers_and_as_text_of_local_time(server):
    with RawClient(server.address) as client:
        for plain in PLAIN_REQUESTS[:1]:
            client.ask(plain.request)
        answer = client.ask(WireRequest(303, {"topic": "T", "group": "g"}, None))
    spans = json.loads(answer.body)["consumeTimeSpanSet"]
    assert len(spans) == 4
    for span in spans:
        for name in ("minTimeStamp", "maxTimeStamp", "consumeTimeStamp"):
            text, ms = span[f"{name}Str"], span[name]
            assert re.fullmatch(r"\d{4}-\d\d-\d\d#\d\d:\d\d:\d\d:\d{3}", text)
            day, _, milliseconds = text.rpartition(":")
            local = datetime.strptime(day, "%Y-%m-%d#%H:%M:%S").astimezone()
            assert int(local.astimezone(UTC).timestamp()) * 1_000 + int(milliseconds) == ms

"""Bodies are to a consumer here what RocketMQ's own client makes of the same records."""

from __future__ import annotations

import base64
import json
import random
import subprocess

import pytest

from seglog.consumer.message_bodies import body_of, unwrap_all
from seglog.storage.format.record import decode_message, inflate
from tests.interop.judging import toolchain
from tests.interop.judging.judge import Judge
from tests.support.machine.patience import patience_s
from tests.support.material.golden import extract
from tests.support.material.log_records import iter_log

pytestmark = pytest.mark.interop
CODECS = ("zlib", "lz4", "zstd")


def ask_java(judge, tmp_path, questions):
    path = tmp_path / "questions"
    path.write_text("".join(json.dumps(question) + "\n" for question in questions))
    command = toolchain.command_line(toolchain.build(judge.version), *toolchain.QUICK)
    command[-1] = "seglog.judge.ClientBodies"
    done = subprocess.run(
        [*command, path], capture_output=True, text=True, check=True, timeout=patience_s(60)
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def bodies():
    chance = random.Random(20)
    yield b"x"
    yield b"apples " * 1_000
    yield bytes(4 << 20)
    for size in (100, 4_096, 65_536, 65_537, 300_000):
        yield chance.randbytes(size)
        yield bytes(chance.choices(b"abc", k=size))


def test_bodies_of_javas_compressors_inflate(judge: Judge, tmp_path):
    asked = [(codec, level, body) for codec in CODECS for level in (1, 5, 9) for body in bodies()]
    questions = [
        {"type": codec, "level": level, "body": base64.b64encode(body).decode()}
        for codec, level, body in asked
    ]
    for (codec, _level, body), answer in zip(asked, ask_java(judge, tmp_path, questions), strict=True):
        assert inflate(base64.b64decode(answer), codec, len(body)) == body


@pytest.mark.parametrize("name", ["innerbatch", "comp", "outerbatch", "roll"])
def test_s4_21_pulled_records_are_the_messages_that_javas_client_gives(judge: Judge, tmp_path, name):
    records = [record.record for record in iter_log(extract(name, tmp_path))]
    (theirs,) = ask_java(judge, tmp_path, [{"records": base64.b64encode(b"".join(records)).decode()}])
    ours = unwrap_all(map(decode_message, records))
    assert ours.errors == []
    assert [as_java_says(message) for message in ours.messages] == theirs
    assert len(theirs) >= 20


def as_java_says(message):
    keys = message.properties.get("KEYS")
    return {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.phy_offset,
        "flag": message.flag,
        "bornTimestamp": message.born_timestamp_ms,
        "storeTimestamp": message.store_timestamp_ms,
        "bornHost": str(message.born_host).rpartition(":")[0].strip("[]"),
        "storeHost": f"/{message.store_host}",
        "reconsumeTimes": message.reconsume_times,
        "tags": message.tags,
        "keys": keys,
        "properties": message.properties,
        "body": base64.b64encode(body_of(message)).decode(),
    }

"""Clients that broadcast: ours and RocketMQ's own go on by one file on the machine."""

from __future__ import annotations

import pytest

from seglog.consumer.listener import ConsumeFrom
from seglog.consumer.offsets.local_offsets_json import decode_local_offsets, encode_local_offsets
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from seglog.remoting.heartbeat import MessageModel
from seglog.storage.format.config import decode_config
from tests.interop.clients.conftest import AT_ROCKETMQ
from tests.support.machine.patience import wait_until

OF_ROCKETMQ = pytest.mark.parametrize(
    "place",
    AT_ROCKETMQ,
    indirect=True,
    scope="session",
)


def send_round(producer, topic, count):
    for number in range(count):
        producer.send(topic, b"%d" % number, queue_id=number % 4)


@OF_ROCKETMQ
@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
def test_s4_07_a_java_consumer_goes_on_where_ours_has_ended_and_ours_where_it_has(place, topic, group, kind):
    folder = place.java.home / ".rocketmq_offsets"

    def of_java(expected):
        seen = []
        is_in_order = kind is OrderlyConsumer
        client_id = place.java.join("j", group, topic, is_in_order=is_in_order, broadcasts=True)

        def look():
            seen.extend((one["queueId"], one["queueOffset"]) for one in place.java.look("j", topic)[0])
            return len(seen) >= expected

        try:
            wait_until(look, idle_s=30)  # it may begin with its second look at queues, after 20 s
        finally:
            place.java.leave("j")
        return client_id, sorted(seen)

    def of_ours():
        seen = []
        options = {
            "consume_from": ConsumeFrom.FIRST,
            "message_model": MessageModel.BROADCASTING,
            "offset_folder": folder,
        }
        listener = lambda message: seen.append((message.queue_id, message.queue_offset))  # noqa: E731
        with kind(place.target, group, topic, listener, **options) as consumer:
            consumer.run_until_idle(60)
        return consumer.client_id, sorted(seen)

    def offsets():
        file = folder / client_id / group / "offsets.json"
        found = decode_local_offsets(decode_config(file.read_bytes()))
        return {queue.queue_id: offset for queue, offset in found.items()}, file

    with Producer(place.target) as producer:
        send_round(producer, topic, 8)
        client_id, seen = of_java(8)
        assert seen == [(queue_id, offset) for queue_id in range(4) for offset in range(2)]
        assert offsets()[0] == dict.fromkeys(range(4), 2)
        send_round(producer, topic, 4)
        assert of_ours() == (client_id, [(queue_id, 2) for queue_id in range(4)])
        assert offsets()[0] == dict.fromkeys(range(4), 3)
        send_round(producer, topic, 4)
        assert of_java(4) == (client_id, [(queue_id, 3) for queue_id in range(4)])
        found, file = offsets()
        assert found == dict.fromkeys(range(4), 4)
        text = file.read_bytes()
        ours = encode_local_offsets(decode_local_offsets(decode_config(text)))
        assert sorted(text.replace(b",", b"").splitlines()) == sorted(ours.replace(b",", b"").splitlines())

"""What our clients send as traces RocketMQ's own tool shows, at our broker and at the real one."""

from __future__ import annotations

import pytest

from seglog.consumer.listener import ConsumeFrom
from seglog.consumer.lite import LitePullConsumer
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from tests.interop.clients.conftest import DRAWN
from tests.interop.judging.places import CONFIG, Place, place_of_rocketmq
from tests.support.listening import BrokerServer

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def sides(request, tmp_path_factory):
    """Our broker, the real one, and RocketMQ's tool."""
    request.getfixturevalue("judge")  # it skips, or fails, where there is no Java
    folder = tmp_path_factory.mktemp("traces")
    with (
        place_of_rocketmq(folder / "theirs", DRAWN) as theirs,
        BrokerServer(folder / "ours", config=CONFIG) as server,
    ):
        ours = Place(server.address, server.address)
        assert theirs.java is not None
        yield {"ours": ours, "theirs": theirs}, theirs.java.admin
        ours.close()


def shown(tool, place, message_id):
    """What the tool prints of the traces of a message: a list of words for each."""
    printed = tool("queryMsgTraceById", "-i", message_id, name_servers=place.target)
    return [line.split() for line in printed.splitlines() if line.startswith(("Pub", "Sub"))]


@pytest.mark.parametrize("name", ["ours", "theirs"])
@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
def test_the_tool_shows_who_sent_a_message_and_whose_listener_got_it(sides, name, kind):
    """``queryMsgTraceById``, whose decoder is ``TraceView.decodeFromTraceTransData``."""
    places, tool = sides
    place = places[name]
    topic, group = place.make_topic(place.new_name("T")), place.new_name("g")
    with Producer(place.target, "traced-producer", trace=True) as producer:
        sent = producer.send(topic, b"42 apples", tags="fruit", keys="order-1")
        other = producer.send(topic, b"not traced with it")

    def listener(message):
        if message.unique_key == sent.message_id and not message.reconsume_times:
            raise RuntimeError("the application fails")

    first = ConsumeFrom.FIRST  # ours holds nothing of the log for hot here, and begins at the end otherwise
    with kind(
        place.target, group, topic, listener, trace=True, suspend_ms=100, consume_from=first
    ) as consumer:
        consumer.start()
        place.settle(lambda: consumer.counts.delivered >= 2)

    def lines(message_id):
        return shown(tool, place, message_id)

    place.settle(lambda: len(lines(sent.message_id)) >= 3, 40)
    pubs = [one for one in lines(sent.message_id) if one[0] == "Pub"]
    subs = [one for one in lines(sent.message_id) if one[0] == "Sub"]
    assert [(one[1], one[-1]) for one in pubs] == [("traced-producer", "success")]
    assert {one[1] for one in subs} == {group}
    ends = [one[-1] for one in subs]
    assert ends[0] == "failed"
    assert ends[-1] == "success" or kind is PushConsumer, "side by side it comes again after 10 s"
    assert [one[0] for one in lines(other.message_id)] == ["Pub", "Sub"]


@pytest.mark.parametrize("name", ["ours", "theirs"])
def test_the_tool_shows_which_group_polled_a_message_and_that_this_was_a_success(sides, name):
    places, tool = sides
    place = places[name]
    topic, group = place.make_topic(place.new_name("T")), place.new_name("g")
    with Producer(place.target, "untraced-producer") as producer:
        ids = [producer.send(topic, b"pear", keys="order-2", queue_id=0).message_id for _ in range(2)]
    first = ConsumeFrom.FIRST
    with LitePullConsumer(place.target, group, topic, trace=True, consume_from=first) as consumer:
        polled = []

        def are_all_polled():
            polled.extend(message.unique_key for message in consumer.poll(1))
            return len(polled) >= len(ids)

        place.settle(are_all_polled, 40)
    assert polled == ids
    for message_id in ids:
        place.settle(lambda message_id=message_id: shown(tool, place, message_id), 40)
        assert [(one[0], one[1], one[-1]) for one in shown(tool, place, message_id)] == [
            ("Sub", group, "success")
        ]

"""A group of consumers: its members share the queues of a topic, so one of them handles each message."""

from collections import Counter
from threading import Lock

from seglog import Broker, ConsumeFrom, Message, Producer, PushConsumer
from seglog.broker.tables import TopicConfig

ORDERS = 200
lock, billed = Lock(), dict[bytes, str]()


def member_of(broker: Broker, name: str) -> PushConsumer[Message]:
    def bill(order: Message) -> None:  # called by threads of the consumer
        # An order can come twice: when a queue goes to the other member, that one begins at the last commit.
        # So each order is noted, and counts once.
        with lock:
            billed.setdefault(bytes(order.body), name)

    return PushConsumer(broker, "billing", "orders", bill, consume_from=ConsumeFrom.FIRST)


with Broker.open("group.store") as broker:
    broker.topics.put(
        TopicConfig("orders", 4, 4)
    )  # a send creates a topic too, but the members ask for it before
    with member_of(broker, "first") as first, member_of(broker, "second") as second:
        first.start()
        second.start()
        with Producer(broker, "shop") as producer:
            for number in range(ORDERS):
                producer.send("orders", b"order %d" % number)
        first.run_until_idle(timeout_s=60)
        second.run_until_idle(timeout_s=60)
    print(dict(Counter(billed.values())))
    assert len(billed) == ORDERS

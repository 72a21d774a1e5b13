"""A poisoned message: an orderly consumer is stuck at it; the message is parked, and the group continues.

`seglog park` copies the message to %PARK%billing, where it waits for a person. No broker may have the store
open then.
"""

import subprocess
import sys
from threading import Event

from seglog import Broker, ConsumeFrom, Message, MessageStore, OrderlyConsumer, Producer

billed: list[bytes] = []
stands = Event()


def bill(order: Message) -> None:
    if order.body == b"poison":
        stands.set()
        raise ValueError("no such account")
    billed.append(order.body)


def billing(broker: Broker) -> OrderlyConsumer[Message]:
    return OrderlyConsumer(broker, "billing", "orders", bill, consume_from=ConsumeFrom.FIRST)


with Broker.open("parked.store") as broker:
    with Producer(broker, "shop") as producer:
        bodies = (b"order 1", b"poison", b"order 2")
        ids = [producer.send("orders", body, sharding_key="customer-7").offset_message_id for body in bodies]
    with billing(broker) as consumer:
        consumer.start()
        stands.wait(60)
    assert billed == [b"order 1"]  # in order: nothing passes the poison

park = (sys.executable, "-m", "seglog", "park", "parked.store", ids[1], "--group", "billing", "--apply")
subprocess.run(park, check=True)

with Broker.open("parked.store") as broker, billing(broker) as consumer:
    consumer.run_until_idle(timeout_s=60)
with MessageStore.open("parked.store", read_only=True) as store:
    print(billed, "and parked:", store.max_offset("%PARK%billing", 0))
assert billed == [b"order 1", b"order 2"]

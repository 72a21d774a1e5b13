"""Order by key: messages of a customer are handled one after another, those of others at the same time."""

from collections import defaultdict

from seglog import Broker, ConsumeFrom, Message, OrderlyConsumer, Producer

STEPS = (b"placed", b"paid", b"sent")
history: dict[str, list[bytes]] = defaultdict(list)


def ship(step: Message) -> None:  # an exception here keeps the queue at this message, and it comes again
    history[step.keys[0]].append(step.body)


with Broker.open("orderly.store") as broker:
    with Producer(broker, "shop") as producer:
        for what in STEPS:
            for number in range(10):
                customer = f"customer-{number}"
                producer.send("orders", what, keys=customer, sharding_key=customer)
    with OrderlyConsumer(broker, "shipping", "orders", ship, consume_from=ConsumeFrom.FIRST) as consumer:
        consumer.run_until_idle(timeout_s=60)

for customer, steps in sorted(history.items()):
    print(customer, steps)
    assert steps == list(STEPS)
assert len(history) == 10

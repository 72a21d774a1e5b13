"""A replay: messages stored since a moment are read again, and the group's own offsets stay unchanged."""

from datetime import UTC, datetime
from time import sleep

from seglog import Broker, LitePullConsumer, Producer

with Broker.open("replay.store") as broker:
    with Producer(broker, "shop") as producer:
        for number in range(3):
            producer.send("orders", b"early %d" % number)
        sleep(0.01)
        deployed = datetime.now(UTC)  # from here on a new version billed wrongly
        sleep(0.01)
        for number in range(4):
            producer.send("orders", b"late %d" % number)

    seen: list[bytes] = []
    with LitePullConsumer(broker, "rebilling", auto_commit=False) as again:
        queues = again.queues_of("orders")
        again.assign(queues)
        for queue in queues:
            again.seek(queue, deployed)  # or "begin", "end", an offset
        while len(seen) < 4:
            seen += [order.body for order in again.poll(10)]
    print(sorted(seen))
    assert sorted(seen) == [b"late %d" % number for number in range(4)]

"""A service in an event loop: it bills orders as they arrive, many at a time, without own threads."""

import asyncio

from seglog import AsyncProducer, AsyncPushConsumer, Broker, ConsumeFrom, Message

ORDERS = 100


async def serve(broker: Broker) -> int:
    async with AsyncProducer(broker, "shop") as producer:  # or AsyncProducer("127.0.0.1:9876", "shop")

        async def bill(order: Message) -> None:
            await asyncio.sleep(0.001)  # the bank is asked
            await producer.send("bills", b"bill of " + order.body, keys=order.keys)

        sends = (producer.send("orders", b"order %d" % n, keys=f"order-{n}") for n in range(ORDERS))
        await asyncio.gather(*sends)
        async with AsyncPushConsumer(
            broker, "billing", "orders", bill, consume_from=ConsumeFrom.FIRST
        ) as consumer:
            return await consumer.run_until_idle(timeout_s=60)  # a service that stays: await consumer.start()


with Broker.open("service.store") as broker:
    print("billed", asyncio.run(serve(broker)))
    bills = sum(queue.max_offset for queue in broker.store.queues() if queue.topic == "bills")
    assert bills >= ORDERS

"""Tests of an application with a broker of their own: `pytest test_orders.py`, with nothing to be set up."""

from seglog import Message, Producer
from seglog.testing import VirtualBroker


class Billing:
    """The application: it bills orders and sends a bill for each."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.down = True

    def bill(self, order: Message) -> None:
        """Sends the bill of an order."""
        if self.down:
            raise ConnectionError("the bank does not answer")
        self.producer.send("bills", b"bill of " + order.body, keys=order.keys)


def test_orders_are_billed_once_the_bank_answers(seglog_broker: VirtualBroker) -> None:
    billing = Billing(seglog_broker.producer())
    seglog_broker.producer().send("orders", b"42 apples", keys="order-1")
    with seglog_broker.consumer("billing", "orders", billing.bill, in_order=False) as consumer:
        consumer.start()
        seglog_broker.advance("5s")
        assert seglog_broker.messages("bills") == []
        billing.down = False
        seglog_broker.advance("10s")  # the first retry; no second is waited for
    assert [bill.body for bill in seglog_broker.messages("bills")] == [b"bill of 42 apples"]

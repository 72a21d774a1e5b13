"""Traces as text: what RocketMQ's clients write of sends and of calls of listeners."""

from __future__ import annotations

from seglog.client.traces import (
    ConsumeEnd,
    ConsumeEndTrace,
    ConsumeTrace,
    MessageKind,
    PublishTrace,
    TraceText,
    encode_trace,
    split_texts,
)

SENT = PublishTrace(
    1_700_000_000_000, "DefaultRegion", "shop", "orders", "AB01", "fruit", "order-1 order-2",
    "10.0.0.1:10911", 9, 3, MessageKind.NORMAL, "0A00", is_success=True,
)  # fmt: skip
BEFORE = ConsumeTrace(1_700_000_000_000, None, "billing", "CALL", "orders", "AB01", 2, None)


def test_a_send_is_fourteen_fields():
    assert encode_trace(SENT) == TraceText(
        "orders",
        "Pub\x011700000000000\x01DefaultRegion\x01shop\x01orders\x01AB01\x01fruit\x01order-1 order-2"
        "\x0110.0.0.1:10911\x019\x013\x010\x010A00\x01true\x02",
        ("AB01", "order-1", "order-2"),
    )


def test_a_call_of_a_listener_is_eight_fields_before_it_and_nine_after_it():
    """What is not there is null, as Java's clients write it."""
    assert encode_trace(BEFORE) == TraceText(
        "orders", "SubBefore\x011700000000000\x01null\x01billing\x01CALL\x01AB01\x012\x01null\x02", ("AB01",)
    )
    after = ConsumeEndTrace(BEFORE, 5, is_success=False, end=ConsumeEnd.FAILED, ended_ms=1_700_000_000_005)
    assert encode_trace(after) == TraceText(
        "orders",
        "SubAfter\x01CALL\x01AB01\x015\x01false\x01null\x014\x011700000000005\x01billing\x02",
        ("AB01",),
    )


def test_what_does_not_fit_into_a_message_goes_into_the_next_one_and_nothing_is_lost():
    texts = [TraceText("T", "x" * size, ("k" * 10,)) for size in (40, 40, 40, 200, 10, 10)]
    parts = list(split_texts(texts, 100, 1_000))
    assert [[len(text.text) for text in part] for part in parts] == [[40, 40], [40], [200], [10, 10]]
    by_keys = list(split_texts(texts, 10_000, 33))
    assert [len(part) for part in by_keys] == [3, 3]
    assert list(split_texts([], 1, 1)) == []

"""What public calls must refuse, and how a refusal is looked at."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from seglog import NewMessage
from seglog.clock import VirtualClock
from seglog.consumer.listener import ConsumeFrom
from seglog.errors import InvalidArgumentError, InvalidNameError, MessageIllegalError
from seglog.storage.files.files import RealFiles
from tests.support.rows import every_row

HUGE = 10**5000
NO_INTEGERS = (True, 1.0, math.nan, "1", b"1", [1], 2**70, -(2**70), HUGE)
NO_COUNTS = (*NO_INTEGERS, -1)
NO_TEXTS = (5, True, b"text", ["text"], 1.5)
NO_BODIES = ("text", 5, 1.5, ["text"], object())
NO_FLAGS = (1, "yes", 0.0)
NO_TIMES = (math.nan, "1", True, b"1", [1])
NO_DURABILITY = ("SYNC", "", "sync ", True, 0, 1, b"sync", ConsumeFrom.LAST)
SEPARATED = ("a\x01b", "a\x02b")
"""Texts that no property can have: RocketMQ's separators are in them."""
NO_PROPERTIES = (
    *(7, "a", [("a", "b")], {"a": 1}, {1: "a"}, {b"a": "b"}, {"a": None}, {"a": b"b"}, 0, ""),
    *({"a": one} for one in SEPARATED),
    *({one: "a"} for one in (*SEPARATED, "")),
    *({"a": "\ud800"}, {"\udfff": "b"}),
)
NO_KEYS = (5, b"key", [5], [b"k"], 1.5, ["a b"], ["a", " b"], *SEPARATED, *([one] for one in SEPARATED))
NO_TAGS = (*NO_TEXTS, *SEPARATED)
NO_MESSAGES = (b"one", "one", 5, None, memoryview(b"one"))
NO_HOSTS = ("127.0.0.1:1", 5, b"\1\2\3\4")


def wrong_message(**wrong: Any) -> NewMessage:
    """Returns a message with a field that is none."""
    return NewMessage(**{"body": b"x"} | wrong)


NO_BATCHES = (
    *NO_MESSAGES,
    [],
    ["text"],
    [b"x", 5],
    [wrong_message(body="text")],
    [wrong_message(flag="1")],
)
NO_FILES = (5, "x", object(), RealFiles)
WORDS = {
    "message_id": "message_id|message id",
    "queues": "queues|topic|queue_id|queue_offset",
    "segment_size_bytes": "segment_size_bytes",
    "properties": "propert",
    "tags": "tags|TAGS",
}
"""What the error for an argument says, if that is not its name."""
NO_FOLDERS = ("commitlog", 5, None, [5], [".."], ["a/b"], ["/etc"], [""])
NO_CLOCKS = (5, "x", time, VirtualClock)
NO_DIVISIONS = (("a", 32), (8, "b"), (-8, 32), (8, -32), (0, 0), (8.0, 32), (2**70, 32))


REFUSALS = (InvalidArgumentError, InvalidNameError, MessageIllegalError)


def refused(name: str, words: Mapping[str, str] = WORDS) -> Any:
    """Expects a refusal that names the argument."""
    return pytest.raises(REFUSALS, match=f"(?i){words.get(name, name)}")


def refuses_every_value(
    table: Mapping[str, tuple[Any, ...]],
    call: Callable[[str, Any], object],
    refusal: Callable[[str], Any] = refused,
) -> None:
    """Calls with every wrong value of a table, and expects each to be refused by the argument's name.

    Args:
        table: For each argument the values that are wrong for it.
        call: Gives an argument a wrong value.
        refusal: What is expected of each argument.
    """
    with every_row() as row:
        for name, choices in table.items():
            for number, wrong in enumerate(choices):
                with row(name, number), refusal(name):
                    call(name, wrong)

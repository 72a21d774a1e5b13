"""What native sends of a broker do with parts that are not what they should be."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seglog.broker.sends.usual_sends import usual_sends
from seglog.clock import VirtualClock
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import SendMessageHeader
from seglog.remoting.peer import LOCAL_PEER
from seglog.storage.kernels.sends import new_sends
from seglog.storage.store import MessageStore
from tests.support.machine.kernels import native

USUAL = SendMessageHeader("pg", "T", "TBW102", 4, 0, 0, 1, 0, b"UNIQ_KEY\x01u\x02")


class Rules:
    """Takes the rules that a broker makes, and its store's fast path."""

    def __init__(self, store: MessageStore) -> None:
        self.path = store._tasks.fast_path
        topics = SimpleNamespace(get=lambda _: None)
        disk = SimpleNamespace(is_shut=False)
        usual_sends(self, topics, disk, b"CLUSTER\x01c\x02", {})  # type: ignore[arg-type]

    def sends(self, rules: Any) -> None:
        """Takes them."""
        self.made = replace(rules, queues_of=lambda _name, _topic: 4)


@pytest.fixture
def rules(tmp_path: Path):
    native()
    with MessageStore.open(tmp_path, clock=VirtualClock(), small=True) as store:
        store.append("T", 0, b"", b"", 0)
        yield Rules(store)


def try_send(rules: Rules, request: Any = None, peer: Any = LOCAL_PEER, **changed: Any) -> Any:
    asked = Request(RequestCode.SEND_MESSAGE_V2, USUAL, b"body") if request is None else request
    return new_sends(rules.path, replace(rules.made, **changed))(asked, peer)


def test_a_send_is_answered(rules):
    answer = try_send(rules, topic_of=lambda name: name)
    assert (answer.header.queue_offset, answer.header.transaction_id) == (1, "u")


@pytest.mark.parametrize(
    "asked",
    [object(), "send", Request(11, USUAL), Request(2**70, USUAL), Request(b"310", USUAL)],  # type: ignore[arg-type]
)
def test_other_requests_are_left_to_python(rules, asked):
    assert try_send(rules, asked, topic_of=lambda name: name) is None


def test_another_peer_is_left_to_python(rules):
    assert try_send(rules, peer="me", topic_of=lambda name: name) is None


def test_topics_that_are_not_known_are_left_to_python(rules):
    assert try_send(rules, topic_of=lambda _: None) is None


@pytest.mark.parametrize("count", [0, -1, 2**40, None, "4"])
def test_a_topic_without_usual_queues_is_left_to_python(rules, count):
    assert try_send(rules, topic_of=lambda name: name, queues_of=lambda _name, _topic: count) is None


def fail(error: BaseException) -> Any:
    raise error


def test_an_error_is_left_to_be_raised_by_python(rules):
    assert try_send(rules, topic_of=lambda _: fail(LookupError())) is None
    assert try_send(rules, topic_of=lambda name: name, queues_of=lambda *_: fail(LookupError())) is None
    assert try_send(rules, topic_of=lambda name: name, disk=object()) is None


def test_what_ends_a_thread_ends_the_send(rules):
    with pytest.raises(KeyboardInterrupt):
        try_send(rules, topic_of=lambda _: fail(KeyboardInterrupt()))


def test_a_stamp_that_leaves_no_room_is_left_to_python(rules):
    assert try_send(rules, topic_of=lambda name: name, stamp=bytes(32_767)) is None
    assert try_send(rules, topic_of=lambda name: name, stamp="text") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("asked", dict),
        ("response", "Response"),
        ("send_codes", (1,)),
        ("send_codes", "codes"),
        ("answered", Request),
    ],
)
def test_rules_of_another_form_are_refused(rules, name, value):
    with pytest.raises((TypeError, AttributeError)):
        try_send(rules, **{name: value})


def test_what_is_no_fast_path_has_no_native_sends(rules):
    assert new_sends(object(), rules.made)(Request(310, USUAL), LOCAL_PEER) is None
    with pytest.raises(TypeError):
        native().UsualSends(object(), rules.made)
    with pytest.raises(TypeError):
        new_sends(rules.path, rules.made)(Request(310, USUAL))  # type: ignore[call-arg]


def test_sends_that_refer_to_themselves_are_collected(rules):
    class Disk:
        is_shut = False

    disk = Disk()
    disk.sends = new_sends(rules.path, replace(rules.made, disk=disk))  # type: ignore[attr-defined]
    seen = weakref.ref(disk)
    del disk
    gc.collect()
    assert seen() is None

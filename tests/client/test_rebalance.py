"""Shares of queues: each queue has one member, and every member computes the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.client.rebalance import allocate_averagely
from seglog.remoting.message_queue import MessageQueue


def queues(count, topic="T"):
    return [MessageQueue(topic, "broker-a", queue_id) for queue_id in range(count)]


def share(client, members, count):
    return [queue.queue_id for queue in allocate_averagely(client, members, queues(count))]


@pytest.mark.parametrize(
    ("count", "members", "shares"),
    [
        (8, "ab", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (8, "abc", [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (4, "abc", [[0, 1], [2], [3]]),
        (2, "abc", [[0], [1], []]),
        (3, "abc", [[0], [1], [2]]),
        (0, "ab", [[], []]),
        (5, "a", [[0, 1, 2, 3, 4]]),
    ],
)
def test_shares_are_those_of_java(count, members, shares):
    assert [share(client, members, count) for client in members] == shares


@given(
    st.sets(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=9),
    st.permutations(queues(17)),
    st.integers(0, 17),
)
def test_each_queue_has_exactly_one_member_and_shares_differ_by_one_at_most(members, shuffled, count):
    some = shuffled[:count]
    shares = [allocate_averagely(client, members, some) for client in members]
    assert sorted(queue for one in shares for queue in one) == sorted(some)
    sizes = [len(one) for one in shares]
    assert max(sizes) - min(sizes) <= 1


def test_who_is_not_a_member_gets_nothing():
    assert share("x", "ab", 4) == []
    assert share("x", "", 4) == []


def test_a_member_that_is_named_twice_counts_once():
    assert share("a", "aab", 4) == [0, 1]

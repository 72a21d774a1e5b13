"""Shares of queues: each queue has one member, and every member, Java's too, computes the same."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seglog.errors import InvalidArgumentError
from seglog.remoting.allocation import AllocateAveragely, share_of
from seglog.remoting.allocation.averagely import AllocateAveragelyByCircle
from seglog.remoting.allocation.by_config import AllocateByConfig
from seglog.remoting.allocation.consistent_hash import AllocateConsistentHash
from seglog.remoting.allocation.machine_rooms import AllocateByMachineRoom, AllocateMachineRoomNearby
from seglog.remoting.message_queue import MessageQueue
from tests.support.material.allocations import GROUPS, STRANGER, golden_groups
from tests.support.rows import each_row

GOLDEN = golden_groups()
AVERAGELY, CIRCLE, HASH = AllocateAveragely(), AllocateAveragelyByCircle(), AllocateConsistentHash()


def queues(count, topic="T", broker="broker-a"):
    return [MessageQueue(topic, broker, queue_id) for queue_id in range(count)]


def share(client, members, count, strategy=AVERAGELY):
    return [queue.queue_id for queue in share_of(strategy, "G", client, queues(count), members)]


def before_the_at(name):
    return name[: max(0, name.find("@"))]


def nearby(strategy):
    return AllocateMachineRoomNearby(strategy, lambda queue: before_the_at(queue.broker_name), before_the_at)


def strategies_of(group, all_queues):
    found = (
        AVERAGELY,
        CIRCLE,
        AllocateByConfig(all_queues[place] for place in group["configured"]),
        AllocateByMachineRoom(group["rooms"]),
        AllocateConsistentHash(group["virtualNodes"]),
        nearby(AVERAGELY),
        nearby(CIRCLE),
    )
    return {strategy.name: strategy for strategy in found}


def answer(strategy, client, all_queues, members):
    """Returns a share as the golden table writes it; queues and members come in any order."""
    chance = random.Random(len(all_queues))
    mixed, others = [*all_queues], [*members]
    chance.shuffle(mixed)
    chance.shuffle(others)
    try:
        return [all_queues.index(queue) for queue in share_of(strategy, "G", client, mixed, others)]
    except InvalidArgumentError:
        return "refused"


@each_row("number", range(GROUPS))
def test_s4_13_shares_are_those_of_javas_own_classes(number):
    group = GOLDEN[number]
    all_queues = [MessageQueue(*queue) for queue in group["queues"]]
    members = group["members"]
    for name, strategy in strategies_of(group, all_queues).items():
        shares = [answer(strategy, client, all_queues, members) for client in [*members, STRANGER]]
        assert shares == group[name], name


def test_the_golden_table_has_what_is_hard():
    rows = [
        (group, name) for group in GOLDEN for name in strategies_of(group, [MessageQueue("", "", 0)] * 99)
    ]
    assert len(GOLDEN) == GROUPS
    assert sum(len(group["members"]) for group in GOLDEN) > 600
    assert sum("refused" in group[name] for group, name in rows) > 20
    assert sum(len(set(group["members"])) < len(group["members"]) for group in GOLDEN) > 20
    by_code_point = sum(sorted(group["members"]) != group["members"] for group in GOLDEN)
    assert by_code_point > 0, (
        "Java sorts by UTF-16 units, which differs where a surrogate meets U+E000 and up"
    )


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
def test_shares_are_neighbouring_queues_and_the_first_members_have_one_more(count, members, shares):
    assert [share(client, members, count) for client in members] == shares


MEMBERS = st.sets(st.text("ab@#\ue000\U0001f600", min_size=1, max_size=4), min_size=1, max_size=9)


@given(MEMBERS, st.permutations(queues(17)), st.integers(0, 17), st.sampled_from([AVERAGELY, CIRCLE]))
def test_each_queue_has_exactly_one_member_and_shares_differ_by_one_at_most(members, mixed, count, strategy):
    some = mixed[:count]
    shares = [share_of(strategy, "G", client, some, members) for client in members]
    assert sorted(queue for one in shares for queue in one) == sorted(some)
    sizes = [len(one) for one in shares]
    assert max(sizes) - min(sizes) <= 1


@given(MEMBERS, st.integers(0, 40), st.integers(1, 12))
def test_by_consistent_hash_each_queue_has_exactly_one_member(members, count, virtual_nodes):
    strategy = AllocateConsistentHash(virtual_nodes)
    shares = [share_of(strategy, "G", client, queues(count), members) for client in members]
    assert sorted(queue for one in shares for queue in one) == queues(count)


@given(MEMBERS, st.integers(1, 40))
def test_by_consistent_hash_only_the_queues_of_a_member_that_leaves_move(members, count):
    assume(len(members) > 1)
    _gone, *rest = sorted(members)
    for client in rest:
        before = set(share_of(HASH, "G", client, queues(count), members))
        assert before <= set(share_of(HASH, "G", client, queues(count), rest))


def test_by_consistent_hash_the_place_behind_the_last_is_the_first():
    places = {"a-0": 10, "b-0": 20}
    behind = AllocateConsistentHash(1, lambda key: places.get(key, 21))
    at_it = AllocateConsistentHash(1, lambda key: places.get(key, 20))
    assert share("a", "ab", 3, behind) == [0, 1, 2]
    assert share("b", "ab", 3, at_it) == [0, 1, 2]


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("12")), min_size=1, max_size=8, unique=True)
)
def test_nearby_each_queue_has_one_member_and_it_is_of_its_room_where_there_is_one(rooms_and_names):
    members = [f"{room}@{name}" for room, name in rooms_and_names]
    present = {room for room, _name in rooms_and_names}
    all_queues = [queue for room in "xyw" for queue in queues(5, broker=f"{room}@broker")]
    shares = {client: share_of(nearby(AVERAGELY), "G", client, all_queues, members) for client in members}
    assert sorted(queue for one in shares.values() for queue in one) == sorted(all_queues)
    for client, own in shares.items():
        for queue in own:
            room = before_the_at(queue.broker_name)
            assert room == before_the_at(client) or room not in present


def test_who_is_not_a_member_gets_nothing():
    assert share("x", "ab", 4) == []
    assert share("x", "", 4) == []


def test_a_member_that_is_named_twice_counts_twice_as_in_java():
    assert share("a", "aab", 4) == [0, 1]
    assert share("b", "aab", 4) == [3]


@each_row("strategy", [AVERAGELY, CIRCLE, HASH, AllocateByMachineRoom("x"), nearby(AVERAGELY)])
@each_row(
    "client, count, members, message",
    [
        ("", 1, "a", "the client id of a member of G is empty"),
        ("a", 0, "a", "G: no queues to share"),
        ("a", 1, "", "G: no members to share the queues"),
    ],
)
def test_what_no_share_can_be_made_of_is_refused(strategy, client, count, members, message):
    with pytest.raises(InvalidArgumentError, match=message):
        strategy.allocate("G", client, queues(count), list(members))


def test_who_stands_in_no_room_is_refused_with_its_name():
    with pytest.raises(InvalidArgumentError, match=r"the client 10\.0\.0\.1 stands in no machine room"):
        share_of(nearby(AVERAGELY), "G", "10.0.0.1", queues(1, broker="x@b"), ["10.0.0.1"])
    with pytest.raises(InvalidArgumentError, match=r"broker-a.* stands in no machine room"):
        share_of(nearby(AVERAGELY), "G", "x@1", queues(1), ["x@1"])


def test_a_negative_number_of_virtual_nodes_is_refused():
    with pytest.raises(InvalidArgumentError, match="virtual_nodes=-1"):
        AllocateConsistentHash(-1)

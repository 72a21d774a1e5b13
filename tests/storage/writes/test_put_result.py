"""What a put returns is the named tuple PutResult, however it is made."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from seglog.storage.format.record.host import Host
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import PutResult
from tests.support.machine.fast_paths import fast_paths_of
from tests.support.machine.kernels import BOTH
from tests.support.material.stores import OpenStore


@pytest.fixture(params=BOTH, autouse=True)
def fast_paths(request):
    with fast_paths_of(request.param):
        yield


@pytest.fixture
def store(open_store: OpenStore) -> MessageStore:
    store = open_store()
    store.put("T", b"first", queue_id=3)
    return store


@pytest.fixture
def made(store: MessageStore) -> PutResult:
    return store.put("T", b"body", queue_id=3)


@pytest.fixture
def same(store: MessageStore, made: PutResult) -> PutResult:
    """The same, made by hand."""
    message = store.message_at(made.phy_offset)
    return PutResult(
        "T",
        3,
        1,
        store.min_phy_offset + message.phy_offset,
        message.size_bytes,
        message.store_timestamp_ms,
        message.store_host,
        Durability.ASYNC,
    )


def test_it_is_an_instance(made):
    assert isinstance(made, PutResult)
    assert isinstance(made, tuple)
    assert isinstance(made, Sequence)
    assert made.__class__ is PutResult
    assert made.__doc__ == PutResult.__doc__


def test_it_has_the_fields_of_the_class(made, same):
    assert made._fields == PutResult._fields
    for name in PutResult._fields:
        assert getattr(made, name) == getattr(same, name)
        assert getattr(made, "".join(name)) == getattr(same, name)
        assert type(getattr(made, name)) is type(getattr(same, name))
    assert made.message_id == same.message_id
    assert set(dir(same)) <= set(dir(made))


def test_it_is_equal_hashed_and_ordered_as_a_tuple(made, same):
    later = same._replace(queue_offset=2)
    assert made == same == tuple(made) == made
    assert tuple(same) == made
    assert (made != same, made == later, made == list(same), made == 5) == (False, False, False, False)
    assert hash(made) == hash(same)
    assert {same: 1}[made] == 1
    assert len({made, same}) == 1
    assert later > made
    assert made < later
    assert made >= same
    with pytest.raises(TypeError, match="not supported between"):
        _ = made < 5


def test_it_is_shown_as_the_class_shows_it(made, same):
    assert repr(made) == repr(same)
    assert str(made) == str(same)
    assert f"{made}" == f"{same}"


def test_it_is_taken_apart_as_a_tuple(made, same):
    topic, queue_id, *_between, durability = made
    assert (topic, queue_id, durability) == ("T", 3, Durability.ASYNC)
    assert [*made] == [*same]
    assert [*reversed(made)] == [*reversed(same)]
    assert [made[place] for place in range(-8, 8)] == [same[place] for place in range(-8, 8)]
    assert made[1:4] == same[1:4]
    assert (len(made), made.count(3), made.index(3)) == (8, same.count(3), 1)
    assert (3 in made, 77 in made) == (True, False)
    one = (1,)
    assert (made + one, one + made) == (same + one, one + same)
    assert (made * 2, 2 * made) == (same * 2, 2 * same)
    for wrong in (8, -9):
        with pytest.raises(IndexError, match="tuple index out of range"):
            _ = made[wrong]
    with pytest.raises(TypeError, match="indices must be integers"):
        _ = made["topic"]


def test_patterns_match_it(made):
    match made:
        case [topic, queue_id, *_]:
            assert (topic, queue_id) == ("T", 3)
        case _:
            pytest.fail("it is no sequence")
    match made:
        case PutResult(topic, 3, store_host=Host(port=port)):
            assert (topic, port) == ("T", made.store_host.port)
        case _:
            pytest.fail("it is no PutResult")


def test_its_methods_are_those_of_named_tuples(made, same):
    assert made._asdict() == same._asdict()
    assert made._replace(queue_id=4) == same._replace(queue_id=4)
    assert type(made)(*same) == same
    holder = dataclasses.make_dataclass("Holder", ["result"])(made)
    assert dataclasses.asdict(holder)["result"][:6] == same[:6]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_is_pickled_as_the_class(made, same, protocol):
    assert pickle.dumps(made, protocol) == pickle.dumps(same, protocol)
    back = pickle.loads(pickle.dumps(made, protocol))  # noqa: S301 - our own bytes
    assert (type(back), back) == (PutResult, same)


def test_it_is_copied(made, same):
    assert copy.copy(made) == copy.deepcopy(made) == same


def test_nothing_of_it_can_be_set(made):
    other: Any = made
    for name in ("topic", "queue_offset", "another"):
        with pytest.raises(AttributeError):
            setattr(other, name, 5)
        with pytest.raises(AttributeError):
            delattr(other, name)
    with pytest.raises(TypeError):
        other[0] = "U"
    with pytest.raises(AttributeError, match="'PutResult' object has no attribute 'another'"):
        _ = other.another


def test_results_that_are_kept_stay_what_they_were(store: MessageStore):
    kept = [store.put("T", b"x", queue_id=number % 3) for number in range(300)]
    firsts = [result.phy_offset for result in kept[::2]]
    del kept[1::2]
    for _ in range(300):
        store.put("T", b"another")
    assert [result.phy_offset for result in kept] == firsts == sorted(firsts)
    assert {result.queue_id for result in kept} == {0, 1, 2}


def test_a_result_keeps_what_it_has_and_then_lets_go_of_it(store: MessageStore):
    host = Host(bytes(4), 5)
    before = sys.getrefcount(host)
    results = [store.append("T", 3, b"x", b"", 0, store_host=host) for _ in range(200)]
    assert all(result.store_host is host for result in results)
    assert sys.getrefcount(host) >= before + 200
    results.clear()
    assert sys.getrefcount(host) == before

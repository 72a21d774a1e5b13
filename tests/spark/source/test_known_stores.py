"""Which place of a checkpoint belongs to which store: each has its own, however it is spelt or called."""

from __future__ import annotations

import json
import shutil
from contextlib import chdir

import pytest

from seglog import MessageStore
from seglog.errors import InvalidArgumentError
from tests.support.streams import Stream


@pytest.fixture(autouse=True)
def _stores(tmp_path):
    put(tmp_path / "one", range(5))
    put(tmp_path / "two", range(100, 112))
    put(tmp_path / "three", range(200, 203))


def put(root, numbers):
    with MessageStore.open(root, segment_size_bytes=1 << 16) as store:
        for number in numbers:
            store.put("T", b"%d" % number)


def numbers(rows):
    return sorted(int(row["body"]) for row in rows)


def follow(*paths, at=None, **options):
    """Begins a stream, or continues with one from its checkpoint."""
    stream = Stream(*paths, starting="earliest", **options)
    stream.at = stream.at if at is None else json.loads(json.dumps(at))
    return stream


@pytest.mark.parametrize("names", [("b",), ("b", "b"), ("b", "c")])
def test_stores_with_one_broker_name_have_a_place_each(tmp_path, names):
    one, two = tmp_path / "one", tmp_path / "two"
    stream = follow(one, two, broker_names=names)
    assert numbers(stream.batch()) == [*range(5), *range(100, 112)]
    assert stream.at.keys() == {str(one), str(two)}
    put(one, range(5, 25))
    put(two, range(112, 115))
    stream = follow(one, two, broker_names=names, at=stream.at)
    assert numbers(stream.batch()) == [*range(5, 25), *range(112, 115)]
    assert stream.planned() == stream.at
    assert json.dumps(stream.planned()) == json.dumps(stream.at)  # Spark compares texts


SPELLINGS = [
    "one",
    "./one/",
    "{}/one",
    "{}/one/",
    "{}//one",
    "file://{}/one",
    "{}/two/../one",
    "{}/link",
]


@pytest.mark.parametrize("before", SPELLINGS)
@pytest.mark.parametrize("names", [(), ("b",)])
def test_a_store_is_the_same_however_it_is_spelt(tmp_path, before, names):
    (tmp_path / "link").symlink_to("one")
    with chdir(tmp_path):
        stream = follow(before.format(tmp_path))
        stream.batch()
        put(tmp_path / "one", range(5, 8))
        for spelling in SPELLINGS:
            other = follow(spelling.format(tmp_path), at=stream.at, broker_names=names)
            assert numbers(other.batch()) == [5, 6, 7]


def of_earlier_version(at, **keys):
    """Returns a checkpoint as earlier versions wrote it."""
    made = {}
    for key, old in keys.items():
        (found,) = [place for name, place in at.items() if name.endswith(f"/{key}")]
        made[old] = {name: value for name, value in found.items() if name not in ("brokerName", "wanted")}
    return made


@pytest.mark.parametrize("old", ["one", "one/", "b", "{}/one", "file://{}/one/"])
@pytest.mark.parametrize("names", [(), ("b",), ("c",)])
@pytest.mark.parametrize("spelling", ["one", "{}/one"])
def test_a_checkpoint_of_an_earlier_version_goes_on_where_it_is_clear(tmp_path, old, names, spelling):
    with chdir(tmp_path):
        stream = follow("one")
        stream.batch()
        put(tmp_path / "one", range(5, 8))
        at = of_earlier_version(stream.at, one=old.format(tmp_path))
        other = follow(spelling.format(tmp_path), at=at, broker_names=names)
        assert numbers(other.batch()) == [5, 6, 7]
        assert other.at.keys() == {str(tmp_path / "one")}


def test_a_checkpoint_of_an_earlier_version_with_a_name_for_each_store_goes_on(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    stream = follow(one, two)
    stream.batch()
    put(one, [5])
    put(two, [112])
    at = of_earlier_version(stream.at, one="a", two="b")
    assert numbers(follow(two, one, at=at, broker_names=("b", "a")).batch()) == [5, 112]


def test_a_checkpoint_with_one_place_for_two_stores_is_refused(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    stream = follow(one, two)
    stream.batch()
    at = of_earlier_version(stream.at, two="b")
    other = follow(one, two, at=at, broker_names=("b",))
    with pytest.raises(InvalidArgumentError, match="one place for all stores with the brokerName b"):
        other.batch()
    alone = follow(two, at=at, broker_names=("b",))
    assert alone.batch() == []
    assert numbers(follow(one, two, at=alone.at, broker_names=("b",)).batch()) == [*range(5)]


@pytest.mark.parametrize("names", [(), ("b",)])
def test_a_store_that_moved_goes_on_if_its_last_record_says_so(tmp_path, names):
    stream = follow(tmp_path / "one", tmp_path / "two", broker_names=names)
    stream.batch()
    shutil.move(tmp_path / "one", tmp_path / "moved")
    put(tmp_path / "moved", [5, 6])
    stream = follow(tmp_path / "moved", tmp_path / "two", at=stream.at, broker_names=names)
    assert numbers(stream.batch()) == [5, 6]
    assert stream.at.keys() == {str(tmp_path / "moved"), str(tmp_path / "two")}


def test_a_new_store_in_place_of_one_that_is_gone_is_refused(tmp_path):
    stream = follow(tmp_path / "one", tmp_path / "two")
    stream.batch()
    other = follow(tmp_path / "three", tmp_path / "two", at=stream.at)
    with pytest.raises(InvalidArgumentError, match=r"knows nothing of .*three, but of .*one") as refused:
        other.batch()
    assert "a link to it at its old path" in refused.value.help
    with pytest.raises(InvalidArgumentError, match="knows nothing of"):
        other.plan.pieces(stream.at, stream.at)
    # The first way out: a link.
    shutil.move(tmp_path / "one", tmp_path / "moved")
    (tmp_path / "one").symlink_to("moved")
    assert follow(tmp_path / "one", tmp_path / "two", at=stream.at).batch() == []
    # The second one: once without it.
    stream = follow(tmp_path / "two", at=stream.at)
    assert stream.batch() == []
    stream = follow(tmp_path / "three", tmp_path / "two", at=stream.at)
    assert numbers(stream.batch()) == [200, 201, 202]


def test_a_store_that_comes_back_goes_on_where_it_was(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    stream = follow(one, two)
    stream.batch()
    stream = follow(two, at=stream.at)
    put(one, [5])
    put(two, [112])
    assert numbers(stream.batch()) == [112]
    stream = follow(one, two, at=stream.at)
    assert numbers(stream.batch()) == [5]


def test_a_store_that_is_added_is_read_from_its_start_with_the_next_batch(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    stream = follow(one)
    begun, planned = stream.at, stream.planned()
    stream = follow(one, two, at=begun)
    assert numbers(stream.rows(begun, planned)) == [*range(5)]  # it was planned before
    stream.done(planned)
    assert numbers(stream.batch()) == [*range(100, 112)]


def test_a_batch_that_was_planned_with_a_store_that_is_gone_is_refused(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    stream = follow(one, two)
    begun, planned = stream.at, stream.planned()
    stream = follow(two, at=begun)
    with pytest.raises(InvalidArgumentError, match=r"has messages of .*one, which is not among the paths"):
        stream.rows(begun, planned)

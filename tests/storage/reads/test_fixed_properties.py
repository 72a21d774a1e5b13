"""The properties of a stored message refuse changes: they would change no message."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from seglog.storage.format.record.message import Message
from seglog.storage.store import MessageStore


@pytest.fixture(params=["of a store", "decoded"])
def message(request, tmp_path) -> Message:
    with MessageStore.open(tmp_path / "s") as store:
        store.put("T", b"body", tags="a", properties={"k": "1"})
        (found,) = store.get("T", 0, 0).messages
    # The class of a stored message may be the native kernel's, and that of a copy is Python's.
    return found if request.param == "of a store" else copy.copy(found)


def test_they_refuse_every_change(message):
    whole = dict(message.properties)
    changes = [
        lambda given: given.__setitem__("k", "2"),
        lambda given: given.__delitem__("k"),
        lambda given: given.__ior__({"k": "2"}),
        lambda given: given.update(k="2"),
        lambda given: given.setdefault("new", "2"),
        lambda given: given.pop("k"),
        lambda given: given.popitem(),
        lambda given: given.clear(),
    ]
    for change in changes:
        with pytest.raises(TypeError, match=r"dict\(message.properties\) is a copy"):
            change(message.properties)
    assert message.properties == whole == {**whole, "k": "1", "TAGS": "a"}


def test_they_are_a_dictionary_for_whatever_reads_one(message):
    whole = dict(message.properties)
    assert json.loads(json.dumps(message.properties)) == whole
    assert pickle.loads(pickle.dumps(message.properties)) == whole  # noqa: S301 - its own
    assert copy.deepcopy(message.properties) == whole
    assert message.properties | {"k": "2"} == {**whole, "k": "2"}
    changed = message.properties.copy()
    changed["k"] = "2"
    assert message.properties == whole

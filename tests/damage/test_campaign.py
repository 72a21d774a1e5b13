"""Random damage to five stores costs what it hits, is reported, and never becomes a wrong message."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter

import pytest

from seglog.storage.format.compaction import compaction_sizes
from seglog.storage.format.inner_batch import BatchMessage, encode_batch
from seglog.storage.format.properties import encode_properties
from seglog.storage.format.sys_flag import (
    INNER_BATCH,
    NEED_UNWRAP,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from seglog.storage.store import MessageStore
from tests.support import golden
from tests.support.campaign import COMPACTED, Subject, suffer
from tests.support.scale import scaled
from tests.support.stores import SMALL, SMALL_INDEX, fill, new_clock

SUBJECTS = ("own killed", "own with record CRC", "own of every kind", "roll", "propcrc")
EACH = scaled(100, 4000)


def put_every_kind(store, number):
    properties = encode_properties({"KEYS": f"k{number}"})
    match number % 6:
        case 0:
            store.put("Plain", b"p%d" % number * 9, tags="TagA", keys=f"k{number}", queue_id=number % 4)
        case 1:
            for state in (TRANSACTION_PREPARED, TRANSACTION_COMMIT, TRANSACTION_ROLLBACK):
                store.append("Orders", 0, b"t%d" % number, properties, 0, sys_flag=state)
        case 2:
            body = encode_batch([BatchMessage(b"b%d-%d" % (number, each)) for each in range(3)])
            store.append("Batches", 0, body, properties, 0, sys_flag=INNER_BATCH | NEED_UNWRAP)
        case 3:
            further = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b", "KEYS": f"k{number}"}
            store.put("Mqtt", b"l%d" % number * 20, properties=further)
        case 4:
            delayed = {"DELAY": "3", "REAL_TOPIC": "Orders", "REAL_QID": "0"}
            store.put("SCHEDULE_TOPIC_XXXX", b"d%d" % number, queue_id=2, properties=delayed)
        case 5:
            store.put(COMPACTED, b"c%d" % number * 5, keys=f"key{number % 5}")


def own(folder, kind):
    root = folder / "store"
    attributes = {COMPACTED: {"cleanup.policy": "COMPACTION"}, "Batches": {"queue.type": "BatchCQ"}}
    topics = ("Plain", "Orders", "Batches", "Mqtt", "SCHEDULE_TOPIC_XXXX", COMPACTED)
    config = {"topicConfigTable": {topic: {"attributes": attributes.get(topic, {})} for topic in topics}}
    if kind == "own of every kind":
        (root / "config").mkdir(parents=True)
        (root / "config" / "topics.json").write_text(json.dumps(config))
    store = MessageStore.open(
        root,
        clock=new_clock(),
        record_crc=kind == "own with record CRC",
        compaction_sizes=compaction_sizes(4000, 460),
        **SMALL,
        **SMALL_INDEX,
    )
    for half in range(2):
        if kind == "own of every kind":
            for number in range(half * 60, half * 60 + 60):
                put_every_kind(store, number)
        else:
            fill(store, 60, topics=3)
        store.flush()
        if half == 0:
            shutil.copytree(root, folder / "older")
    if kind == "own killed":
        root = shutil.copytree(root, folder / "killed")
    store.close()
    return Subject.of(root, folder / "older")


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("subject")
    if request.param.startswith("own"):
        return own(folder, request.param)
    return Subject.of(golden.extract(request.param, folder))


def test_damage_costs_no_message_that_it_does_not_hit(
    subject, memory_path, request, record_testsuite_property
):
    bad, tally = [], Counter()
    for seed in range(EACH):
        copy = memory_path / str(seed)
        outcome = suffer(subject, copy, random.Random(seed))
        tally.update(
            {
                "damages": 1,
                "hit": len(outcome.hit),
                "lost beyond": len(outcome.lost),
                "seen to differ": len(outcome.changed),
                "hit but whole": len(outcome.whole),
            }
        )
        if not outcome.is_good:
            bad.append((seed, outcome))
        shutil.rmtree(copy)
    for name, count in tally.items():
        record_testsuite_property(f"{request.node.name}: {name}", count)
    assert bad == []

"""The calls for tasks store what the others do, even if the caller changes its arguments meanwhile."""

from __future__ import annotations

import asyncio
import inspect
from collections import UserDict, deque
from types import MappingProxyType

import pytest

from seglog.errors import SeglogError
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import NewMessage, RawMessage
from tests.support.machine.fast_paths import fast_paths_of, without_fast_path
from tests.support.machine.kernels import BOTH
from tests.support.machine.patience import in_time
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock, served
from tests.support.scale import chance, scaled

UNCHANGEABLE = {"flush_async", "get_async", "wait_for_async"}
"""Calls for tasks with arguments that no caller can change."""
CHANGED = "changed"
DURABILITIES = [None, *Durability]


class Draws:
    """Random arguments as the sync call and as the task gets them, and what changes the task's afterwards."""

    def __init__(self, dice):
        self.dice = dice
        self.changes = []

    def body(self):
        size = self.dice.choice((0, 1, 40, 300, 2500))
        true = self.dice.randbytes(size)
        own = bytearray(true)
        self.changes.append(lambda: own.__setitem__(slice(None), b"S" * size))
        return true, self.dice.choice((true, own, memoryview(own), memoryview(own).toreadonly()))

    def keys(self):
        true = [f"k{self.dice.randrange(9)}" for _key in range(self.dice.randrange(3))]
        kind = self.dice.choice((list, deque, dict.fromkeys, set, iter, lambda own: (key for key in own)))
        true = list(dict.fromkeys(true))[: 1 if kind is set else None]  # sets have an order of their own
        own = list(true)
        given = kind(own)
        self.changes.append(own.clear)
        if kind in (list, deque):
            self.changes.append(lambda: given.append(CHANGED))
        elif kind is dict.fromkeys:
            self.changes.append(lambda: given.update({CHANGED: None}))
        elif kind is set:
            self.changes.append(lambda: given.add(CHANGED))
        return self.dice.choice(((true, given), (None, None), ("k1 k2", "k1 k2"), (tuple(true), tuple(true))))

    def properties(self):
        true = {self.dice.choice("abc"): self.dice.choice(("", "b", "ü" * 30)) for _name in range(2)}
        own = dict(true)
        self.changes.append(lambda: own.update(dict.fromkeys("abcd", CHANGED)))
        mapping = UserDict()
        mapping.data = own
        given = self.dice.choice((own, mapping, MappingProxyType(own)))
        return self.dice.choice(((true, given), (None, None)))

    def new_message(self):
        fields = [self.body(), ("TagA", "TagA"), self.keys(), self.properties(), (3, 3)]
        return tuple(NewMessage(*values) for values in zip(*fields, strict=True))

    def raw_message(self):
        fields = [self.body(), self.raw(), (7, 7)]
        return tuple(RawMessage(*values) for values in zip(*fields, strict=True))

    def raw(self):
        return self.dice.choice(((b"", b""), (b"KEYS\x01k\x02", b"KEYS\x01k\x02")))

    def messages(self, draw):
        true, own = [], []
        for _message in range(self.dice.randrange(1, 4)):
            each, changed = draw()
            true.append(each)
            own.append(changed)
        self.changes.append(own.clear)
        return true, own

    def call(self):
        """Returns the name of a call, its arguments twice, and how to change the second ones."""
        self.changes = []
        name = self.dice.choice(sorted(CALLS))
        same = {
            "topic": self.dice.choice("TU"),
            "queue_id": self.dice.randrange(2),
            "durability": self.dice.choice(DURABILITIES),
        }
        pairs = {key: (value, value) for key, value in same.items()} | CALLS[name](self)
        sync, task = ({key: pair[at] for key, pair in pairs.items()} for at in (0, 1))
        return name, sync, task, self.changes


CALLS = {
    "put": lambda draws: {
        "body": draws.body(), "keys": draws.keys(), "properties": draws.properties(), "tags": ("t", "t"),
    },
    "append": lambda draws: {"body": draws.body(), "properties": draws.raw(), "tags_code": (5, 5)},
    "put_batch": lambda draws: {"messages": draws.messages(draws.new_message)},
    "append_batch": lambda draws: {"messages": draws.messages(draws.raw_message)},
}  # fmt: skip


def test_every_call_for_tasks_is_met():
    tasks = {name for name, call in inspect.getmembers(MessageStore, inspect.iscoroutinefunction)}
    assert {name for name in tasks if not name.startswith("_")} == (
        UNCHANGEABLE | {"wait_for_any_async"} | {f"{name}_async" for name in CALLS}
    )


def outcome(result):
    return (type(result), str(result)) if isinstance(result, BaseException) else result


def by_calls(store, calls):
    found = []
    for name, arguments, _task, _changes in calls:
        try:
            found.append(getattr(store, name)(**arguments))
        except SeglogError as error:
            found.append(error)
    return [outcome(result) for result in found]


async def by_tasks(store, calls, dice):
    found = []
    at = 0
    while at < len(calls):
        turn = calls[at : at + dice.choice((1, 2, 10))]
        at += len(turn)
        tasks = [
            asyncio.ensure_future(getattr(store, f"{name}_async")(**own))
            for name, _true, own, _changes in turn
        ]
        await asyncio.sleep(0)
        for _name, _true, _own, changes in turn:
            for change in changes:
                change()
        found += await asyncio.gather(*tasks, return_exceptions=True)
    return [outcome(result) for result in found]


@pytest.mark.parametrize("kernels", BOTH)
def test_what_the_caller_changes_after_the_first_turn_of_a_task_is_not_stored(memory_path, kernels):
    dice = chance("changed after the first turn", kernels)
    for number in range(scaled(40, 2000)):
        draws = Draws(dice)
        calls = [draws.call() for _call in range(dice.choice((1, 5, 20)))]
        durability, has_fast_path = dice.choice(list(Durability)), dice.random() < 0.7
        told = []
        for way in ("calls", "tasks"):
            clock = new_clock()
            root = memory_path / f"{number}-{way}"
            with (
                fast_paths_of(kernels),
                MessageStore.open(root, clock=clock, durability=durability, **SMALL, **SMALL_INDEX) as store,
            ):
                if not has_fast_path:
                    without_fast_path(store)
                found = (
                    by_calls(store, calls) if way == "calls" else asyncio.run(by_tasks(store, calls, dice))
                )
                told.append((found, served(store)))
        assert told[1] == told[0]


def test_a_task_waits_for_the_queues_that_it_was_given_first(open_store):
    async def wait(store):
        queues = {("T", 0): 0, ("T", 1): 0}
        waiting = asyncio.ensure_future(store.wait_for_any_async(queues, 60_000))
        await asyncio.sleep(0)
        queues.clear()
        queues["U", 0] = 0
        await store.put_async("U", b"x")
        await asyncio.sleep(0)
        assert not waiting.done()
        await store.put_async("T", b"x", queue_id=1)
        return await in_time(waiting)

    assert asyncio.run(wait(open_store())) is True

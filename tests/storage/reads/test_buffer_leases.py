"""A store is not closed under arrays that share its memory, unless it is meant."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

from seglog.errors import ClosedError, StoreInUseError, ViewHolder
from seglog.storage.format.queue.consume_queue import Units
from seglog.storage.reads.buffer_leases import Leases
from seglog.storage.store import MessageStore


@pytest.fixture
def store(tmp_path):
    opened = MessageStore.open(tmp_path, segment_size_bytes=1 << 16)
    for number in range(300):
        opened.put("orders", b"body %d " % number * 30, queue_id=number % 2, tags="t")
    yield opened
    opened.close(force=True)


def test_closing_says_who_holds_what_and_leaves_the_store_open(store):
    view = store.queue("orders", 1)
    units, bodies = view.units(), [view.bodies(), view.bodies(0, 3)]
    with pytest.raises(StoreInUseError) as caught:
        store.close()
    assert caught.value.holders == (ViewHolder("orders", 1, "bodies", 2), ViewHolder("orders", 1, "units", 1))
    assert str(caught.value) == (
        f"3 views still share memory with {store.path}: bodies of orders/1 (2), units of orders/1 (1)"
    )
    store.put("orders", b"it is open", queue_id=1)
    assert len(store.queue("orders", 1)) == len(units) + 1
    del units, bodies
    store.close()
    with pytest.raises(ClosedError):
        store.put("orders", b"closed")


MADE_WITHOUT_COPYING = {
    "slice": lambda view: view.units()[3:7],
    "field": lambda view: view.units()["tags_code"],
    "memoryview": lambda view: memoryview(view.units()),
    "other type": lambda view: view.units().view("u1")[::2],
    "body": lambda view: view.bodies()[2],
    "properties": lambda view: next(iter(view.properties())),
    "one of a loop over bodies": lambda view: list(view.bodies())[-1],
    "loop over bodies": lambda view: [bodies := iter(view.bodies()), next(bodies)][0],
    "part of a body": lambda view: view.bodies()[2][5:6].cast("b"),
    "array of a body": lambda view: np.frombuffer(view.bodies()[1], "u1")[1:],
    "units of a file": lambda view: next(view.iter_units())[1][:1],
}
COPIED = {
    "timestamps": lambda view: view.timestamps(),
    "table": lambda view: view.read_columns(),
    "columns": lambda view: view.columns(),
    "loop that has ended": lambda view: [bodies := iter(view.bodies()), *map(bytes, bodies)],
    "packed": lambda view: view.bodies().pack(),
    "copy": lambda view: view.units().copy(),
    "mask": lambda view: view.units()["tags_code"] == 1,
    "the view itself": lambda view: view,
}


@pytest.mark.parametrize("derive", MADE_WITHOUT_COPYING.values(), ids=MADE_WITHOUT_COPYING)
def test_whatever_is_made_without_copying_counts(store, derive):
    kept = derive(store.queue("orders", 0))
    with pytest.raises(StoreInUseError):
        store.close()
    del kept
    store.close()


@pytest.mark.parametrize("derive", COPIED.values(), ids=COPIED)
def test_copies_do_not_count(store, derive):
    kept = derive(store.queue("orders", 0))
    store.close()
    assert kept is not None


def test_records_of_get_stay_valid_after_close_as_ever(store):
    result = store.get("orders", 0, 5)
    store.close()
    assert result.messages[0].body == b"body 10 " * 30


def test_force_closes_and_the_memory_stays_valid(store):
    view = store.queue("orders", 0)
    units, bodies = view.units(), view.bodies()
    before = units.tobytes()
    store.close(force=True)
    store.close()
    gc.collect()
    assert units.tobytes() == before
    assert bytes(bodies[1]) == b"body 2 " * 30
    with pytest.raises(ClosedError):
        view.units()
    with MessageStore.open(store.path) as again:
        assert again.recovery.mode == "normal"


def use_and_leave(path, held, divisor=1):
    with MessageStore.open(path) as store:
        store.put("orders", b"x")
        held.append(store.queue("orders", 0).units())
        return 1 / divisor


def test_a_with_block_that_leaves_views_behind_is_an_error_and_closes(tmp_path):
    held = []
    with pytest.raises(StoreInUseError):
        use_and_leave(tmp_path, held)
    assert len(held[0]) == 1
    MessageStore.open(tmp_path).close()


def test_an_error_in_a_with_block_is_not_hidden_by_views(tmp_path):
    held = []
    with pytest.raises(ZeroDivisionError):
        use_and_leave(tmp_path, held, divisor=0)
    assert len(held[0]) == 1
    MessageStore.open(tmp_path).close()


def test_views_in_a_cycle_count_until_they_are_collected(store):
    class Node:
        itself: Node
        units: Units

    node = Node()
    node.itself, node.units = node, store.queue("orders", 0).units()
    del node
    if gc.isenabled():
        gc.collect()
    store.close()


def test_threads_that_lend_and_let_go_leave_nothing_behind():
    leases = Leases("test")
    memory = memoryview(bytes(100))

    def work(number):
        for _ in range(2000):
            loan = leases.loan("orders", number, "units")
            held = [loan.lend(memory), loan.lend(memory)]
            assert any(holder.queue_id == number and holder.views == 1 for holder in leases.holders())
            del held

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert leases.holders() == ()
    leases.close(force=False)
    with pytest.raises(ClosedError):
        leases.loan("orders", 0, "units").lend(memory)


def test_an_interpreter_that_ends_with_views_alive_ends_quietly(tmp_path):
    code = (
        "import sys; from seglog import MessageStore\n"
        "store = MessageStore.open(sys.argv[1]); store.put('orders', b'x')\n"
        "units = store.queue('orders', 0).units(); bodies = store.queue('orders', 0).bodies()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")

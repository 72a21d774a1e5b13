"""Public calls refuse what they cannot work with by an error that names the argument, in both kernels.

One table for each object: for each call and argument what it must refuse. Tests hold the tables against the
signatures, so that a new argument needs rows.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from seglog import Durability, MessageStore
from seglog.broker.tables.groups import MAX_GROUP_CHARACTERS
from seglog.broker.tables.topics import MAX_TOPIC_CHARACTERS
from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError, InvalidNameError, NotFoundError
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import MAX_SYSTEM_TOPIC_BYTES
from seglog.storage.format.queue.compaction import CompactionSizes
from seglog.storage.format.record.host import Host
from seglog.storage.writes.values import RawMessage
from tests.support.machine.fast_paths import fast_paths_of
from tests.support.machine.kernels import BOTH, native
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock
from tests.support.rows import every_row
from tests.support.wrong_arguments import (
    NO_BATCHES,
    NO_BODIES,
    NO_CLOCKS,
    NO_COUNTS,
    NO_DIVISIONS,
    NO_DURABILITY,
    NO_FILES,
    NO_FLAGS,
    NO_FOLDERS,
    NO_HOSTS,
    NO_INTEGERS,
    NO_KEYS,
    NO_MESSAGES,
    NO_PROPERTIES,
    NO_TAGS,
    NO_TEXTS,
    NO_TIMES,
    REFUSALS,
    refused,
    refuses_every_value,
)

PUT = {
    "topic": NO_TEXTS,
    "body": (*NO_BODIES, None),
    "queue_id": NO_INTEGERS,
    "tags": NO_TAGS,
    "keys": NO_KEYS,
    "properties": NO_PROPERTIES,
    "flag": (*NO_INTEGERS, 2**31, -(2**31) - 1, None),
    "durability": NO_DURABILITY,
}
OF_BROKERS = {
    "sys_flag": (*NO_INTEGERS, 2**31),
    "born_timestamp_ms": NO_INTEGERS,
    "born_host": NO_HOSTS,
    "reconsume_times": (*NO_INTEGERS, 2**31),
    "durability": NO_DURABILITY,
}
APPEND = OF_BROKERS | {
    "topic": NO_TEXTS,
    "queue_id": NO_INTEGERS,
    "body": (*NO_BODIES, None),
    "properties": ("text", 5, None),
    "tags_code": (*NO_INTEGERS, None),
    "flag": (*NO_INTEGERS, 2**31),
    "store_host": NO_HOSTS,
    "prepared_transaction_offset": NO_INTEGERS,
}
APPEND_ASYNC = APPEND
APPEND_BATCH = OF_BROKERS | {"topic": NO_TEXTS, "queue_id": NO_INTEGERS, "messages": (*NO_MESSAGES, [b"raw"])}
PUT_BATCH = {
    "topic": NO_TEXTS,
    "messages": NO_BATCHES,
    "queue_id": NO_INTEGERS,
    "durability": NO_DURABILITY,
}
NO_QUEUES = {"topic": NO_TEXTS, "queue_id": (True, 1.0, math.nan, "1", b"1", [1])}
"""Of calls to which a number that no queue can have is just no queue."""
PLACE = {"topic": NO_TEXTS, "queue_id": NO_INTEGERS}
GET = PLACE | {
    "queue_offset": NO_INTEGERS,
    "max_count": (*NO_COUNTS, 0),
    "filter": (5, b"TagA", ["TagA"], "||", "\ud800", "TagA || \udfff"),
    "max_bytes": (*NO_COUNTS, 0),
}
STORE_CALLS: dict[str, dict[str, tuple[Any, ...]]] = {
    "put": PUT,
    "put_async": PUT,
    "append": APPEND | {"delay_ms": NO_INTEGERS},
    "append_async": APPEND | {"delay_ms": NO_INTEGERS},
    "put_batch": PUT_BATCH,
    "put_batch_async": PUT_BATCH,
    "append_batch": APPEND_BATCH,
    "append_batch_async": APPEND_BATCH,
    "when_durable": {"phy_offset": NO_INTEGERS, "told": (5, "told", None)},
    "get": GET,
    "get_async": GET | {"timeout_ms": NO_TIMES},
    "follow": PLACE
    | {"queue_offset": NO_INTEGERS, "filter": (5, b"TagA", ["TagA"], "||", "\ud800"), "timeout_ms": NO_TIMES},
    "queue": NO_QUEUES,
    "message_at": {"phy_offset": (True, 1.0, math.nan, "1", None)},
    "record_at": {"phy_offset": (True, 1.0, math.nan, "1", None)},
    "message_by_id": {"message_id": (*NO_TEXTS, "no id", "00" * 15)},
    "query": {
        "topic": NO_TEXTS,
        "key": NO_TEXTS,
        "max_count": (*NO_COUNTS, 0),
        "begin_ms": NO_INTEGERS,
        "end_ms": NO_INTEGERS,
        "by_tag": NO_FLAGS,
    },
    "min_offset": NO_QUEUES,
    "max_offset": NO_QUEUES,
    "stored_bytes": NO_QUEUES | {"first_offset": NO_INTEGERS, "end_offset": NO_INTEGERS},
    "offset_by_time": NO_QUEUES | {"timestamp_ms": NO_INTEGERS, "boundary": ("LOWER", "", 1, None)},
    "wait_for": PLACE | {"queue_offset": NO_INTEGERS, "timeout_ms": NO_TIMES},
    "wait_for_async": PLACE | {"queue_offset": NO_INTEGERS, "timeout_ms": NO_TIMES},
    "wait_for_any": {
        "queues": (5, ["T"], {"T": 0}, {("T", "0"): 0}, {("T", 0): "0"}, {(5, 0): 0}),
        "timeout_ms": NO_TIMES,
    },
    "wait_for_any_async": {"queues": (5, {"T": 0}), "timeout_ms": NO_TIMES},
    "listen": PLACE | {"wake": (5, None)},
}
RIGHT = {
    "topic": "T",
    "queue_id": 0,
    "queue_offset": 0,
    "first_offset": 0,
    "end_offset": 1,
    "phy_offset": 0,
    "told": print,
    "body": b"body",
    "messages": [b"body"],
    "key": "k",
    "timestamp_ms": 0,
    "timeout_ms": 0,
    "queues": {("T", 0): 0},
    "wake": print,
    "message_id": "00" * 16,
}
RAW = {"properties": b"", "tags_code": 0}

OPENED = {
    "path": (5, b"bytes", None),
    "create": NO_FLAGS,
    "read_only": NO_FLAGS,
    "segment_size_bytes": (*NO_COUNTS, 0, 2**31),
    "queue_file_size_bytes": (*NO_COUNTS, 0, 19),
    "index_geometry": (5, (8, 32), *(IndexGeometry(*pair) for pair in NO_DIVISIONS)),
    "compaction_sizes": (5, "100", *(CompactionSizes(*pair) for pair in NO_DIVISIONS)),
    "durability": (*NO_DURABILITY, None),
    "record_crc": NO_FLAGS,
    "small": NO_FLAGS,
    "max_message_size_bytes": (*NO_COUNTS, None),
    "flush_interval_ms": (*NO_COUNTS, 0, None),
    "recovery_step_bytes": (*NO_COUNTS, None),
    "store_host": (*NO_HOSTS, Host(bytes(4), 0)),
    "follow": NO_FOLDERS,
    "clock": NO_CLOCKS,
    "files": NO_FILES,
}


@pytest.fixture(params=BOTH, scope="module")
def store(request, tmp_path_factory):
    with fast_paths_of(request.param):
        folder = tmp_path_factory.mktemp("store")
        with MessageStore.open(folder / "s", clock=new_clock(), **SMALL, **SMALL_INDEX) as opened:
            opened.put("T", b"first", tags="TagA", keys="k")
            opened.put("T", b"second")  # by the fast path
            yield opened


def arguments_of(call, name, wrong):
    taken = inspect.signature(call).parameters
    right = {key: value for key, value in (RIGHT | RAW).items() if key in taken}
    if call.__name__.startswith("append_batch"):
        right["messages"] = [RawMessage(b"x", b"", 0)]
    if call.__name__.startswith("put"):
        right.pop("properties", None)
    return right | {name: wrong}


async def first_of(messages):
    return await anext(messages)


@pytest.mark.parametrize("call", STORE_CALLS)
def test_a_store_names_the_argument_that_it_refuses(store, call):
    end = store.max_phy_offset
    function = getattr(MessageStore, call)
    with asyncio.Runner() as runner:

        def try_it(name: str, wrong: Any) -> None:
            arguments = arguments_of(function, name, wrong)
            try:
                if call.endswith("_async"):
                    runner.run(getattr(store, call)(**arguments))
                elif call == "follow":
                    runner.run(first_of(store.follow(**arguments)))
                else:
                    getattr(store, call)(**arguments)
            finally:
                assert store.max_phy_offset == end

        refuses_every_value(STORE_CALLS[call], try_it)


OF_QUEUES = "expected an integer in 0..2147483647"
OF_OFFSETS = "expected an integer in 0..9223372036854775807"


SAID: tuple[tuple[str, str, Any, str], ...] = (
    ("put", "queue_id", "1", OF_QUEUES),
    ("put", "queue_id", np.int64(-1), OF_QUEUES),
    ("put", "queue_id", -1, "^queue_id=-1 is outside 0..2147483647"),
    ("put_batch", "messages", [], r"^messages=\[\] is not valid: expected at least one message"),
    ("put", "properties", {1: "a"}, "^properties: a name=1 is not valid: expected str"),
    ("put", "properties", {"a": 1}, r"^properties\['a'\]=1 is not valid: expected str"),
    ("put", "properties", {"a": "x\ud800"}, r"^property 'a'='x\\ud800' is not valid text"),
    ("get", "filter", "\ud800", r"^the filter '\\ud800' is not valid text"),
    ("get", "queue_id", "1", OF_QUEUES),
    ("get", "queue_id", 2**70, OF_QUEUES),
    ("get", "queue_offset", 1.0, OF_OFFSETS),
    ("get", "queue_offset", 2**63, OF_OFFSETS),
    ("get", "max_count", 0, "expected an integer from 1 on"),
    ("max_offset", "queue_id", "1", OF_QUEUES),
    ("message_at", "phy_offset", "1", OF_OFFSETS),
    ("record_at", "phy_offset", "1", OF_OFFSETS),
    (
        "offset_by_time",
        "timestamp_ms",
        "now",
        r"(?m)timestamp_ms='now' is not valid: expected an integer$",
    ),
    ("wait_for", "timeout_ms", "1", r"(?m)timeout_ms='1' is not valid: expected a number$"),
    (
        "wait_for",
        "timeout_ms",
        None,
        r"(?m)timeout_ms=None is not valid: expected a number of milliseconds$",
    ),
    ("wait_for", "timeout_ms", math.nan, r"(?m)timeout_ms=nan is not valid: expected a number$"),
    ("wait_for", "queue_offset", "1", OF_OFFSETS),
    ("wait_for_any", "queues", {("T", "0"): 0}, OF_QUEUES),
)


def test_an_error_says_what_makes_sense(store):
    with every_row() as row:
        for call, name, wrong, said in SAID:
            arguments = arguments_of(getattr(MessageStore, call), name, wrong)
            with row(call, name, repr(wrong)[:40]), pytest.raises(REFUSALS, match=said):
                getattr(store, call)(**arguments)


VIEW = {"queue_offset": NO_INTEGERS, "count": NO_COUNTS}
NO_COLUMNS = (5, None, "flag", b"flag", [5], [["flag"]], ["nosuch"], 1.5)
VIEW_CALLS: dict[str, dict[str, tuple[Any, ...]]] = {
    "units": VIEW,
    "timestamps": VIEW,
    "bodies": VIEW,
    "properties": VIEW,
    "columns": VIEW | {"names": NO_COLUMNS},
    "read_columns": VIEW | {"columns": NO_COLUMNS},
}


@pytest.mark.parametrize("call", VIEW_CALLS)
def test_a_view_names_the_argument_that_it_refuses(store, call):
    store.put("T", b"x")

    def refusal(name: str) -> Any:
        return pytest.raises(InvalidArgumentError, match=f"{name}|column")

    def try_it(name: str, wrong: Any) -> None:
        getattr(store.queue("T", 0), call)(**{name: wrong})

    refuses_every_value(VIEW_CALLS[call], try_it, refusal)


RETENTION_CALLS: dict[str, dict[str, tuple[Any, ...]]] = {
    "delete_before": {"phy_offset": (*NO_INTEGERS, math.inf, None)},
    "delete_topic": {"topic": (*NO_TEXTS, None, [])},
    "offsets_from": {"phy_offsets": ([True], [1.0], ["1"], [None])},
}


@pytest.mark.parametrize("call", RETENTION_CALLS)
def test_retention_deletes_nothing_for_an_argument_that_it_refuses(store, call):
    for _ in range(100):
        store.put("T", b"x" * 1000)
    before = store.retention.segments()

    def refusal(name: str) -> Any:
        return pytest.raises(InvalidArgumentError, match=name)

    def try_it(_name: str, wrong: Any) -> None:
        try:
            getattr(store.retention, call)(wrong)
        finally:
            assert store.retention.segments() == before
            assert store.min_offset("T", 0) == 0

    refuses_every_value(RETENTION_CALLS[call], try_it, refusal)


def test_a_place_before_the_log_has_no_message(store):
    with pytest.raises(NotFoundError, match=r"(?m)^no message starts at -1: phy_offset is 0 or more$"):
        store.message_at(-1)


def test_a_filter_is_looked_at_where_no_queue_is_too(store):
    with refused("filter"):
        store.get("T", 77, 0, filter=5)


def test_the_advice_about_names_has_the_true_limits(store):
    with pytest.raises(InvalidNameError) as refused:
        store.put("T" * (MAX_SYSTEM_TOPIC_BYTES + 1), b"x")
    assert f"up to {MAX_SYSTEM_TOPIC_BYTES} bytes" in refused.value.help
    assert f"(brokers: {MAX_TOPIC_CHARACTERS}, groups {MAX_GROUP_CHARACTERS})" in refused.value.help
    assert store.put("T" * MAX_SYSTEM_TOPIC_BYTES, b"x").queue_offset == 0


def test_the_tables_have_every_argument_of_every_call():
    calls = {
        name: set(inspect.signature(call).parameters) - {"self"}
        for name, call in inspect.getmembers(MessageStore, inspect.isroutine)
        if not name.startswith("_") and not inspect.ismethod(call)
    }
    without = {"close", "flush", "flush_async", "refresh", "reload_topics", "queues", "topics", "unlisten"}
    without |= {"index_end", "sends", "sync_soon", "unsynced"}
    assert calls.keys() - without == STORE_CALLS.keys()
    for name, table in STORE_CALLS.items():
        assert calls[name] == table.keys(), name
    opening = set(inspect.signature(MessageStore.open).parameters)
    assert opening == OPENED.keys()


def test_opening_names_the_argument_that_it_refuses(tmp_path):
    def try_it(name: str, wrong: Any) -> None:
        try:
            MessageStore.open(**{"path": tmp_path / "s", name: wrong})
        finally:
            assert list(tmp_path.iterdir()) == []

    refuses_every_value(OPENED, try_it)


@pytest.mark.parametrize("kernels", BOTH)
def test_numbers_of_numpy_and_texts_of_enumerations_are_taken(tmp_path, kernels):
    text: Any = "sync"  # types say enumerations and int; these are taken too
    other: Any = "async"
    body: Any = np.frombuffer(b"body", np.uint8)
    one: Any = np.int64(1)
    few: Any = np.int32(3)
    with (
        fast_paths_of(kernels),
        MessageStore.open(tmp_path / "s", durability=text, **SMALL, **SMALL_INDEX) as store,
    ):
        for _ in range(2):
            put = store.put("T", body, queue_id=one, flag=few)
            assert (put.durability, type(put.queue_id)) == (Durability.SYNC, int)
        assert store.put("T", b"x", queue_id=1, durability=other).durability is Durability.ASYNC
        assert store.put_batch("T", [b"x"], queue_id=1, durability=other).durability is Durability.ASYNC
        assert store.put_batch("T", [b"x"], queue_id=1).durability is Durability.SYNC
        found = store.get("T", one, one, one)
        assert [message.body for message in found] == [b"body"]
        assert [path.name for path in (tmp_path / "s" / "consumequeue" / "T").iterdir()] == ["1"]


def number(value: int) -> Any:
    return np.int64(value)


NUMBERS_OF_OPEN: dict[str, Any] = {
    "segment_size_bytes": np.int64(SMALL["segment_size_bytes"]),
    "queue_file_size_bytes": np.int32(SMALL["queue_file_size_bytes"]),
    "max_message_size_bytes": np.int64(300),
    "flush_interval_ms": np.uint16(100),
    "recovery_step_bytes": np.int64(1 << 16),
    "store_host": Host(bytes(4), number(5)),
    "index_geometry": IndexGeometry(number(8), number(32)),
    "compaction_sizes": CompactionSizes(number(20_000), number(460)),
}


@pytest.mark.parametrize("kernels", BOTH)
def test_a_store_opens_with_numbers_of_numpy(tmp_path, kernels):
    with every_row() as row:
        for name, value in NUMBERS_OF_OPEN.items():
            opened = {**SMALL, **SMALL_INDEX, name: value}
            with row(name):
                with fast_paths_of(kernels), MessageStore.open(tmp_path / name, **opened) as store:
                    store.put("T", b"x", keys="k")
                    assert store.put("T", b"y").queue_offset == 1
                with MessageStore.open(tmp_path / name) as again:
                    assert again.recovery.mode == "normal"
                    assert [message.body for message in again.get("T", 0, 0)] == [b"x", b"y"]


class BadHourError(Exception):
    pass


class ClockThatStops(VirtualClock):
    """Serves some calls of the thread that opens, and fails from then on."""

    def __init__(self, calls):
        super().__init__()
        self.left = calls

    def _count(self):
        self.left -= threading.current_thread() is threading.main_thread()
        if self.left < 0:
            raise BadHourError

    @override
    def now_ms(self):
        self._count()
        return super().now_ms()

    @override
    def monotonic_ms(self):
        self._count()
        return super().monotonic_ms()


def test_an_open_that_fails_in_its_midst_leaves_the_store_closed(tmp_path):
    path = tmp_path / "s"
    with MessageStore.open(path, **SMALL, **SMALL_INDEX) as store:
        store.put("T", b"x")
    failed = 0
    while True:
        clock = ClockThatStops(failed)
        try:
            store = MessageStore.open(path, clock=clock)
        except BadHourError:
            assert not (path / "abort").exists()
            with MessageStore.open(path) as store:  # the lock was given back
                assert store.recovery.mode == "normal"
            failed += 1
        else:
            break
    clock.left = 1_000_000
    store.close()
    assert failed > 1


SYNCED = """
import os, sys
from seglog import MessageStore, NewMessage
from seglog.storage.files.files import RealFiles
from seglog.storage.writes.values import RawMessage

background = 60_000
made = {"segment_size_bytes": 1 << 20, "queue_file_size_bytes": 20_000, "flush_interval_ms": background}
calls = 0
for name in ("fdatasync", "fsync"):
    def counting(descriptor, real=getattr(os, name)):
        global calls
        calls += 1
        return real(descriptor)
    setattr(os, name, counting)
for way in ("open", "call"):
    for text in ("sync", "async"):
        opened, named = ({"durability": text}, {}) if way == "open" else ({}, {"durability": text})
        with MessageStore.open(os.path.join(sys.argv[1], way + text), **made, **opened) as store:
            store.put("T", b"makes the files")
            store.flush()
            for call, arguments in (
                (store.put, ("T", b"x")),
                (store.put_batch, ("T", [b"x", NewMessage(b"y", tags="TagA")])),
                (store.append, ("T", 0, b"x", b"", 0)),
                (store.append_batch, ("T", 0, [RawMessage(b"x", b"", 0)])),
            ):
                for _ in range(5):
                    before = calls
                    result = call(*arguments, **named)
                    print(way, text, call.__name__, result.durability.value, calls - before)
"""


@pytest.mark.parametrize("kernels", BOTH)
def test_a_durability_given_as_text_reaches_the_disk(tmp_path, kernels):
    environment = os.environ | {"SEGLOG_KERNEL": kernels}
    if kernels == "native":
        native()
    command = [sys.executable, "-c", SYNCED, str(tmp_path)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        f"{way} {text} {call} {text} {int(text == 'sync')}"
        for way in ("open", "call")
        for text in ("sync", "async")
        for call in ("put", "put_batch", "append", "append_batch")
        for _ in range(5)
    ]

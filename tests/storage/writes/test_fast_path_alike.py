"""The fast path does what the ordinary way does: any calls have the same results, errors and bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import SeglogError
from seglog.storage.format.record.host import Host
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import NewMessage, RawMessage
from tests.support.machine.fast_paths import contents, fast_paths_of, without_fast_path
from tests.support.machine.kernels import BOTH
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock

IPV6 = Host(bytes(range(16)), 77)
LIMIT = 600


@pytest.fixture(params=BOTH, autouse=True)
def fast_paths(request):
    with fast_paths_of(request.param):
        yield request.param


TEXTS = st.text(st.sampled_from("aZ09 ü𝄞\0\x01\x02\ud800"), max_size=12) | st.sampled_from(
    ["TagA", "Aa", "INNER_NUM", "__CRC32#\x01", "\0" * 8, "v" * 33000]
)
ODD = st.sampled_from([5, b"bytes", 1.0, ("tuple",), object])
ODD_BODIES = {
    "a view": memoryview(b"viewed"),
    "a view with gaps": memoryview(b"every other")[::2],
    "a view of numbers": memoryview(bytes(16)).cast("I"),
    "a long view": memoryview(bytes(LIMIT + 1)),
    "an array": bytearray(b"array"),
    "the longest": bytes(LIMIT),
    "too long": bytes(LIMIT + 1),
    "text": "text",
    "none": None,
}
BODIES = st.binary(max_size=300) | st.sampled_from(sorted(ODD_BODIES)).map(ODD_BODIES.get)
NAMES = st.sampled_from(
    ["a", "TAGS", "KEYS", "UNIQ_KEY", "INNER_NUM", "INNER_MULTI_DISPATCH", "__CRC32#", "my__CRC32#", ""]
)
PROPERTIES = (
    st.dictionaries(NAMES | TEXTS, TEXTS, max_size=3)
    | st.dictionaries(NAMES, TEXTS, max_size=2).map(MappingProxyType)
    | st.sampled_from([{}, {"a": 1}, {1: "a"}, {"INNER_MULTI_DISPATCH": "%LMQ%x"}, 7])
)
NUMBERS = st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31), 2**31, 2**70, True, 1.0, "1", None])
QUEUE_IDS = st.sampled_from([0, 0, 0, 1, 2, 1023, 1024, True, 1.0, -1, 2**31, "0"])
TOPICS = st.sampled_from(
    ["T", "T", "T", "U", "%LMQ%x", "SCHEDULE_TOPIC_XXXX", "L" * 127, "L" * 128, "no topic", "", "ü", None, 5]
)
PUTS = st.fixed_dictionaries(
    {"topic": TOPICS, "body": BODIES},
    optional={
        "queue_id": QUEUE_IDS,
        "tags": st.none() | TEXTS | ODD,
        "keys": st.none() | TEXTS | st.lists(TEXTS, max_size=3) | ODD,
        "properties": st.none() | PROPERTIES,
        "flag": NUMBERS,
        "durability": st.sampled_from([None, Durability.SYNC, Durability.ASYNC, "sync"]),
        "unknown": st.just(1),
    },
)
USUAL = st.fixed_dictionaries(
    {"topic": st.sampled_from(["T", "U"]), "body": st.binary(max_size=300)},
    optional={
        "queue_id": st.integers(0, 2),
        "tags": st.sampled_from(["TagA", "", "ü", "𝄞"]),
        "keys": st.sampled_from(["k", "k l"]),
        "properties": st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "ü", "long" * 30])),
        "flag": st.integers(-(2**31), 2**31 - 1),
    },
)
MESSAGES = st.one_of(
    BODIES,
    st.binary(max_size=300),
    st.builds(
        NewMessage,
        BODIES,
        st.none() | st.just("TagA") | TEXTS,
        st.none() | TEXTS | st.just(["k", "l"]),
        st.none() | PROPERTIES,
        NUMBERS | st.integers(-5, 5),
    ),
)
ORDINARY_MESSAGES = st.binary(max_size=300) | st.builds(
    NewMessage, st.binary(max_size=300), st.just("TagA"), st.just("k"), st.just({"UNIQ_KEY": "u"}), st.just(3)
)
BARE_MESSAGES = st.one_of(
    st.lists(st.binary(max_size=300), max_size=12),
    st.integers(0, 40).flatmap(lambda size: st.lists(st.binary(min_size=size, max_size=size), max_size=12)),
    st.lists(st.binary(max_size=9), max_size=4).map(tuple),
)
BATCHES = st.fixed_dictionaries(
    {
        "topic": TOPICS,
        "messages": st.one_of(
            st.lists(MESSAGES, max_size=4), st.lists(ORDINARY_MESSAGES, max_size=12), BARE_MESSAGES
        ),
    },
    optional={
        "queue_id": QUEUE_IDS,
        "durability": st.sampled_from([None, Durability.SYNC]),
        "unknown": st.just(1),
    },
)
RAW = st.sampled_from(
    [
        b"",
        b"TAGS\1TagA\2",
        b"open\1end",
        b"INNER_NUM\0012\2",
        b"__CRC32#\1x\2",
        bytes(9),
        bytes(32767),
        "text",
        None,
    ]
)
CODES = st.sampled_from([0, 5, -1, 2**63 - 1, 2**63, "5"])
BROKER = {
    "sys_flag": st.sampled_from([0, 0, 1, 0x30, 4, 8, 12, 0x80, 2**31, None]),
    "born_timestamp_ms": st.sampled_from([None, 123, -1, 2**63]),
    "born_host": st.sampled_from([None, IPV6, Host(b"\1\2\3\4", 5), "host:5"]),
    "reconsume_times": NUMBERS,
    "durability": st.sampled_from([None, Durability.SYNC]),
}
APPENDS = st.fixed_dictionaries(
    {"topic": TOPICS, "queue_id": QUEUE_IDS, "body": BODIES, "properties": RAW, "tags_code": CODES},
    optional=BROKER
    | {
        "flag": NUMBERS,
        "store_host": st.sampled_from([None, IPV6, Host(b"\1\2\3\4", 5), 5]),
        "prepared_transaction_offset": NUMBERS,
    },
)
RAW_MESSAGES = st.builds(RawMessage, BODIES, RAW, CODES, NUMBERS) | st.builds(
    RawMessage, st.binary(max_size=300), st.just(b"TAGS\1TagA\2"), st.integers(0, 9)
)
RAW_BATCHES = st.fixed_dictionaries(
    {
        "topic": TOPICS,
        "queue_id": QUEUE_IDS,
        "messages": st.lists(RAW_MESSAGES, max_size=6) | st.lists(RAW_MESSAGES, max_size=3).map(tuple),
    },
    optional=BROKER,
)
PLACES = {
    "put": ("topic", "body"),
    "put_batch": ("topic", "messages"),
    "append": ("topic", "queue_id", "body", "properties", "tags_code"),
    "append_batch": ("topic", "queue_id", "messages"),
}
STEPS = st.one_of(
    st.tuples(st.just("put"), st.booleans(), USUAL),
    st.tuples(st.just("put"), st.booleans(), PUTS),
    st.tuples(st.just("put_batch"), st.booleans(), BATCHES),
    st.tuples(st.just("append"), st.booleans(), APPENDS),
    st.tuples(st.just("append_batch"), st.booleans(), RAW_BATCHES),
    st.tuples(st.just("unsynced append"), st.booleans(), APPENDS),
    st.tuples(st.just("unsynced append_batch"), st.booleans(), RAW_BATCHES),
    st.just(("tick", False, {})),
)


def outcome(store, kind, by_name, values):
    named, appends = dict(values), store.unsynced()
    asked, call = (appends, kind.removeprefix("unsynced ")) if kind.startswith("unsynced") else (store, kind)
    try:
        places = [] if by_name else [named.pop(name) for name in PLACES[call]]
        return getattr(asked, call)(*places, **named), appends.until
    except (SeglogError, TypeError, ValueError, AttributeError) as error:
        return type(error), str(error).replace("PythonFastPath", "MessageStore"), appends.until


def drive(root, clock, steps, options):
    """Makes the calls; returns what each of them came to."""
    found = []
    settled = {**SMALL, **SMALL_INDEX, "clock": clock, "max_message_size_bytes": LIMIT} | options
    has_fast_path = settled.pop("has_fast_path")
    with MessageStore.open(root, **settled) as store:
        if not has_fast_path:
            without_fast_path(store)
        for kind, by_name, values in steps:
            if kind == "tick":
                clock.advance(1)
            else:
                found.append(outcome(store, kind, by_name, values))
    return found


@given(
    steps=st.lists(STEPS, max_size=40),
    record_crc=st.booleans(),
    store_host=st.sampled_from([Host(b"\x7f\0\0\x01", 10911), IPV6]),
)
def test_the_fast_path_does_what_the_ordinary_way_does(steps, record_crc, store_host):
    options = {"record_crc": record_crc, "store_host": store_host}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        with_fast_path, ordinary = Path(folder, "fast path"), Path(folder, "none")
        expected = drive(ordinary, new_clock(), steps, options | {"has_fast_path": False})
        assert drive(with_fast_path, new_clock(), steps, options | {"has_fast_path": True}) == expected
        assert contents(with_fast_path) == contents(ordinary)

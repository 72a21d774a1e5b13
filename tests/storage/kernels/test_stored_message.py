"""A native message is a `Message` to every test, and says what one that Python made says."""

from __future__ import annotations

import copy
import dataclasses
import functools
import gc
import inspect
import pickle
import sys
import threading
import tracemalloc
import weakref
import zlib
from unittest.mock import Mock, create_autospec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.consumer.message_bodies import add_offsets, added_offsets
from seglog.consumer.payloads import decoded
from seglog.errors import CorruptError, TruncatedError
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.record.message import Message, decode_message, new_host
from seglog.storage.format.record.properties import decode_properties, split_keys
from seglog.storage.format.record.sys_flag import COMPRESSED, INNER_BATCH
from seglog.storage.kernels import decode as decode_module
from seglog.storage.kernels.calls.read_result import split
from tests.support.machine.kernels import native
from tests.support.material.records import Record, records

PROPERTIES = b"KEYS\x01k1 k2\x02TAGS\x01TagA\x02UNIQ_KEY\x01U1\x02color\x01red\x02"
pieces = st.sampled_from(
    [
        b"TAGS",
        b"KEYS",
        b"UNIQ_KEY",
        b"name",
        b"\x01",
        b"\x01",
        b"\x02",
        b"\x02",
        b" ",
        b"value",
        b"\xf0\x9f",
        b"\xff",
    ]
)


@pytest.fixture(scope="module")
def decoder():
    return native().Decoder(Message, new_host, decode_message)


@pytest.fixture
def both(decoder):
    data = Record(body=b"body", properties=PROPERTIES, queue_offset=7, phy_offset=70).pack()
    return decoder.decode(data), decode_message(data)


@given(st.lists(pieces, max_size=24).map(b"".join) | st.binary(max_size=60))
def test_properties_and_what_is_read_of_them_are_those_of_python(decoder, raw):
    data = Record(properties=raw).pack()
    there, python = decoder.decode(data), decode_message(data)
    for _again in range(2):
        assert (there.tags, there.keys, there.unique_key) == (python.tags, python.keys, python.unique_key)
        assert (there.sharding_key, there.user_properties) == (python.sharding_key, python.user_properties)
        assert list(there.properties.items()) == list(python.properties.items())
    assert there.properties == decode_properties(raw)
    assert there.keys == split_keys(decode_properties(raw).get("KEYS", ""))


@given(records())
def test_all_that_a_message_is_asked_is_answered_alike(decoder, record):
    data = record.pack()
    there, python = decoder.decode(data), decode_message(data)
    for name in ("message_id", "compression", "is_tombstone", "is_placeholder", "body_error"):
        assert getattr(there, name) == getattr(python, name), name
    assert there.read_body() == python.read_body()
    assert there.payload() == python.payload()
    assert repr(there) == repr(python)
    assert there == python
    assert python == there
    assert hash(there) == hash(python)


def test_it_is_of_the_class_of_messages_for_everybody_who_asks(both):
    there, _python = both
    assert isinstance(there, Message)
    assert there.__class__ is Message
    assert dataclasses.is_dataclass(there)
    match there:
        case Message(topic, queue_id, body=body):
            assert (topic, queue_id, body) == ("TopicA", 0, b"body")
        case _:
            pytest.fail("a pattern does not know it")


def test_functions_by_class_take_it_for_a_message(both):
    @functools.singledispatch
    def kind_of(_value):
        return "something else"

    @kind_of.register
    def _(_value: Message):
        return "message"

    assert [kind_of(message) for message in both] == ["message", "message"]
    assert both[0].__doc__ == Message.__doc__


def test_copies_of_every_kind_are_messages_and_equal(both):
    there, python = both
    through_pickle = [pickle.loads(pickle.dumps(there, protocol)) for protocol in range(6)]  # noqa: S301 - ours
    for other in (copy.copy(there), copy.deepcopy(there), dataclasses.replace(there), *through_pickle):
        assert type(other) is Message
        assert other == there == python
    assert dataclasses.replace(there, body=b"other").body == b"other"
    assert dataclasses.asdict(there) == dataclasses.asdict(python)
    assert dataclasses.astuple(there) == dataclasses.astuple(python)
    assert vars(there) == vars(python)
    assert list(vars(there)) == [field.name for field in dataclasses.fields(Message)]


def test_it_differs_from_a_message_that_differs_in_one_field(both):
    there, python = both
    for field in dataclasses.fields(Message):
        assert there != dataclasses.replace(python, **{field.name: "another value"}), field.name
    assert there != "a message"


def test_it_cannot_be_changed(both):
    there, python = both
    for name in [field.name for field in dataclasses.fields(Message)]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(there, name, getattr(there, name))
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(there, name)
    with pytest.raises(AttributeError):
        there.another = 1
    vars(there)["body"] = b"other"  # of a dict of its own
    assert there.body == vars(there)["body"] == python.body
    with pytest.raises(TypeError):
        type(there)()


def test_its_fields_are_found_by_tools_that_look_at_objects(both):
    there, python = both
    assert set(dir(python)) <= set(dir(there))
    assert inspect.getattr_static(there, "topic") is not None
    assert create_autospec(there, instance=True).topic is not None
    assert Mock(spec=there).body is not None
    assert dict(inspect.getmembers(there))["body"] == python.body


def test_its_properties_refuse_changes_as_those_of_a_message_of_python_do(both):
    for message in both:
        with pytest.raises(TypeError, match="are fixed"):
            message.properties.update(TAGS="TagB")
        with pytest.raises(TypeError, match="are fixed"):
            del message.properties["UNIQ_KEY"]
        assert message.tags == message.properties["TAGS"] == "TagA"
    there, python = both
    assert (there.tags, there.keys, there.unique_key) == (python.tags, python.keys, python.unique_key)
    assert type(there.properties) is type(python.properties)


def test_it_keeps_what_it_says_when_the_memory_of_its_record_changes(decoder):
    data = bytearray(Record(body=b"body", properties=PROPERTIES).pack())
    expected = decode_message(bytes(data))
    there = decoder.decode(data)
    data[:] = bytes(len(data))
    data.clear()
    assert there == expected
    assert there.properties == expected.properties


def test_it_can_be_referred_to_weakly_and_is_gone_when_nobody_has_it(decoder):
    there = decoder.decode(Record(properties=PROPERTIES).pack())
    assert there.properties
    seen: weakref.ref[Message] = weakref.ref(there)
    assert seen() is there
    del there
    assert seen() is None


def test_an_inflation_that_fails_is_asked_for_once(decoder):
    data = Record(body=zlib.compress(b"x" * 90)[:-4], sys_flag=COMPRESSED).pack()
    there = decoder.decode(data)
    assert "does not inflate" in there.body_error
    assert there.body_error is there.body_error
    assert there.body_error == decode_message(data).body_error


def test_messages_are_of_one_class(decoder):
    with pytest.raises(TypeError, match="another class"):
        type(decoder)(str, new_host, decode_message)


def test_properties_that_a_client_adds_and_values_that_it_decodes_are_there(both, monkeypatch):
    there, python = both
    monkeypatch.setattr(decode_module, "decoder", native().Decoder(Message, new_host, decode_message))
    add_offsets([there, python], 3, 70)
    assert there.properties["MAX_OFFSET"] == "70"
    assert there.tags == "TagA"
    assert there == python
    known = decoded(there, len)
    assert (known.value, known.tags, known.topic) == (4, "TagA", "TopicA")


def results_of(several):
    """Returns a read of neighbours, and the same as the Python twin has it."""
    data = [record if isinstance(record, bytes) else record.pack() for record in several]
    sizes = [len(one) for one in data]
    run = memoryview(b"".join(data))
    return native().ReadResult(GetStatus.FOUND, 1, 0, 1, [run], (), sizes), split([run], sizes)


def all_of(messages):
    """Returns the messages of an iteration, and in place of each that cannot be decoded its error."""
    found = []
    while True:
        try:
            found.append(next(messages))
        except StopIteration:
            return found
        except CorruptError as error:
            found.append((type(error), error.args))


@given(st.lists(records(), min_size=1, max_size=6), st.data())
def test_the_messages_of_a_read_come_as_python_decodes_them_damaged_ones_too(decoder, several, data):
    packed = [bytearray(record.pack()) for record in several]
    for _ in range(data.draw(st.integers(0, 3))):
        one = data.draw(st.sampled_from(packed))
        one[data.draw(st.integers(0, len(one) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    result, records_ = results_of([bytes(one) for one in packed])
    assert all_of(decoder.iterate(result)) == all_of(map(decode_message, records_))


@given(st.lists(records(), min_size=1, max_size=6), st.integers(0, 2**40), st.data())
def test_a_pull_decoded_in_one_call_is_what_python_makes_of_each_record_or_nothing(
    decoder, several, low, data
):
    packed = [bytearray(record.pack()) for record in several]
    for _ in range(data.draw(st.integers(0, 2))):
        one = data.draw(st.sampled_from(packed))
        one[data.draw(st.integers(0, len(one) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = data.draw(st.integers(0, len(packed)))
    runs = [memoryview(b"".join(part)) for part in (packed[:cut], packed[cut:])]
    at_once = decoder.decode_runs(runs, added_offsets(low, low + 7))
    try:
        expected = [decode_message(bytes(one)) for one in packed]
    except CorruptError:
        assert at_once is None or len(at_once) != len(packed)
        return
    if any(message.sys_flag & INNER_BATCH for message in expected):
        assert at_once is None
        return
    add_offsets(expected, low, low + 7)
    assert at_once == expected
    assert [one.properties for one in at_once] == [one.properties for one in expected]
    assert [one.tags for one in at_once] == [one.tags for one in expected]


@given(st.lists(pieces, max_size=12).map(b"".join))
def test_what_is_added_in_one_call_does_not_change_what_a_record_has_of_its_own(decoder, raw):
    run = memoryview(Record(properties=raw).pack())
    (plain,) = decoder.decode_runs([run], b"")
    (there,) = decoder.decode_runs([run], added_offsets(3, 70))
    assert plain.properties_raw == raw
    assert (there.tags, there.keys, there.unique_key) == (plain.tags, plain.keys, plain.unique_key)
    assert there.properties == plain.properties | {"MIN_OFFSET": "3", "MAX_OFFSET": "70"}


def test_a_pull_that_is_decoded_in_one_call_holds_no_memory_and_refuses_what_is_no_list_of_buffers(decoder):
    data = bytearray(Record().pack() * 3)
    run = memoryview(data)
    assert [message.body for message in decoder.decode_runs([run, run], b"")] == [b"body"] * 6
    assert decoder.decode_runs([run[:-1]], b"") is None
    assert decoder.decode_runs([], b"") == []
    run.release()
    data.clear()
    for runs in ((b"",), [7]):
        with pytest.raises(TypeError):
            decoder.decode_runs(runs, b"")


def test_an_iteration_lets_its_memory_go_when_it_ends_or_is_given_up(decoder):
    data = bytearray(Record().pack() * 3)
    run = memoryview(data)
    result = native().ReadResult(GetStatus.FOUND, 1, 0, 1, [run], (), [len(data) // 3] * 3)
    given_up = decoder.iterate(result)
    assert next(given_up).body == b"body"
    with pytest.raises(BufferError):
        run.release()
    del given_up
    whole = decoder.iterate(result)
    assert len(list(whole)) == 3
    assert next(whole, None) is None
    run.release()
    with pytest.raises(ValueError, match="released"):
        next(decoder.iterate(result))


def test_an_iteration_goes_over_runs_of_several_memories(decoder):
    runs = [memoryview(Record(queue_offset=number).pack() * 2) for number in range(3)]
    sizes = [len(run) // 2 for run in runs for _ in range(2)]
    result = native().ReadResult(GetStatus.FOUND, 1, 0, 1, runs, (), sizes)
    assert [one.queue_offset for one in decoder.iterate(result)] == [0, 0, 1, 1, 2, 2]
    with pytest.raises(TypeError):
        decoder.iterate([])
    assert list(decoder.iterate(native().ReadResult(GetStatus.FOUND, 1, 0, 1))) == []


def test_the_result_lives_as_long_as_the_iteration_does(decoder):
    result, records_ = results_of([Record(body=b"%d" % number) for number in range(4)])
    iteration = decoder.iterate(result)
    del result, records_
    gc.collect()
    assert [message.body for message in iteration] == [b"0", b"1", b"2", b"3"]


def test_memory_that_became_shorter_than_its_records_is_an_error_and_not_read_beyond(decoder):
    data = bytearray(Record().pack() * 2)
    size = len(data) // 2
    result = native().ReadResult(GetStatus.FOUND, 1, 0, 1, [data], (), [size, size])
    del data[size + 20 :]
    iteration = decoder.iterate(result)
    assert next(iteration).body == b"body"
    with pytest.raises(TruncatedError):
        next(iteration)
    assert next(iteration, None) is None


def ask_everything(message):
    """Asks a message for all that it makes on demand."""
    return (
        message.tags,
        message.keys,
        message.unique_key,
        message.body_error,
        message.properties_raw,
        message.properties,
        repr(message),
        hash(message),
    )


def test_threads_that_ask_the_same_messages_get_the_same_and_share_an_iteration(decoder):
    data = [Record(properties=PROPERTIES, queue_offset=number).pack() for number in range(300)]
    messages = [decoder.decode(one) for one in data]
    expected = [ask_everything(decode_message(one)) for one in data]
    iteration = decoder.iterate(results_of(data)[0])
    answers, taken = [], []

    def ask():
        answers.append([ask_everything(message) for message in messages])
        taken.extend(message.queue_offset for message in iteration)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * len(threads)
    assert sorted(taken) == list(range(len(data)))
    assert all(message.properties is message.properties for message in messages)


def test_no_memory_is_lost_whatever_ends_well_or_fails(both):
    def refused(_address, _port):
        raise ValueError("no host")

    decoder = native().Decoder(Message, new_host, decode_message)
    failing = native().Decoder(Message, refused, decode_message)
    data = Record(body=b"b" * 2000, properties=PROPERTIES + b"long\x01" + b"p" * 2000 + b"\x02").pack()
    damaged = data[:-9]

    def round_of_all():
        message = decoder.decode(data)
        ask_everything(message)
        dataclasses.replace(message)
        pickle.dumps(message)
        vars(message)
        assert message != both[0]
        assert len(list(decoder.iterate(results_of([data, data])[0]))) == 2
        assert len(decoder.decode_runs([data, data], b"a\1b\2")) == 2
        assert decoder.decode_runs([data, damaged], b"") is None
        with pytest.raises(ValueError, match="no host"):
            failing.decode_runs([data], b"")
        for one, other in ((failing, data), (decoder, damaged)):
            with pytest.raises((ValueError, TruncatedError)):
                one.decode(other)
            with pytest.raises((ValueError, TruncatedError)):
                next(one.iterate(results_of([other])[0]))

    kept = decoder.decode(data)
    shared = (type(kept), kept.topic, kept.born_host, Message)
    rounds = 300
    tracemalloc.start()
    try:
        for _ in range(20):  # caches fill
            round_of_all()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        references = [sys.getrefcount(one) for one in shared]
        for _ in range(rounds):
            round_of_all()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert [sys.getrefcount(one) for one in shared] == references
    assert grown < rounds * 1000  # a body or properties have more; Python keeps some small objects

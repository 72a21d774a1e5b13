"""The calls of a store are real methods: ``inspect``, ``help``, ``mock.patch`` and subclasses see them."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from typing_extensions import override

from seglog.errors import ClosedError, ReadOnlyError
from seglog.storage.kernels.calls.store_calls import CALLS
from seglog.storage.reads.get import GetResult
from seglog.storage.store import MessageStore
from seglog.storage.writes.calls import PythonCalls
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import PutResult
from tests.support.material.stores import SMALL, SMALL_INDEX, writer_of

APPENDS = ("put", "append", "put_batch", "append_batch")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    with MessageStore.open(tmp_path / "store", **SMALL, **SMALL_INDEX) as store:
        yield store


def bare(call: Callable[..., object]) -> inspect.Signature:
    """The signature of a call without types, which C cannot state, and without ``self``."""
    signature = inspect.signature(call)
    parameters = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    if parameters[0].name == "self":
        del parameters[0]
    return inspect.Signature(parameters)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_shows_the_signature_and_the_text_that_are_stated_once(store: MessageStore, name: str) -> None:
    stated, call = getattr(PythonCalls, name), getattr(store, name)
    assert bare(call) == bare(getattr(MessageStore, name)) == bare(stated)
    assert call.__doc__ == getattr(MessageStore, name).__doc__ == stated.__doc__
    assert call.__name__ == name
    shown = pydoc.render_doc(call, renderer=pydoc.TextDoc())
    assert stated.__doc__.split("\n")[0] in shown
    assert all(parameter in shown for parameter in bare(stated).parameters)


@pytest.mark.parametrize(
    "name", [*CALLS, *(f"{name}_async" for name in APPENDS), "query", "message_by_id", "wait_for", "listen"]
)
def test_a_misspelt_argument_names_the_call_of_the_store(store: MessageStore, name: str) -> None:
    with pytest.raises(
        TypeError, match=rf"^MessageStore\.{name}\(\) got an unexpected keyword argument 'tagz'"
    ):
        getattr(store, name)("T", 0, b"x", tagz="a")


@pytest.mark.parametrize("name", APPENDS)
def test_tasks_give_a_call_what_threads_give_it(name: str) -> None:
    call, for_tasks = getattr(PythonCalls, name), getattr(MessageStore, f"{name}_async")
    assert inspect.signature(for_tasks) == inspect.signature(call)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_an_open_store_can_be_replaced(store: MessageStore, name: str) -> None:
    store.put("T", b"x")
    with mock.patch.object(MessageStore, name, return_value="replaced"):
        assert getattr(store, name)() == "replaced"
    assert store.put("T", b"y").queue_offset == 1
    assert [message.body for message in store.get("T", 0, 0)] == [b"x", b"y"]


def test_a_store_whose_put_is_replaced_puts_nothing(store: MessageStore) -> None:
    store.put("T", b"x")
    with mock.patch.object(MessageStore, "put") as put:
        store.put("T", b"y", tags="a")
    put.assert_called_once_with("T", b"y", tags="a")
    assert store.max_offset("T", 0) == 1


class Loud(MessageStore):
    """A store that notes what is put."""

    @override
    def put(self, topic: str, body: bytes | bytearray | memoryview, **named: object) -> PutResult:
        vars(self).setdefault("noted", []).append(bytes(body))
        return super().put(topic, body, **named)  # type: ignore[arg-type]  # passed on as it came

    @override
    def get(self, *arguments: object, **named: object) -> GetResult:
        return super().get(*arguments, **named)  # type: ignore[arg-type]  # passed on as it came


def test_what_a_subclass_calls_of_its_base_takes_the_fast_path(tmp_path: Path) -> None:
    with Loud.open(tmp_path / "store", segment_size_bytes=1 << 20, queue_file_size_bytes=2000) as store:
        assert isinstance(store, Loud)
        store.put("T", b"first")
        writer, reader = writer_of(store), store._queue_reader
        store.get("T", 0, 0, 1)
        with (
            mock.patch.object(writer.appends, "append", wraps=writer.appends.append) as append,
            mock.patch.object(reader, "get", wraps=reader.get) as get,
        ):
            store.put("T", b"second", keys="k")
            assert [message.body for message in store.get("T", 0, 1, 1)] == [b"second"]
            append.assert_not_called()
            get.assert_not_called()
            store.put("T", bytearray(b"third"))  # no fast path takes it
            append.assert_called_once()
        assert vars(store)["noted"] == [b"first", b"second", b"third"]


def test_an_ordinary_put_enters_the_core_of_the_writer_once(store: MessageStore) -> None:
    entered: list[str] = []
    core = writer_of(store).appends
    for name in ("append", "append_order", "is_batch_topic", "serve", "end", "add_kinds"):
        call = getattr(core, name)

        def noting(*arguments: object, name: str = name, call: Callable[..., object] = call) -> object:
            entered.append(name)
            return call(*arguments)

        setattr(core, name, noting)
    store.put(
        "New", b"x", durability=Durability.SYNC
    )  # makes a queue, waits for the disk, is granted windows
    assert entered == ["append"]
    store.put("New", b"y")
    assert entered == ["append"]


@pytest.mark.parametrize("name", APPENDS)
def test_a_reader_and_a_closed_store_refuse_a_call_before_they_look_at_its_arguments(
    tmp_path: Path, name: str
) -> None:
    arguments = ("T", 0, b"", b"", 0) if name == "append" else ("T", 0, b"")[: 3 if "append" in name else 2]
    with MessageStore.open(tmp_path / "store", **SMALL, **SMALL_INDEX) as store:
        store.put("T", b"x")
    with MessageStore.open(tmp_path / "store", read_only=True) as reader, pytest.raises(ReadOnlyError):
        getattr(reader, name)(*arguments)
    with pytest.raises(ClosedError):
        getattr(reader, name)(*arguments)

"""The calls of a store say what they take: to threads, to tasks, to ``inspect`` and to ``help``."""

from __future__ import annotations

import inspect

import pytest

from seglog.storage.store import MessageStore

APPENDS = ("put", "append", "put_batch", "append_batch")


def parameters(call):
    return list(inspect.signature(call).parameters.values())


@pytest.mark.parametrize("name", APPENDS)
def test_tasks_give_a_call_what_threads_give_it(name):
    call, for_tasks = getattr(MessageStore, name), getattr(MessageStore, f"{name}_async")
    assert parameters(for_tasks) == parameters(call)
    assert inspect.signature(for_tasks).return_annotation == inspect.signature(call).return_annotation

"""Objects of frozen dataclasses that are made natively are those that the dataclass would have made."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.remoting.command import Request, Response
from seglog.remoting.headers import SendMessageHeader
from seglog.storage.kernels.made import quickly_made
from tests.support.machine.kernels import native


@dataclass(frozen=True, slots=True)
class Stated:
    """As it is stated."""

    first: int
    second: str
    third: bytes | None = None
    fourth: int = 4


@quickly_made
@dataclass(frozen=True, slots=True)
class Made:
    """The same, made natively where that can be."""

    first: int
    second: str
    third: bytes | None = None
    fourth: int = 4


class Heir(Made):
    """Inherits how it is made."""

    __slots__ = ()


names = st.sampled_from(["first", "second", "third", "fourth", "fifth"])


def outcome(kind, positional, named):
    try:
        return dataclasses.astuple(kind(*positional, **named))
    except TypeError as error:
        return str(error).replace("Stated", "Made")


@given(st.lists(st.integers(), max_size=6), st.dictionaries(names, st.integers(), max_size=4))
def test_any_call_makes_what_the_class_states(positional, named):
    assert outcome(Made, positional, named) == outcome(Stated, positional, named)
    assert outcome(Heir, positional, named) == outcome(Stated, positional, named)


def test_names_that_are_no_constants_of_a_program_are_taken():
    names = [name.decode() for name in (b"first", b"second")]
    assert Made(**dict(zip(names, (1, "2"), strict=True))) == Made(1, "2")  # type: ignore[arg-type]


def test_an_object_is_frozen_and_has_the_methods_of_a_dataclass():
    one = Made(1, "2")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.first = 2  # type: ignore[misc]
    assert one == Made(1, "2", None, 4) != Made(1, "3")
    assert hash(one) == hash(Made(1, "2"))
    assert repr(one) == "Made(first=1, second='2', third=None, fourth=4)"
    assert dataclasses.replace(one, third=b"3") == Made(1, "2", b"3")
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own


def test_its_signature_is_told():
    assert inspect.signature(Made) == inspect.signature(Stated)
    assert list(inspect.signature(SendMessageHeader).parameters)[:3] == [
        "producer_group",
        "topic",
        "default_topic",
    ]


@pytest.mark.parametrize("kind", [Request, Response])
def test_what_requests_are_made_of_is_made_so(kind):
    native()
    assert not inspect.isfunction(kind.__init__)


def test_over_python_kernels_a_class_stays_as_it_is():
    program = (
        "import inspect; from seglog.remoting.command import Request;"
        " assert inspect.isfunction(Request.__init__)"
    )
    subprocess.run([sys.executable, "-c", program], env={"SEGLOG_KERNEL": "python"}, check=True)


class Open:
    """A class without slots."""

    first = 1


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Open, (("first",),)),
        (Made, (("fifth",),)),
        (Made, ("first",)),
        (Made, ((1,),)),
        (Made, (("first",),) * 33),
    ],
)
def test_a_class_of_another_form_is_refused(kind, fields):
    with pytest.raises((TypeError, AttributeError, ValueError)):
        native().quick_init(kind, fields, kind.__init__)
    assert Made(1, "2").fourth == 4


def test_an_object_of_a_stranger_is_not_made():
    native()
    with pytest.raises(TypeError):
        Made.__init__(Stated(1, "2"), 1, "2")  # type: ignore[arg-type]

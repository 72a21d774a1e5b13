"""The settings of a consumer are in its signature and its help, and an unknown one is answered with those."""

from __future__ import annotations

import inspect
import pydoc
from dataclasses import fields
from typing import Any

import pytest

from seglog import AsyncOrderlyConsumer, AsyncPushConsumer, OrderlyConsumer, PushConsumer
from seglog.consumer.settings import BOUNDS, ConsumerOptions, ConsumerSettings
from seglog.errors import InvalidArgumentError, InvalidNameError
from tests.support.rows import each_row

KINDS = [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer]
ALL = pytest.mark.parametrize("kind", KINDS)
NOWHERE = "127.0.0.1:1"


@ALL
def test_the_signature_has_each_setting_with_its_default(kind: Any):
    found = inspect.signature(kind).parameters
    assert list(found)[:5] == ["target", "group", "subscription", "listener", "decode"]
    assert list(found)[5:] == list(ConsumerOptions.__annotations__)
    settings = ConsumerSettings("g", {"T": None})  # type: ignore[dict-item]  # what is wanted is not looked at
    for name in ConsumerOptions.__annotations__:
        assert found[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert found[name].default == getattr(settings, name), name


@ALL
def test_the_help_explains_each_setting(kind: Any):
    text = " ".join(pydoc.plain(pydoc.render_doc(kind)).replace(" |  ", " ").split())
    explained = " ".join(inspect.cleandoc(ConsumerSettings.__doc__ or "").split())
    for one in fields(ConsumerSettings):
        if one.name not in ConsumerOptions.__annotations__:
            continue
        begin = explained.index(f" {one.name}: ") + 1
        assert explained[begin : begin + 30] in text
    for low, high in BOUNDS.values():
        assert f", from {low} to {high}." in text
    assert text.count("Settings, by keyword:") == 1


@ALL
@pytest.mark.parametrize(
    ("option", "near"),
    [("max_reconsume", "max_reconsume_times"), ("thread", "threads"), ("pullcount", "pull_count")],
)
def test_an_unknown_setting_is_answered_with_the_consumer_and_the_nearest_one(
    kind: Any, option: str, near: str
):
    with pytest.raises(
        TypeError, match=rf"^{kind.__name__}\(\) .*'{option}'; did you mean '{near}'\?"
    ) as error:
        kind(NOWHERE, "g", "T", print, **{option: 5})
    assert all(name in str(error.value) for name in ConsumerOptions.__annotations__)


def test_a_setting_like_none_is_answered_with_all():
    with pytest.raises(TypeError, match=r"^PushConsumer\(\) has no setting 'xyz'\. Settings: consume_from, "):
        PushConsumer(NOWHERE, "g", "T", print, xyz=5)  # type: ignore[call-overload]


@ALL
@each_row("topic", ["a b", "", "a/b", "a.b", "tümpel", "x" * 128, "%RETRY%" + "x" * 249])
def test_a_topic_that_there_can_be_none_of_is_refused_at_once_and_not_repeated_whole(kind: Any, topic: str):
    for wanted in (topic, {"T": "*", topic: "*"}):
        with pytest.raises(InvalidNameError, match="topic name") as error:
            kind(NOWHERE, "g", wanted, print)
        assert len(str(error.value)) < 120


@pytest.mark.parametrize("wanted", [["T"], ("T", "U"), {"T"}])
def test_topics_in_a_list_are_answered_with_how_they_are_written(wanted: Any):
    with pytest.raises(InvalidArgumentError, match=r"^subscription=") as error:
        PushConsumer(NOWHERE, "g", wanted, print)
    assert '{"orders": "*", "refunds": "*"}' in error.value.help


def test_a_long_subscription_to_no_tag_is_not_repeated_whole():
    with pytest.raises(InvalidArgumentError, match="names no tag") as error:
        PushConsumer(NOWHERE, "g", {"T": "||" * 10_000}, print)
    assert len(str(error.value)) < 120

"""Changes of attributes, and what RocketMQ says of those that cannot be."""

from __future__ import annotations

import pytest

from seglog.broker.tables.attributes import GROUP_ATTRIBUTES, alter_attributes
from seglog.errors import InvalidArgumentError
from seglog.storage.format.config.config_value import ConfigValue


def test_attributes_are_set_and_taken_away():
    before: dict[str | int, ConfigValue] = {"message.type": "FIFO", "reserve.time": "5", "other": "stays"}
    after = {"message.type": "NORMAL", "other": "stays"}
    assert alter_attributes(before, "+message.type=NORMAL,-reserve.time") == after
    assert alter_attributes(before, None) == before
    assert alter_attributes(None, "+queue.type=BatchCQ") == {"queue.type": "BatchCQ"}
    assert alter_attributes({}, "+priority.factor=7", GROUP_ATTRIBUTES) == {"priority.factor": "7"}


@pytest.mark.parametrize("changes", ["a=1", "+a", "-a=1", "+=1", ",", "-"])
def test_attribute_changes_of_another_form_are_refused(changes):
    with pytest.raises(InvalidArgumentError, match="format is wrong"):
        alter_attributes({}, changes)


def test_a_priority_factor_is_a_percentage():
    assert alter_attributes({}, "+priority.factor=100", GROUP_ATTRIBUTES) == {"priority.factor": "100"}
    with pytest.raises(InvalidArgumentError, match=r"^value is not in range\(0, 100\)\n"):
        alter_attributes({}, "+priority.factor=101", GROUP_ATTRIBUTES)


@pytest.mark.parametrize(
    ("before", "changes", "says"),
    [
        (None, "-message.type", "only add attribute is supported while creating topic. key: message.type"),
        ({}, "-message.type", "attempt to delete a nonexistent key: message.type"),
        ({}, "+colour=red", "unsupported key: colour"),
        ({}, "+message.type=RED", "value is not in set: [DELAY, FIFO, MIXED, "),
        ({}, "+reserve.time=-2", "value is not in range(-1, 9223372036854775807)"),
        ({}, "+reserve.time=soon", "value is not in range(-1, 9223372036854775807)"),
        ({}, "+queue.type=BatchCQ", "attempt to update an unchangeable attribute. key: queue.type"),
        (
            {"queue.type": "BatchCQ"},
            "-queue.type",
            "attempt to update an unchangeable attribute. key: queue.type",
        ),
        ({}, "+message.type=FIFO,+message.type=FIFO", "key duplication: +message.type"),
    ],
)
def test_attributes_that_cannot_be_are_refused_in_rocketmqs_words(before, changes, says):
    with pytest.raises(InvalidArgumentError) as refused:
        alter_attributes(before, changes)
    assert says in str(refused.value)

"""Tag expressions mean what they mean to RocketMQ."""

from __future__ import annotations

import pytest

from seglog.errors import InvalidArgumentError
from seglog.remoting.subscription import parse_subscription


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        (None, None),
        ("", None),
        ("*", None),
        ("TagA", {"TagA"}),
        ("TagA || TagB", {"TagA", "TagB"}),
        ("TagA||TagB||", {"TagA", "TagB"}),
        (" * ", {"*"}),
    ],
)
def test_an_expression_names_its_tags(expression, tags):
    assert parse_subscription(expression).tags == tags


@pytest.mark.parametrize("expression", ["||", "||||", "  ", " || "])
def test_separators_alone_are_refused(expression):
    with pytest.raises(InvalidArgumentError, match="names no tag"):
        parse_subscription(expression)

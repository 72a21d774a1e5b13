"""What a group's settings are called in JSON is stated once, for bodies and for the broker's file."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from seglog.broker.tables.groups import group_to_config, parse_group
from seglog.remoting.body_json.table_bodies import GROUP_FORM
from seglog.remoting.subscription_group import GROUP_FIELD_NAMES, GROUP_FIELDS, SubscriptionGroup

PACKAGE = Path(__file__).parents[2] / "seglog"
OF_OTHERS_TOO = {"attributes", "brokerId", "groupName"}
"""Members of these names that other objects have as well."""
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text("abc", min_size=1, max_size=3)
GROUPS = st.builds(
    SubscriptionGroup,
    TEXT,
    *[st.booleans()] * 4,
    *[INT32] * 2,
    st.just({"type": "CUSTOMIZED"}) | st.just({"type": "EXPONENTIAL"}),
    *[INT32] * 2,
    st.booleans(),
    *[INT32] * 2,
    st.dictionaries(TEXT, TEXT, max_size=2),
    st.dictionaries(st.sampled_from(("later", "evenLater")), INT32, max_size=2),
)


def test_every_setting_has_one_member_and_every_member_one_setting():
    attributes = [field.attribute for field in GROUP_FIELDS]
    assert sorted([*attributes, "unknown"]) == sorted(
        field.name for field in dataclasses.fields(SubscriptionGroup)
    )
    names = [field.name for field in GROUP_FIELDS]
    assert names == sorted(GROUP_FIELD_NAMES)


def texts_of(module: Path) -> set[str]:
    nodes = ast.walk(ast.parse(module.read_text()))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_members_are_named_by_one_module_of_broker_and_remoting():
    named = set()
    for room in ("broker", "remoting"):
        for module in (PACKAGE / room).rglob("*.py"):
            found = texts_of(module)
            if found & (GROUP_FIELD_NAMES - OF_OTHERS_TOO):
                named.add(module.relative_to(PACKAGE).as_posix())
    assert named == {"remoting/subscription_group.py"}


@given(GROUPS)
def test_a_body_and_the_file_have_the_same_members_and_lead_back_to_the_group(group):
    body, file = GROUP_FORM.encode(group), group_to_config(group)
    assert body == file
    assert list(file) == [*(field.name for field in GROUP_FIELDS), *group.unknown]
    assert GROUP_FORM.decode(body, "a group") == parse_group(group.name, file) == group

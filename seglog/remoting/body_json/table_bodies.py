"""Bodies that are tables of a broker, or entries of them: settings, names, and groups to be made.

Source: ``ConfigManager.java encode``, ``TopicList.java``, ``GroupList.java``,
``SubscriptionGroupConfig.java``, ``SubscriptionGroupList.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from seglog.remoting.admin_bodies import ConfigBody, GroupListBody, NamesBody
from seglog.remoting.body_json.body_codec import json_body, object_body
from seglog.remoting.body_json.fields import (
    ANY,
    BOOL,
    INT32,
    INT64,
    OBJECT,
    TEXT,
    Form,
    JsonField,
    items_of,
    object_of,
)
from seglog.remoting.subscription_group import (
    GROUP_FIELD_NAMES,
    GROUP_FIELDS,
    GroupFieldKind,
    SubscriptionGroup,
)
from seglog.storage.format.config import ConfigValue

_FORMS: Final[Mapping[GroupFieldKind, Form[Any]]] = {
    GroupFieldKind.TEXT: TEXT,
    GroupFieldKind.FLAG: BOOL,
    GroupFieldKind.INT32: INT32,
    GroupFieldKind.INT64: INT64,
    GroupFieldKind.ANY: ANY,
    GroupFieldKind.OBJECT: OBJECT,
}
_GROUP_FIELDS: Final = object_of(
    SubscriptionGroup,
    derived=lambda group: {str(name): value for name, value in group.unknown.items()},
    **{field.attribute: JsonField(field.name, _FORMS[field.kind]) for field in GROUP_FIELDS},
)


def _decode_group(found: ConfigValue, name: str) -> SubscriptionGroup:
    entries = found.items() if isinstance(found, Mapping) else ()
    # A group without a name is read: the broker refuses it as one with a blank name.
    named = {"groupName": "", **found} if isinstance(found, Mapping) else found
    group = _GROUP_FIELDS.decode(named, name)
    return replace(group, unknown={key: value for key, value in entries if key not in GROUP_FIELD_NAMES})


GROUP_FORM: Final = Form[SubscriptionGroup](_GROUP_FIELDS.encode, _decode_group)
GROUP: Final = json_body(SubscriptionGroup, GROUP_FORM)
GROUP_LIST: Final = object_body(
    GroupListBody, groups=JsonField("groupConfigList", items_of(GROUP_FORM, tuple))
)
_NAMES: Final = items_of(TEXT, frozenset, order=str)
TOPIC_NAMES: Final = object_body(
    NamesBody, names=JsonField("topicList", _NAMES), broker_address=JsonField("brokerAddr", TEXT)
)
GROUP_NAMES: Final = object_body(NamesBody, names=JsonField("groupList", _NAMES))


def _decode_table(found: ConfigValue, _name: str) -> ConfigBody:
    return ConfigBody(found)


CONFIG: Final = json_body(ConfigBody, Form[ConfigBody](lambda body: body.value, _decode_table))

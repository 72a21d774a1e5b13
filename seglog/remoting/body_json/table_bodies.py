"""Bodies that are tables of a broker, or entries of them: settings, names, and groups to be made.

Source: ``ConfigManager.java encode``, ``TopicList.java``, ``GroupList.java``,
``SubscriptionGroupConfig.java``, ``SubscriptionGroupList.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from seglog.remoting.admin_bodies import ConfigBody, GroupListBody, NamesBody
from seglog.remoting.body_json.body_codec import json_body
from seglog.remoting.body_json.fields import (
    ANY,
    BOOL,
    INT32,
    INT64,
    TEXT,
    Form,
    JsonField,
    items_of,
    object_of,
    refusal,
)
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.config import ConfigValue

_KNOWN: Final = {
    "name": JsonField("groupName", TEXT),
    "is_consume_enabled": JsonField("consumeEnable", BOOL),
    "is_from_min_enabled": JsonField("consumeFromMinEnable", BOOL),
    "is_broadcast_enabled": JsonField("consumeBroadcastEnable", BOOL),
    "is_orderly": JsonField("consumeMessageOrderly", BOOL),
    "retry_queue_nums": JsonField("retryQueueNums", INT32),
    "retry_max_times": JsonField("retryMaxTimes", INT32),
    "retry_policy": JsonField("groupRetryPolicy", ANY),
    "broker_id": JsonField("brokerId", INT64),
    "slow_broker_id": JsonField("whichBrokerWhenConsumeSlowly", INT64),
    "is_notified": JsonField("notifyConsumerIdsChangedEnable", BOOL),
    "sys_flag": JsonField("groupSysFlag", INT32),
    "consume_timeout_minutes": JsonField("consumeTimeoutMinute", INT32),
    "attributes": JsonField("attributes", ANY),
}
_KNOWN_NAMES: Final = frozenset(field.name for field in _KNOWN.values())
_GROUP_FIELDS: Final = object_of(
    SubscriptionGroup,
    derived=lambda group: {str(name): value for name, value in group.unknown.items()},
    **_KNOWN,
)


def _decode_group(found: ConfigValue, name: str) -> SubscriptionGroup:
    group = _GROUP_FIELDS.decode(found, name)
    if not isinstance(group.attributes, Mapping):
        raise refusal("attributes", "an object", group.attributes)
    entries = found.items() if isinstance(found, Mapping) else ()
    return replace(group, unknown={key: value for key, value in entries if key not in _KNOWN_NAMES})


GROUP_FORM: Final = Form[SubscriptionGroup](_GROUP_FIELDS.encode, _decode_group)
GROUP: Final = json_body(SubscriptionGroup, GROUP_FORM)
GROUP_LIST: Final = json_body(
    GroupListBody, object_of(GroupListBody, groups=JsonField("groupConfigList", items_of(GROUP_FORM, tuple)))
)
_NAMES: Final = items_of(TEXT, frozenset, order=str)
TOPIC_NAMES: Final = json_body(NamesBody, object_of(NamesBody, names=JsonField("topicList", _NAMES)))
GROUP_NAMES: Final = json_body(NamesBody, object_of(NamesBody, names=JsonField("groupList", _NAMES)))


def _decode_table(found: ConfigValue, _name: str) -> ConfigBody:
    return ConfigBody(found)


CONFIG: Final = json_body(ConfigBody, Form[ConfigBody](lambda body: body.value, _decode_table))

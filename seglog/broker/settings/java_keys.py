"""The settings of a broker under RocketMQ's names, and those that a request may change.

Source: ``BrokerConfig.java``, ``MessageStoreConfig.java``, ``AdminBrokerProcessor.java updateBrokerConfig``,
``NamesrvConfig.java``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from seglog.arguments import MAX_I32, refusal
from seglog.broker.settings.config import BrokerConfig
from seglog.errors import InvalidArgumentError

Value = TypeVar("Value")
REFUSED: Final = frozenset(("brokerConfigPath", "rocketmqHome", "configBlackList"))
"""The black list of a broker: settings that no request changes."""
REFUSED_OF_NAME_SERVER: Final = frozenset(
    ("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome")
)
"""The black list of a name server."""
_HOURS: Final = "retention_delete_hours"


class JavaKey(NamedTuple):
    """A setting that may be changed.

    Attributes:
        attribute: The attribute of :class:`BrokerConfig`.
        read: Converts text to value; raises ValueError with a description of valid values.
        show: Converts value to text.
    """

    attribute: str
    read: Callable[[str], Any]
    show: Callable[[Any], str]


def _read_flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.strip().lower() == "true"


def _read_number(text: str) -> int:
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit() and len(stripped) <= _MOST_DIGITS):
        raise ValueError(f"a whole number from 0, of at most {_MOST_DIGITS} digits")
    return int(stripped)


def read_count(text: str) -> int:
    """Returns a number from 1 on.

    Raises:
        ValueError: The text is not one; the message describes valid values, for :func:`read_value`.
    """
    number = _read_number(text)
    if not number:
        raise ValueError("a whole number from 1")
    return number


def _read_hours(text: str) -> tuple[int, ...]:
    hours = tuple(_read_number(hour) for hour in text.split(";") if hour.strip())
    if not hours:
        raise ValueError("hours of the day, such as 04;16")
    return hours


def _read_hours_kept(text: str) -> int | None:
    hours = _read_number(text)
    return None if hours == _FOR_EVER_HOURS else hours


def _read_text(text: str) -> str:
    if not text.strip():
        raise ValueError("a name or another text")
    return text.strip()


def _text(attribute: str) -> JavaKey:
    return JavaKey(attribute, _read_text, str)


def _flag(attribute: str) -> JavaKey:
    return JavaKey(attribute, _read_flag, lambda value: "true" if value else "false")


def _number(attribute: str) -> JavaKey:
    return JavaKey(attribute, _read_number, str)


def _count(attribute: str) -> JavaKey:
    return JavaKey(attribute, read_count, str)


_MOST_DIGITS: Final = 10
_FOR_EVER_HOURS: Final = MAX_I32
"""What tools are told of messages that are kept for ever: RocketMQ has a number only."""
CHANGEABLE: Final[Mapping[str, JavaKey]] = {
    "autoCreateTopicEnable": _flag("auto_create_topics"),
    "autoCreateSubscriptionGroup": _flag("auto_create_groups"),
    "brokerPermission": _number("broker_permission"),
    "deleteWhen": JavaKey(
        _HOURS, _read_hours, lambda hours: ";".join(f"{hour:02}" for hour in sorted(hours))
    ),
    "diskMaxUsedSpaceRatio": _number("disk_clean_percent"),
    "enablePropertyFilter": _flag("enable_property_filter"),
    "fileReservedTime": JavaKey(
        "retention_hours", _read_hours_kept, lambda hours: str(_FOR_EVER_HOURS if hours is None else hours)
    ),
    "litePullMessageEnable": _flag("lite_pull_message_enable"),
    "longPollingEnable": _flag("long_polling_enable"),
    "maxTransferBytesOnMessageInDisk": _count("max_cold_pull_bytes"),
    "maxTransferBytesOnMessageInMemory": _count("max_pull_bytes"),
    "maxTransferCountOnMessageInDisk": _count("max_cold_pull_count"),
    "maxTransferCountOnMessageInMemory": _count("max_pull_count"),
    "rejectPullConsumerEnable": _flag("reject_pull_consumer_enable"),
    "shortPollingTimeMills": _number("short_polling_ms"),
}
"""By RocketMQ's name."""
OPENED_WITH: Final[Mapping[str, JavaKey]] = {
    "brokerClusterName": _text("cluster_name"),
    "brokerName": _text("broker_name"),
    "defaultTopicQueueNums": _number("default_topic_queue_nums"),
    "flushConsumerOffsetInterval": _count("persist_interval_ms"),
    "maxMessageSize": _count("max_message_size_bytes"),
    "messageDelayLevel": _text("delay_levels"),
    "regionId": _text("region_id"),
    "traceOn": _flag("is_trace_on"),
}
"""Settings fixed at opening, by RocketMQ's name; no request changes them."""
BROKER_IP: Final = "brokerIP1"
LISTEN_PORT: Final = "listenPort"
"""The two halves of the address in routes."""


def is_refused(name: str, refused: frozenset[str]) -> bool:
    """Returns whether no request may change a setting: those of the list, and paths of files.

    Args:
        name: RocketMQ's name of the setting.
        refused: The list.
    """
    return name in refused or name.startswith("storePath") or name.endswith(("Path", "Dir", "Home"))


def read_changes(values: Mapping[str, str]) -> dict[str, Any]:
    """Returns the changed settings by attribute; unknown names are left out.

    Args:
        values: By RocketMQ's name.

    Raises:
        InvalidArgumentError: A text is not a valid value; the message names the setting.
    """
    return {
        CHANGEABLE[name].attribute: read_value(name, CHANGEABLE[name].read, text)
        for name, text in values.items()
        if name in CHANGEABLE
    }


def read_lent(values: Mapping[str, str], lent: Collection[str]) -> dict[str, int]:
    """Returns the changes of settings that other parts lend to the broker, by RocketMQ's name.

    Args:
        values: Texts by RocketMQ's name.
        lent: The names of lent settings.

    Raises:
        InvalidArgumentError: A text is not a number from 1 on; the message names the setting.
    """
    return {name: read_value(name, read_count, text) for name, text in values.items() if name in lent}


def read_value(name: str, read: Callable[[str], Value], text: str) -> Value:
    """Returns the value of a text.

    Args:
        name: RocketMQ's name of the setting.
        read: Converts the text.
        text: The text.

    Raises:
        InvalidArgumentError: It is not a valid value; the message names the setting.
    """
    try:
        return read(text)
    except ValueError as error:
        raise refusal(name, text, str(error), f"{name} takes {error}") from error
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{name}={text[:40]}: {error}") from error


def shown(config: BrokerConfig) -> dict[str, str]:
    """Returns settings as texts, by RocketMQ's name."""
    ip, _, port = config.address.rpartition(":")
    keys = {**OPENED_WITH, **CHANGEABLE}
    return {BROKER_IP: ip, LISTEN_PORT: port} | {
        name: key.show(getattr(config, key.attribute)) for name, key in keys.items()
    }

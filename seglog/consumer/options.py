"""The settings of a consumer in its signature and help, and the error for an unknown setting.

All of it follows from :class:`~seglog.consumer.settings.ConsumerSettings`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from inspect import Parameter, Signature
from typing import Final, ForwardRef, NamedTuple

from seglog.consumer.settings import BOUNDS, MOST_IN_ALL, ConsumerOptions, ConsumerSettings, LiteOptions

OF_JAVA: Final = {
    "consumer_group": "group",
    "namesrv_addr": "target",
    "message_listener": "listener",
    "consume_from_where": "consume_from",
    "allocate_message_queue_strategy": "strategy",
    "consume_thread_min": "threads",
    "consume_thread_max": "threads",
    "consume_message_batch_max_size": "batch_size",
    "consume_timeout": "consume_timeout_ms",
    "consume_concurrently_max_span": "max_span",
    "suspend_current_queue_time_millis": "suspend_ms",
    "pull_batch_size": "pull_count",
    "pull_batch_size_in_bytes": "pull_bytes",
    "pull_interval": "pull_interval_ms",
    "pull_threshold_for_queue": "max_cached",
    "pull_threshold_size_for_queue": "max_cached_bytes",
    "pull_threshold_for_topic": "max_cached_topic",
    "pull_threshold_size_for_topic": "max_cached_topic_bytes",
    "pull_threshold_for_all": "max_cached_all",
    "persist_consumer_offset_interval": "commit_interval_ms",
    "auto_commit_interval_millis": "commit_interval_ms",
}
"""Names here of the settings of RocketMQ's Java consumers."""
OF_KAFKA: Final = {
    "group_id": "group",
    "value_deserializer": "decode",
    "auto_offset_reset": "consume_from",
    "partition_assignment_strategy": "strategy",
    "enable_auto_commit": "auto_commit",
    "auto_commit_interval_ms": "commit_interval_ms",
    "max_poll_records": "pull_count",
    "max_partition_fetch_bytes": "pull_bytes",
    "bootstrap_servers": "target",
}
"""Names here of the settings of kafka-python."""
ELSEWHERE: Final = {**OF_JAVA, **OF_KAFKA}
"""Both."""
_OF_ALL: Final = ("target", "group", "decode")
"""Arguments of all consumers that have other names elsewhere."""
_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


class OptionsOf(NamedTuple):
    """The settings of consumers of some kinds.

    Attributes:
        names: The settings that users give, with their types.
        defaults: Defaults that differ from those of ``ConsumerSettings``.
    """

    names: Mapping[str, ForwardRef]
    defaults: Mapping[str, object]


OF_LISTENERS: Final = OptionsOf(ConsumerOptions.__annotations__, {})
OF_POLLS: Final = OptionsOf(LiteOptions.__annotations__, {"max_cached_all": MOST_IN_ALL})


def check_options(consumer: str, options: Collection[str], of: OptionsOf = OF_LISTENERS) -> None:
    """Refuses a setting that consumers do not have.

    Args:
        consumer: The class that the user called.
        options: The names that were given.
        of: The settings that exist.

    Raises:
        TypeError: One is unknown, as for any call with an unexpected keyword.
    """
    known = of.names
    meant = (*known, *_OF_ALL, "listener") if of is OF_LISTENERS else (*known, *_OF_ALL)
    for name in options:
        if name not in known:
            import difflib

            near = ELSEWHERE.get(name)
            if near is None:
                near = next(iter(difflib.get_close_matches(name, known, 1)), None)
            elif near not in meant:  # a setting of consumers of the other kind
                near = None
            advice = f"; did you mean {near!r}?" if near else "."
            raise TypeError(f"{consumer}() has no setting {name!r}{advice} Settings: {', '.join(known)}")


def with_options(made: Signature, of: OptionsOf = OF_LISTENERS) -> Signature:
    """Returns the signature of a consumer's constructor, with each setting in place of ``**options``."""
    own = [one for one in made.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    return made.replace(parameters=[*own[1:], *_parameters(of)])


def arguments_text(docstring: str) -> str:
    """Returns the sections ``Args`` and ``Raises`` of a docstring."""
    _, _, found = inspect.cleandoc(docstring).partition("\nArgs:")
    return f"Args:{found}".rstrip()


def options_text(of: OptionsOf = OF_LISTENERS) -> str:
    """Returns the section of a docstring that explains each setting: what it is, its default, its bounds."""
    texts = dict(_ATTRIBUTE.findall(inspect.cleandoc(ConsumerSettings.__doc__ or "")))
    lines = ["Settings, by keyword:"]
    for one in _parameters(of):
        low, high = BOUNDS.get(one.name, (None, None))
        bounds = "" if low is None else f", from {low} to {high}"
        lines.append(f"    {one.name}: {texts[one.name]} Default {one.default}{bounds}.")
    return "\n".join(lines)


def _parameters(of: OptionsOf) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            one.name,
            Parameter.KEYWORD_ONLY,
            default=of.defaults.get(one.name, _default_of(one)),
            annotation=of.names[one.name].__forward_arg__,
        )
        for one in fields(ConsumerSettings)
        if one.name in of.names
    )


def _default_of(one: Field[object]) -> object:
    return one.default if one.default_factory is MISSING else one.default_factory()

"""The selection with which a stream began: its checkpoint keeps it, and a restart cannot change it.

Messages that a batch left out are not read again, so a restart with other topics would never return their
older messages. As with Kafka, the starting position counts only for a new stream: a restart uses its
checkpoint.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.spark.source.stream.stream_offset import Noted, StreamOffset, as_json, by_key
from seglog.spark.source.wanted.options import Options, Place

_FIXED: Final = ("subscribe", "subscribePattern", "assign", "endingTimestamp")


def noted(options: Options) -> Noted:
    """Returns the selection of options in the form of a checkpoint."""
    found: Noted = {}
    if options.topics is not None:
        found["subscribe"] = sorted(options.topics)
    if options.topic_pattern is not None:
        found["subscribePattern"] = options.topic_pattern.pattern
    if options.queues is not None:
        found["assign"] = {}
        for topic, number in sorted(options.queues):
            found["assign"].setdefault(topic, []).append(number)
    if options.ending_ms is not None:
        found["endingTimestamp"] = options.ending_ms
    if options.starting_ms is not None:
        found["startingTimestamp"] = options.starting_ms
    if isinstance(options.starting, dict):
        found["startingOffsets"] = as_json(options.starting)
    return found


def as_begun(options: Options, offset: StreamOffset) -> Options:
    """Returns options with the starting position that a stream had.

    Args:
        options: The present options.
        offset: The position of the stream; if an earlier version wrote it, the options are right.

    Raises:
        InvalidArgumentError: The selection differs from that with which the stream began.
    """
    before = next((at["wanted"] for at in offset.values() if "wanted" in at), None)
    if before is None:
        return options
    now = noted(options)
    for name in _FIXED:
        if before.get(name) != now.get(name):
            raise InvalidArgumentError(
                f"option {name} was {_said(before, name)} when this stream began, and is {_said(now, name)}"
                " now: messages that were passed over would never be read",
                help="give the option as it was, or begin with a new checkpointLocation",
            )
    starting: Place | None = options.starting if isinstance(options.starting, str) else None
    if "startingOffsets" in before:
        starting = by_key(before["startingOffsets"])
    return replace(
        options,
        starting=starting,
        starting_ms=before.get("startingTimestamp"),
    )


def _said(noted: Noted, name: str) -> str:
    value = noted.get(name)
    if value is None:
        return "not given"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)

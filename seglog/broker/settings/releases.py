"""The differences of RocketMQ's releases: one table, with a row for each release that tests compare with.

A broker behaves like one of them (``BrokerConfig.compatible_with``); the common behaviour is in the handlers.
A differential test compares with the real brokers (``tests/interop/brokers/test_broker_alike.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """What one release does where others do something else.

    Attributes:
        revives_deleted_groups: Whether a group whose deletion keeps its offsets (DELETE_SUBSCRIPTIONGROUP
            with cleanOffset=false) is there again at once with usual settings, if groups are created by
            their first use. Then commits and resets of it are taken, which are refused with 26 otherwise.
        checks_viewed_topic: Whether a message that is looked up by its id (VIEW_MESSAGE_BY_ID) has to be of
            the topic that the request names, if it names one; it is refused with 16 otherwise.
    """

    # LiteMetadataUtil.isLiteGroupType looks the group up, which creates it: after the deletion in 5.5.0,
    # before it in 5.5.1. 5.4.0 makes no such call.
    revives_deleted_groups: bool = False
    checks_viewed_topic: bool = False


RELEASES: Final[Mapping[str, ReleaseRules]] = MappingProxyType(
    {
        "5.4.0": ReleaseRules(),
        "5.5.0": ReleaseRules(revives_deleted_groups=True),
        "5.5.1": ReleaseRules(checks_viewed_topic=True),
    }
)
"""By version, the oldest first."""

NEWEST_RELEASE: Final = "5.5.1"

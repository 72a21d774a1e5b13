"""A broker does as the release of RocketMQ that it is compatible with; interop asks the real ones."""

from __future__ import annotations

from dataclasses import fields

import pytest

from seglog.broker.settings.config import BrokerConfig
from seglog.broker.settings.releases import NEWEST_RELEASE, RELEASES, ReleaseRules
from seglog.errors import InvalidArgumentError
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import (
    DeleteGroupHeader,
    ResetOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.subscription_group import SubscriptionGroup
from tests.support.brokers import open_broker, send


def test_the_newest_release_is_the_usual_one():
    assert list(RELEASES)[-1] == NEWEST_RELEASE == BrokerConfig().compatible_with


def test_an_unknown_release_is_refused_with_the_known_ones():
    with pytest.raises(InvalidArgumentError, match=r"compatible_with='4.9.8' .*'5.4.0', '5.5.0' or '5.5.1'"):
        BrokerConfig(compatible_with="4.9.8")


def test_every_rule_tells_releases_apart():
    for rule in fields(ReleaseRules):
        assert len({getattr(rules, rule.name) for rules in RELEASES.values()}) > 1


def after_deletion(path, release, *, cleans_offsets=False, auto_create_groups=True):
    """Returns how a commit and a reset of a deleted group are answered, and its settings then."""
    config = BrokerConfig(compatible_with=release, auto_create_groups=auto_create_groups)
    with open_broker(path, config=config) as broker:
        send(broker, "T")
        broker.groups.put(SubscriptionGroup("g", retry_max_times=3))
        for request in (
            Request(RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupHeader("g", cleans_offsets)),
            Request(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetHeader("g", "T", 0, 1)),
            Request(
                RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, ResetOffsetHeader("g", "T", 0, True, 0, offset=0)
            ),
        ):
            yield broker.dispatch(request).code
        yield broker.groups.get("g")


GONE = [ResponseCode.SUCCESS, *[ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST] * 2, None]
BACK = [*[ResponseCode.SUCCESS] * 3, SubscriptionGroup("g")]


@pytest.mark.parametrize("release", RELEASES)
def test_finding_6_of_the_broker_a_deleted_group_whose_offsets_stay_is_back_in_5_5_0_alone(tmp_path, release):
    assert list(after_deletion(tmp_path, release)) == (BACK if release == "5.5.0" else GONE)


@pytest.mark.parametrize("release", RELEASES)
def test_a_group_that_is_deleted_with_its_offsets_is_gone_in_each_release(tmp_path, release):
    assert list(after_deletion(tmp_path, release, cleans_offsets=True)) == GONE


def test_no_deleted_group_is_back_where_groups_are_not_created_by_their_use(tmp_path):
    assert list(after_deletion(tmp_path, "5.5.0", auto_create_groups=False)) == GONE

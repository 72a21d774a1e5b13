"""RocketMQ's cleaning: which rule keeps or deletes each file of the log."""

from __future__ import annotations

import os

import pytest

from seglog.doctor.groups import BrokerRules, Rule, broker_cleaning
from seglog.errors import InvalidArgumentError
from seglog.storage.files import DiskUsage, RealFiles
from tests.support.material import golden

HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000
USUAL = BrokerRules()


@pytest.fixture
def root(tmp_path):
    return golden.extract("roll", tmp_path)


def _rules_of(root, ages_h, used, rules=USUAL):
    names = sorted(path.name for path in (root / "commitlog").iterdir())
    for name, age_h in zip(names, ages_h, strict=True):
        changed_ms = NOW_MS - age_h * HOUR_MS
        os.utime(root / "commitlog" / name, ns=(0, changed_ms * 1_000_000))
    usage = DiskUsage(used * 10, (100 - used) * 10)
    return [one.rule for one in broker_cleaning(RealFiles(), root, rules, usage, NOW_MS)]


@pytest.mark.parametrize(
    ("ages_h", "used", "expected"),
    [
        ([1, 1, 1, 1, 1], 50, [Rule.AGE] * 4 + [Rule.NEWEST]),
        ([73, 72, 71, 99, 99], 75, [Rule.EXPIRED] * 2 + [Rule.AGE, Rule.BEHIND, Rule.NEWEST]),
        ([73, 1, 1, 1, 1], 76, [Rule.EXPIRED_NOW] + [Rule.AGE] * 3 + [Rule.NEWEST]),
        ([73, 1, 1, 1, 1], 85, [Rule.EXPIRED_NOW] + [Rule.AGE] * 3 + [Rule.NEWEST]),
        ([73, 1, 1, 1, 1], 86, [Rule.FORCED] * 4 + [Rule.NEWEST]),
    ],
)
def test_a_file_has_the_rule_of_its_age_and_of_the_disk(root, ages_h, used, expected):
    assert _rules_of(root, ages_h, used) == expected


def test_a_broker_that_does_not_clean_by_force_waits_for_the_age(root):
    rules = BrokerRules.of({"cleanFileForciblyEnable": "false", "fileReservedTime": "48"})
    assert _rules_of(root, [49, 1, 1, 1, 1], 99, rules) == [Rule.EXPIRED_NOW, *[Rule.AGE] * 3, Rule.NEWEST]


def test_a_ratio_is_bounded_as_rocketmq_bounds_it():
    assert BrokerRules.of({"diskMaxUsedSpaceRatio": "99"}).expired_percent == 95
    assert BrokerRules.of({"diskMaxUsedSpaceRatio": "1"}).expired_percent == 10
    assert BrokerRules.of({"deleteWhen": "02;14"}).delete_when == "02;14"


def test_a_setting_that_is_no_number_is_refused():
    with pytest.raises(InvalidArgumentError, match="fileReservedTime is no number: 'three'"):
        BrokerRules.of({"fileReservedTime": "three"})

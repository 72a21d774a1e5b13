"""``seglog retention broker``: the rule by which RocketMQ's cleaning keeps or deletes each log file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from seglog.cli.read.reading import check_store
from seglog.cli.ui import options, render
from seglog.clock import SystemClock
from seglog.doctor.groups import BrokerRules, Kept, Rule, broker_cleaning, is_above
from seglog.storage.directory import broker_settings
from seglog.storage.files import DiskUsage


@click.command(name="broker")
@options.store
@click.option(
    "--broker-conf",
    "conf",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The broker's configuration; without it RocketMQ's defaults hold.",
)
@options.as_json
def broker(*, path: Path, conf: Path | None, as_json: bool) -> None:
    """Show what a RocketMQ broker's own cleaning does to each file of the log of STORE, and by which rule.

    It goes by when a file was last changed, so one that was copied or restored is as young as its copy. Above
    75 % of the disk expired files go at any hour, above 85 % the oldest, young ones too, and above 90 % the
    broker refuses messages; --broker-conf takes other numbers. Changes nothing.
    """
    check_store(path)
    rules = BrokerRules() if conf is None else BrokerRules.of(broker_settings(conf))
    files = options.reading(path)
    usage = files.usage(path)
    kept = list(broker_cleaning(files, path, rules, usage, SystemClock().now_ms()))
    if as_json:
        for one in kept:
            render.emit(_fields(one))
        render.emit(_sum_fields(rules, usage))
        return
    expired = f"{rules.reserved_hours} h after the last change of a file (fileReservedTime)"
    render.facts({"disk": _disk_text(rules, usage), "expired": expired})
    render.say()
    rows = [
        (one.name, one.size_bytes, render.time_text(one.changed_ms), _rule_text(one, rules)) for one in kept
    ]
    render.table(("file of the log", "bytes", "last change", "RocketMQ"), rows, numbers=("bytes",))


def _disk_text(rules: BrokerRules, usage: DiskUsage) -> str:
    whole = usage.used_bytes + usage.available_bytes
    text = f"{100 * usage.used_bytes / max(whole, 1):.1f} % of {render.size_text(whole)} in use"
    if is_above(usage, rules.refused_percent):
        return f"{text}, above {rules.refused_percent} %: the broker refuses messages"
    if is_above(usage, rules.forced_percent) and rules.is_forcible:
        return f"{text}, above {rules.forced_percent} %: the oldest files go however young they are"
    if is_above(usage, rules.expired_percent):
        return f"{text}, above {rules.expired_percent} %: expired files go at any hour"
    return f"{text}: expired files go at {rules.delete_when} o'clock"


_GOING: Final = {
    Rule.FORCED: "goes now: the disk is above {forced} % (diskSpaceCleanForciblyRatio)",
    Rule.EXPIRED_NOW: "goes now: expired, and the disk is above {expired} % (diskMaxUsedSpaceRatio)",
    Rule.EXPIRED: "goes at {when} o'clock: expired (fileReservedTime, deleteWhen)",
    Rule.AGE: "stays until {until} (fileReservedTime); sooner if the disk is above {forced} %",
    Rule.BEHIND: "stays: expired, but behind a file that stays",
    Rule.NEWEST: "stays: the newest file is never deleted",
}


def _rule_text(one: Kept, rules: BrokerRules) -> str:
    return _GOING[one.rule].format(
        forced=rules.forced_percent,
        expired=rules.expired_percent,
        when=rules.delete_when,
        until=render.time_text(one.expires_ms),
    )


def _fields(one: Kept) -> dict[str, object]:
    return {
        "kind": "broker-retention-file",
        "file": one.name,
        "bytes": one.size_bytes,
        "changedTimestamp": one.changed_ms,
        "expiresTimestamp": one.expires_ms,
        "rule": one.rule.value,
    }


def _sum_fields(rules: BrokerRules, usage: DiskUsage) -> dict[str, object]:
    return {
        "kind": "broker-retention",
        "usedBytes": usage.used_bytes,
        "availableBytes": usage.available_bytes,
        "fileReservedTime": rules.reserved_hours,
        "deleteWhen": rules.delete_when,
        "diskMaxUsedSpaceRatio": rules.expired_percent,
        "diskSpaceCleanForciblyRatio": rules.forced_percent,
        "diskSpaceWarningLevelRatio": rules.refused_percent,
        "cleanFileForciblyEnable": rules.is_forcible,
        "refusesMessages": is_above(usage, rules.refused_percent),
    }

"""``seglog group``: the consumer groups in a store's ``subscriptionGroup.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from seglog.broker.tables import GROUP_ATTRIBUTES, alter_attributes, group_name_problem
from seglog.cli.read.reading import check_store, make_store, say_not_read
from seglog.cli.ui import changing, options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.clock import SystemClock
from seglog.doctor.groups import hold_tables, read_groups
from seglog.doctor.tables import OffsetTable
from seglog.errors import InvalidArgumentError, InvalidNameError, NotFoundError
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.remoting.topics import MAX_QUEUES
from seglog.storage.directory import RocksTable


def settings(function: options.CommandFunction) -> options.CommandFunction:
    """Passes attributes and other settings to the command, by field name; None leaves one unchanged."""
    for option in (
        click.option("--attributes", metavar="+NAME=VALUE,-NAME", help="Changes of attributes."),
        click.option(
            "--broadcast/--no-broadcast",
            "is_broadcast_enabled",
            default=None,
            help="Whether its clients may each get everything.",
        ),
        click.option(
            "--consume/--no-consume", "is_consume_enabled", default=None, help="Whether its clients may pull."
        ),
        click.option(
            "--retry-queues",
            "retry_queue_nums",
            type=click.IntRange(0, MAX_QUEUES),
            help="Queues of its retry topic; 0 sends nothing back.",
        ),
        click.option(
            "--retries",
            "retry_max_times",
            type=click.IntRange(-1),
            help="Deliveries after the first, before a message is dead.",
        ),
    ):
        function = option(function)
    return function


def _applied(
    group: SubscriptionGroup, attributes: str | None, fields: Mapping[str, Any], *, is_new: bool = False
) -> SubscriptionGroup:
    """Returns a group with changed settings; some settings can be made only for a new group."""
    given = {name: value for name, value in fields.items() if value is not None}
    altered = alter_attributes(None if is_new else group.attributes, attributes, GROUP_ATTRIBUTES)
    return replace(group, attributes=altered, **given)


@click.group(cls=CommandGroup)
def command() -> None:
    """List, create, alter and delete consumer groups of a store."""


@command.command(name="ls")
@options.store
@options.as_json
def list_(*, path: Path, as_json: bool) -> None:
    """List the groups of STORE, those too that have offsets and no settings."""
    check_store(path)
    table = {group.name: group for group in read_groups(options.reading(path), path, SystemClock()).all()}
    offsets = Counter(one.group for one in OffsetTable(options.reading(path), path).all())
    columns = ("group", "retries", "retry queues", "settings", "offsets")
    numbers = ("retries", "retry queues", "offsets")
    listing = render.Listing(columns, numbers=numbers, none="no groups", as_json=as_json)
    for name in sorted(table.keys() | offsets.keys()):
        group = table.get(name)
        fields = {"kind": "group", **_fields(name, group), "offsets": offsets[name]}
        settings = (None, None, "no settings") if group is None else _cells(group)
        listing.add(fields, name, *settings, offsets[name])
    listing.end()
    say_not_read(path, RocksTable.GROUPS, RocksTable.OFFSETS, as_json=as_json)


@command.command
@options.store
@click.argument("name", metavar="GROUP")
@settings
@options.as_json
def create(*, path: Path, name: str, attributes: str | None, as_json: bool, **fields: object) -> None:
    """Create GROUP in STORE, while no broker has STORE open.

    Creates the store if STORE is missing or empty.
    """
    problem = group_name_problem(name)
    if problem is not None:
        raise InvalidNameError(problem)
    group = _applied(SubscriptionGroup(name), attributes, fields, is_new=True)
    make_store(path)
    with hold_tables(options.writing(path), path, SystemClock()) as tables:
        if tables.groups.get(name) is not None:
            raise InvalidArgumentError(f"there is a group {name}", help="`seglog group alter` changes it")
        tables.groups.put(group)
    if as_json:
        render.emit({"kind": "group-created", **_fields(name, group)})
    else:
        render.say(f"{name} is created: {_settings_text(group)}")


@command.command
@options.store
@click.argument("name", metavar="GROUP")
@settings
@changing.changing
@options.as_json
def alter(
    *, path: Path, name: str, attributes: str | None, is_applied: bool, as_json: bool, **fields: object
) -> None:
    """Change settings of GROUP in STORE, while no broker has STORE open; other settings stay."""
    check_store(path)
    with hold_tables(changing.files_of(path, is_applied=is_applied), path, SystemClock()) as tables:
        known = tables.groups.get(name)
        if known is None:
            raise NotFoundError(f"there is no group {name}", help="`seglog group ls STORE` lists groups")
        group = _applied(known, attributes, fields)
        tables.groups.put(group)
    _show_altered(known, group, is_applied=is_applied, as_json=as_json)
    if not is_applied:
        changing.end_preview(as_json=as_json, is_needed=group != known)


@command.command
@options.store
@click.argument("name", metavar="GROUP")
@click.option("--offsets", "with_offsets", is_flag=True, help="Its offsets too.  [default: they stay]")
@changing.changing
@options.as_json
def delete(*, path: Path, name: str, with_offsets: bool, is_applied: bool, as_json: bool) -> None:
    """Delete GROUP from STORE, while no broker has STORE open.

    Deleted offsets stay in the history: `seglog offsets restore` brings them back.
    """
    check_store(path)
    with hold_tables(changing.files_of(path, is_applied=is_applied), path, SystemClock()) as tables:
        tables.groups.delete(name)
        forgotten = tables.offsets.delete(name, client_id="seglog group delete") if with_offsets else 0
    if as_json:
        fields = {"kind": "group-deleted", "group": name, "offsets": forgotten, "applied": is_applied}
        render.emit(fields)
    else:
        verb = "is" if is_applied else "would be"
        offsets = render.count_text(forgotten, "offset")
        render.say(f"{render.printable(name)} {verb} deleted, and {offsets} of it")
    if not is_applied:
        changing.end_preview(as_json=as_json)


def _fields(name: str, group: SubscriptionGroup | None) -> dict[str, object]:
    if group is None:
        return {"group": name, "hasSettings": False}
    return {
        "group": name,
        "hasSettings": True,
        "retryMaxTimes": group.retry_max_times,
        "retryQueueNums": group.retry_queue_nums,
        "consumeEnable": group.is_consume_enabled,
        "consumeBroadcastEnable": group.is_broadcast_enabled,
        "consumeMessageOrderly": group.is_orderly,
        "attributes": group.attributes,
    }


def _cells(group: SubscriptionGroup) -> tuple[int, int, str]:
    named = ["may not consume"] * (not group.is_consume_enabled)
    named += ["no broadcast"] * (not group.is_broadcast_enabled) + ["orderly"] * group.is_orderly
    named += [f"{name}={value}" for name, value in group.attributes.items()]
    return group.retry_max_times, group.retry_queue_nums, ", ".join(named)


def _show_altered(
    known: SubscriptionGroup, group: SubscriptionGroup, *, is_applied: bool, as_json: bool
) -> None:
    if as_json:
        render.emit({"kind": "group-altered", **_fields(group.name, group), "applied": is_applied})
    elif is_applied:
        render.say(f"{group.name} is altered: {_settings_text(group)}")
    else:
        render.facts({"group": group.name, "now": _settings_text(known), "would be": _settings_text(group)})


def _settings_text(group: SubscriptionGroup) -> str:
    times, queue_count, settings = _cells(group)
    retries = "1 retry" if times == 1 else f"{times} retries"
    queues = render.count_text(queue_count, "retry queue")
    return ", ".join(filter(None, (retries, queues, settings)))

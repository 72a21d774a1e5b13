"""``seglog topic``: the topics in a store's ``config/topics.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from seglog.broker.settings import BrokerConfig
from seglog.broker.tables import TopicConfig, alter_attributes, is_system_topic, topic_name_problem
from seglog.cli.read.reading import check_store, make_store, say_not_read
from seglog.cli.ui import changing, options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.clock import SystemClock
from seglog.doctor.groups import hold_tables, read_topics
from seglog.errors import InvalidArgumentError, InvalidNameError, NotFoundError
from seglog.remoting.topics import MAX_QUEUES, PERM_READ, PERM_WRITE, perm_text
from seglog.storage.directory import RocksTable
from seglog.storage.store import MessageStore

_PERMS: Final = {"r": PERM_READ, "w": PERM_WRITE, "rw": PERM_READ | PERM_WRITE}


def settings(function: options.CommandFunction) -> options.CommandFunction:
    """Passes the settings to the command; None leaves a setting unchanged."""
    for option in (
        click.option("--attributes", metavar="+NAME=VALUE,-NAME", help="Changes of attributes."),
        click.option("--order/--no-order", "is_order", default=None, help="Whether its order matters."),
        click.option("--perm", type=click.Choice(list(_PERMS)), help="What may be done."),
        click.option("--queues", type=click.IntRange(0, MAX_QUEUES), help="Queues to read and to write."),
    ):
        function = option(function)
    return function


def _applied(topic: TopicConfig, given: Mapping[str, Any], *, is_new: bool = False) -> TopicConfig:
    """Returns a topic with changed settings; some settings can be made only for a new topic."""
    queues, perm, is_order = given["queues"], given["perm"], given["is_order"]
    return replace(
        topic,
        read_queue_nums=topic.read_queue_nums if queues is None else queues,
        write_queue_nums=topic.write_queue_nums if queues is None else queues,
        perm=topic.perm if perm is None else _PERMS[perm],
        is_order=topic.is_order if is_order is None else is_order,
        attributes=alter_attributes(None if is_new else topic.attributes, given["attributes"]),
    )


@click.group(cls=CommandGroup)
def command() -> None:
    """List, create, alter and delete topics of a store."""


@command.command(name="ls")
@options.store
@options.as_json
def list_(*, path: Path, as_json: bool) -> None:
    """List the topics of STORE, those too that have messages and no settings."""
    check_store(path)
    table = {topic.name: topic for topic in read_topics(options.reading(path), path, SystemClock()).all()}
    messages = _messages(path)
    columns = ("topic", "read", "write", "perm", "attributes", "messages")
    numbers = ("read", "write", "messages")
    listing = render.Listing(columns, numbers=numbers, none="no topics", as_json=as_json)
    for name in sorted(table.keys() | messages.keys()):
        topic = table.get(name)
        fields = {"kind": "topic", **_fields(name, topic), "messages": messages[name]}
        settings = (None, None, None, "no settings") if topic is None else _cells(topic)
        listing.add(fields, name, *settings, messages[name])
    listing.end()
    say_not_read(path, RocksTable.TOPICS, as_json=as_json)


@command.command
@options.store
@click.argument("name", metavar="TOPIC")
@settings
@options.as_json
def create(*, path: Path, name: str, as_json: bool, **given: object) -> None:
    """Create TOPIC in STORE, while no broker has STORE open; with 8 queues by default.

    Creates the store if STORE is missing or empty.
    """
    problem = topic_name_problem(name)
    if problem is not None or is_system_topic(name, BrokerConfig()):
        raise InvalidNameError(problem or f"The topic[{name}] is conflict with system topic.")
    topic = _applied(TopicConfig(name, 8, 8), given, is_new=True)
    make_store(path)
    with hold_tables(options.writing(path), path, SystemClock()) as tables:
        if tables.topics.get(name) is not None:
            raise InvalidArgumentError(f"there is a topic {name}", help="`seglog topic alter` changes it")
        tables.topics.put(topic)
    if as_json:
        render.emit({"kind": "topic-created", **_fields(name, topic)})
    else:
        render.say(f"{name} is created: {_settings_text(topic)}")


@command.command
@options.store
@click.argument("name", metavar="TOPIC")
@settings
@changing.changing
@options.as_json
def alter(*, path: Path, name: str, is_applied: bool, as_json: bool, **given: object) -> None:
    """Change settings of TOPIC in STORE, while no broker has STORE open; other settings stay."""
    check_store(path)
    with hold_tables(changing.files_of(path, is_applied=is_applied), path, SystemClock()) as tables:
        known = tables.topics.get(name)
        if known is None:
            raise NotFoundError(f"there is no topic {name}", help="`seglog topic ls STORE` lists topics")
        topic = _applied(known, given)
        tables.topics.put(topic)
    _show_altered(known, topic, is_applied=is_applied, as_json=as_json)
    if not is_applied:
        changing.end_preview(as_json=as_json, is_needed=topic != known)


@command.command
@options.store
@click.argument("name", metavar="TOPIC")
@changing.changing
@options.as_json
def delete(*, path: Path, name: str, is_applied: bool, as_json: bool) -> None:
    """Delete TOPIC, which has no messages, from STORE, while no broker has STORE open.

    A topic with messages stays: the log would bring it back. Offsets of groups in it go.
    """
    check_store(path)
    with hold_tables(changing.files_of(path, is_applied=is_applied), path, SystemClock()) as tables:
        count = _messages(path)[name]
        if count:
            raise InvalidArgumentError(
                f"{name} has {render.count_text(count, 'message')}, and the log would bring it back",
                help="`seglog topic alter STORE TOPIC --perm r` stops sends to it",
            )
        tables.topics.delete(name)
        owners = {group for group, topic, _queue in tables.offsets.all() if topic == name}
        forgotten = sum(tables.offsets.delete(group, name, "seglog topic delete") for group in owners)
    if as_json:
        fields = {"kind": "topic-deleted", "topic": name, "offsets": forgotten, "applied": is_applied}
        render.emit(fields)
    else:
        verb = "is" if is_applied else "would be"
        offsets = render.count_text(forgotten, "offset")
        render.say(f"{render.printable(name)} {verb} deleted, and {offsets} in it")
    if not is_applied:
        changing.end_preview(as_json=as_json)


def _messages(path: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    with MessageStore.open(path, read_only=True, follow=options.followed(path)) as store:
        for queue in store.queues():
            counts[queue.topic] += queue.max_offset - queue.min_offset
    return counts


def _fields(name: str, topic: TopicConfig | None) -> dict[str, object]:
    if topic is None:
        return {"topic": name, "hasSettings": False}
    return {
        "topic": name,
        "hasSettings": True,
        "readQueues": topic.read_queue_nums,
        "writeQueues": topic.write_queue_nums,
        "perm": topic.perm,
        "order": topic.is_order,
        "attributes": topic.attributes,
    }


def _cells(topic: TopicConfig) -> tuple[int, int, str, str]:
    attributes = [f"{name}={value}" for name, value in topic.attributes.items()]
    named = ", ".join(["order"] * topic.is_order + attributes)
    return topic.read_queue_nums, topic.write_queue_nums, perm_text(topic.perm), named


def _show_altered(known: TopicConfig, topic: TopicConfig, *, is_applied: bool, as_json: bool) -> None:
    if as_json:
        render.emit({"kind": "topic-altered", **_fields(topic.name, topic), "applied": is_applied})
    elif is_applied:
        render.say(f"{topic.name} is altered: {_settings_text(topic)}")
    else:
        render.facts({"topic": topic.name, "now": _settings_text(known), "would be": _settings_text(topic)})


def _settings_text(topic: TopicConfig) -> str:
    to_read, to_write, perm, attributes = _cells(topic)
    queues = f"{render.count_text(to_read, 'queue')} to read, {to_write} to write"
    return ", ".join(filter(None, (queues, perm, attributes)))

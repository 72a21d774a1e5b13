"""``seglog dlq``: dead letters, and sending them again."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Final

import click

from seglog.cli.read.reading import check_store
from seglog.cli.ui import changing, messages, options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.clock import SystemClock
from seglog.doctor.groups import TO_ORIGIN, TO_RETRY, Letter, iter_letters, list_graves, resend
from seglog.doctor.message import FIELDS, Condition, parse_conditions
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.store import MessageStore

_NONE: Final = "no dead letters"

groups_option = click.option(
    "--group",
    "groups",
    metavar="GROUP",
    multiple=True,
    help="Of this group; may be repeated.  [default: all]",
)
where_option = click.option(
    "--where",
    "conditions",
    metavar="FIELD=VALUE",
    multiple=True,
    help=f"Only such; also != >= <= > < ~; FIELD is {', '.join(FIELDS)} or a property. May be repeated.",
)


@click.group(cls=CommandGroup)
def command() -> None:
    """Show dead letters, and send them again."""


@command.command(name="ls")
@options.store
@options.as_json
def list_(*, path: Path, as_json: bool) -> None:
    """List the groups of STORE that have dead letters."""
    check_store(path)
    columns = ("group", "letters", "sent again", "oldest", "newest")
    listing = render.Listing(columns, numbers=columns[1:3], none=_NONE, as_json=as_json)
    for grave in list_graves(options.reading(path), path):
        fields = {
            "kind": "dead-letters",
            "group": grave.group,
            "letters": grave.letters,
            "resent": grave.resent,
            "oldestTimestamp": grave.oldest_ms,
            "newestTimestamp": grave.newest_ms,
        }
        times = render.time_text(grave.oldest_ms), render.time_text(grave.newest_ms)
        listing.add(fields, grave.group, grave.letters, grave.resent, *times)
    listing.end()


@command.command
@options.store
@groups_option
@where_option
@click.option("--left", is_flag=True, help="Only those that were not sent again.")
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="The oldest N.")
@options.as_json
def show(
    *,
    path: Path,
    groups: tuple[str, ...],
    conditions: tuple[str, ...],
    left: bool,
    count: int,
    as_json: bool,
) -> None:
    """Show dead letters of STORE: where they were consumed from, how often, and what is in them."""
    check_store(path)
    wanted = parse_conditions(conditions)
    columns = ("group", "offset", "stored", "consumed from", "tries", "tag", "keys", "sent again", "body")
    listing = render.Listing(columns, numbers=("offset", "tries"), none=_NONE, as_json=as_json)
    with MessageStore.open(path, create=False, read_only=True, follow=options.followed(path)) as store:
        for letter in islice(iter_letters(store, groups, wanted, left_only=left), count):
            listing.add(_fields(letter), *_cells(letter))
    listing.end()


@command.command(name="resend")
@options.store
@groups_option
@where_option
@click.option(
    "--to",
    type=click.Choice([TO_RETRY, TO_ORIGIN]),
    default=TO_RETRY,
    show_default=True,
    help="To the group that gave them up, or to the topic that they came from, for all its groups.",
)
@click.option("--rate", type=click.IntRange(1), help="Letters a second at most.")
@changing.changing
@options.as_json
def resend_(
    *,
    path: Path,
    groups: tuple[str, ...],
    conditions: tuple[str, ...],
    to: str,
    rate: int | None,
    is_applied: bool,
    as_json: bool,
) -> None:
    """Send dead letters again, each once, while no broker has STORE open.

    There is a receipt for each, with its old and its new id. A letter with a receipt is not sent again, also
    if the command was stopped half-way. Up to where all letters were sent is committed in the store as the
    offset of group TOOLS_CONSUMER, so that RocketMQ's tools show what is left.
    """
    check_store(path)
    wanted = parse_conditions(conditions)
    if not is_applied:
        _preview(path, groups, wanted, to, as_json=as_json)
        return
    statuses: Counter[str] = Counter()
    for receipt in resend(options.writing(path), path, SystemClock(), groups, wanted, to=to, rate=rate or 0):
        statuses[receipt.status] += 1
        if as_json:
            render.emit(receipt.fields())
        else:
            place = messages.place_text(receipt.topic, receipt.queue_id, receipt.queue_offset)
            render.say(f"{receipt.status:<8}  {receipt.old_id} -> {receipt.new_id}  {place}")
    if not as_json:
        sent = statuses["sent"] + statuses["found"]
        before = f", {statuses['was-sent']} were sent before" if statuses["was-sent"] else ""
        render.say(f"{render.count_text(sent, 'dead letter')} sent again{before}")


def _preview(path: Path, groups: tuple[str, ...], wanted: Condition, to: str, *, as_json: bool) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    done: Counter[tuple[str, str]] = Counter()
    with MessageStore.open(path, create=False, read_only=True, follow=options.followed(path)) as store:
        for letter in iter_letters(store, groups, wanted):
            key = letter.group, RETRY_PREFIX + letter.group if to == TO_RETRY else letter.origin
            counts[key] += letter.receipt is None
            done[key] += letter.receipt is not None
    columns = ("group", "would go to", "letters", "sent before")
    listing = render.Listing(columns, numbers=columns[2:], none=_NONE, as_json=as_json)
    for group, topic in sorted(counts):
        count, before = counts[group, topic], done[group, topic]
        fields = {"group": group, "topic": topic, "letters": count, "sentBefore": before}
        listing.add({"kind": "resend", **fields, "applied": False}, group, topic, count, before)
    listing.end()
    changing.end_preview(as_json=as_json, is_needed=bool(counts.total()))


def _resent_id(letter: Letter) -> str | None:
    return None if letter.receipt is None else letter.receipt.new_id


def _fields(letter: Letter) -> dict[str, object]:
    return {
        **messages.message_fields(letter.message, "text"),
        "kind": "dead-letter",
        "group": letter.group,
        "origin": letter.origin,
        "resentId": _resent_id(letter),
    }


def _cells(letter: Letter) -> tuple[render.Cell, ...]:
    offset, stored, tag, keys, body = messages.message_cells(letter.message, "text")
    tries = letter.message.reconsume_times
    return letter.group, offset, stored, letter.origin, tries, tag, keys, _resent_id(letter), body

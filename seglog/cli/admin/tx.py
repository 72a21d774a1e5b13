"""``seglog tx``: transactions that their producers neither committed nor rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from seglog.cli.read.reading import check_store, say_not_read
from seglog.cli.ui import changing, messages, options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.clock import SystemClock
from seglog.doctor.groups import Ended, OpenHalf, end_transaction, open_transactions
from seglog.storage.directory import RocksTable
from seglog.storage.format.record import properties as props
from seglog.text import shell_text


@click.group(cls=CommandGroup)
def command() -> None:
    """End open transactions: half messages that a broker keeps asking about."""


@command.command(name="ls")
@options.store
@options.as_json
def list_(*, path: Path, as_json: bool) -> None:
    """List the half messages of STORE that were neither committed nor rolled back."""
    check_store(path)
    waiting = open_transactions(options.reading(path), path)
    if as_json:
        for half in waiting:
            render.emit({"kind": "half", **_fields(half)})
        say_not_read(path, RocksTable.OFFSETS, as_json=True)
        return
    say_not_read(path, RocksTable.OFFSETS, as_json=False)
    for half in waiting:
        render.say("  ".join(_facts(half)))
    count = render.count_text(len(waiting), "half message")
    render.say(f"{count} {'has' if len(waiting) == 1 else 'have'} no outcome")
    if waiting:
        first = waiting[0]
        words = f"{shell_text(path)} {first.message.message_id}"
        if len(waiting) > 1:
            render.say("the id that a line begins with says which one is ended; for the first line:")
        can_commit = bool(_target(first))
        if can_commit:
            render.say(f"next: seglog tx commit {words}")
        render.say(f"{'or:  ' if can_commit else 'next:'} seglog tx rollback {words}")


@command.command
@options.store
@click.argument("wanted", metavar="ID")
@changing.changing
@options.as_json
def commit(*, path: Path, wanted: str, is_applied: bool, as_json: bool) -> None:
    """Commit the half message of ID, as a broker does when its producer commits.

    ID is its message id, unique key or transaction id. No broker may have STORE open.
    """
    _end(path, wanted, commit=True, is_applied=is_applied, as_json=as_json)


@command.command
@options.store
@click.argument("wanted", metavar="ID")
@changing.changing
@options.as_json
def rollback(*, path: Path, wanted: str, is_applied: bool, as_json: bool) -> None:
    """Roll the half message of ID back; its record stays in the log.

    ID is its message id, unique key or transaction id. No broker may have STORE open.
    """
    _end(path, wanted, commit=False, is_applied=is_applied, as_json=as_json)


def _end(path: Path, wanted: str, *, commit: bool, is_applied: bool, as_json: bool) -> None:
    files = changing.files_of(path, is_applied=is_applied)
    done = end_transaction(files, path, SystemClock(), wanted, commit=commit)
    _show(done, is_applied=is_applied, as_json=as_json)
    if not is_applied:
        changing.end_preview(as_json=as_json)


def _show(done: Ended, *, is_applied: bool, as_json: bool) -> None:
    half = done.half
    is_commit = done.committed_offset is not None
    if as_json:
        render.emit(
            {
                "kind": "tx",
                "end": "commit" if is_commit else "rollback",
                **_fields(half),
                "committedOffset": done.committed_offset,
                "committedMsgId": done.committed_id or None,
                "wasCommitted": done.was_committed,
                "opOffset": done.op_offset,
                "applied": is_applied,
            }
        )
        return
    facts = {"half": f"{_place(half)}, id {half.message.message_id}"}
    if done.committed_offset is not None:
        again = " (it was there already)" if done.was_committed else ""
        place = messages.place_text(half.topic, half.queue_id, done.committed_offset)
        facts["committed"] = f"{place}, id {done.committed_id}{again}"
    else:
        facts["rolled back"] = f"nothing goes to {_target(half) or 'a topic: the record names no queue'}"
    facts["settled"] = f"by op record @{done.op_offset}: brokers ask no more"
    render.facts(facts)


def _fields(half: OpenHalf) -> dict[str, object]:
    return {
        "msgId": half.message.message_id,
        "uniqKey": half.message.properties.get(props.UNIQ_KEY),
        "queueId": half.message.queue_id,
        "queueOffset": half.message.queue_offset,
        "topic": half.topic,
        "realQueueId": half.queue_id,
        "producerGroup": half.producer_group,
        "checks": half.checks,
        "storeTimestamp": half.message.store_timestamp_ms,
    }


def _facts(half: OpenHalf) -> Iterator[str]:
    """Returns what a line of the list shows of a half message; what its record does not name is left out."""
    yield half.message.message_id
    if key := half.message.properties.get(props.UNIQ_KEY):
        yield render.printable(key)
    target = _target(half)
    yield f"for {target}" if target else "names no queue, so it can only be rolled back"
    if half.producer_group:
        yield f"from {render.printable(half.producer_group)}"
    yield f"stored {render.time_text(half.message.store_timestamp_ms)}"
    yield f"asked {render.count_text(half.checks, 'time')}"


def _target(half: OpenHalf) -> str:
    """Returns the queue of a half message after a commit; empty if its record does not name one."""
    return f"{render.printable(half.topic)}/{half.queue_id}" if half.topic and half.queue_id >= 0 else ""


def _place(half: OpenHalf) -> str:
    return messages.place_text(half.message.topic, half.message.queue_id, half.message.queue_offset)

"""``seglog tx``: transactions that their producers neither committed nor rolled back."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli.read.reading import check_store
from seglog.cli.ui import changing, messages, options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.clock import SystemClock
from seglog.doctor.groups import Ended, OpenHalf, end_transaction, open_transactions
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
        return
    for half in waiting:
        render.say(
            f"{half.message.message_id}  {_key(half)}  for {_target(half)}"
            f"  from {render.printable(half.producer_group) or 'no group'}"
            f"  stored {render.time_text(half.message.store_timestamp_ms)}"
            f"  asked {render.count_text(half.checks, 'time')}"
        )
    count = render.count_text(len(waiting), "half message")
    render.say(f"{count} {'has' if len(waiting) == 1 else 'have'} no outcome")
    if waiting:
        store = shell_text(path)
        render.say(f"next: seglog tx commit {store} ID, or seglog tx rollback {store} ID")


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
        facts["rolled back"] = f"nothing goes to {_target(half)}"
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


def _key(half: OpenHalf) -> str:
    return render.printable(half.message.properties.get(props.UNIQ_KEY, "no unique key"))


def _target(half: OpenHalf) -> str:
    return f"{render.printable(half.topic)}/{half.queue_id}" if half.topic else "nowhere"


def _place(half: OpenHalf) -> str:
    return messages.place_text(half.message.topic, half.message.queue_id, half.message.queue_offset)

"""Every command that takes a store, with arguments that reach into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from seglog.cli.main import commands


@dataclass(frozen=True, slots=True)
class Subject:
    """A store, and what is in it by name.

    Attributes:
        store: The store directory.
        aside: A folder of ours for what a command writes elsewhere.
        topic: A topic with messages in queue 0.
        group: A group that stands somewhere in it.
        key: Of one of its messages.
        message_id: Of the message that the group stands at.
        half_id: Of a half message.
    """

    store: Path
    aside: Path
    topic: str = "Topic0"
    group: str = "g"
    key: str = "k1"
    message_id: str = "7F0000010000000000000000000000000000"
    half_id: str = "7F0000010000000000000000000000000000"


Arguments = Callable[[Subject], list[object]]

READING: Final[dict[str, Arguments]] = {
    "info": lambda s: [s.store],
    "info --verify": lambda s: [s.store, "--verify"],
    "check": lambda s: [s.store],
    "report": lambda s: [s.store, "--html", s.aside / "report.html", "--force"],
    "get": lambda s: [s.store, s.topic],
    "query": lambda s: [s.store, s.topic, s.key],
    "query --id": lambda s: [s.store, "--id", s.message_id],
    "explain": lambda s: [s.store, s.key],
    "tail": lambda s: [s.store],
    "dump": lambda s: [s.store],
    "dump --log": lambda s: [s.store, "--log"],
    "inspect segments": lambda s: [s.store, "--verify"],
    "inspect queues": lambda s: [s.store],
    "inspect cq": lambda s: [s.store, s.topic, 0],
    "inspect log": lambda s: [s.store, "--at", 0],
    "inspect index": lambda s: [s.store, "--verify"],
    "inspect checkpoint": lambda s: [s.store],
    "inspect config": lambda s: [s.store],
    "inspect config NAME": lambda s: [s.store, "consumerOffset.json"],
    "inspect du": lambda s: [s.store],
    "verify": lambda s: [s.store],
    "check --records-only": lambda s: [s.store, "--records-only"],
    "repair": lambda s: [s.store],
    "undo --list": lambda s: [s.store, "--list"],
    "topic ls": lambda s: [s.store],
    "group ls": lambda s: [s.store],
    "offsets blame": lambda s: [s.store],
    "offsets diff": lambda s: [s.store, "2099-01-01"],
    "offsets lag": lambda s: [s.store],
    "offsets local": lambda s: [s.store, s.aside],
    "offsets log": lambda s: [s.store],
    "offsets show": lambda s: [s.store],
    "retention plan": lambda s: [s.store, "--older-than", "1h"],
    "retention broker": lambda s: [s.store],
    "retention unpark": lambda s: [s.store],
    "dlq ls": lambda s: [s.store],
    "dlq show": lambda s: [s.store],
    "dlq resend": lambda s: [s.store],
    "locks": lambda s: [s.store],
    "tx ls": lambda s: [s.store],
    "erase": lambda s: [s.store, s.key],
    "topic alter": lambda s: [s.store, "Topic0", "--perm", "r"],
    "topic delete": lambda s: [s.store, s.topic],
    "group alter": lambda s: [s.store, "g", "--retries", 3],
    "group delete": lambda s: [s.store, s.group],
    "offsets reset": lambda s: [s.store, s.group, s.topic, "--to", 0],
    "offsets restore": lambda s: [s.store, "--at", "2099-01-01"],
    "retention run": lambda s: [s.store, "--older-than", "1h"],
    "skip": lambda s: [s.store, s.group, s.topic, 0],
    "park": lambda s: [s.store, s.message_id, "--group", s.group],
    "tx commit": lambda s: [s.store, s.half_id],
    "tx rollback": lambda s: [s.store, s.half_id],
    "branch drop": lambda s: [s.store, "b"],
    "export": lambda s: [s.store, "--output", s.aside / "export.jsonl", "--force"],
    "backup": lambda s: [s.store, s.aside / "backup"],
    "branch list": lambda s: [s.store],
    "branch diff": lambda s: [s.store, "b"],
}
"""Commands that change nothing in the store."""

WRITING: Final[dict[str, Arguments]] = {
    "put": lambda s: [s.store, "Topic0", "hello"],
    "import": lambda s: [s.store, s.aside / "rows.jsonl"],
    "verify --seal": lambda s: [s.store, "--seal"],
    "seal": lambda s: [s.store],
    "repair --apply": lambda s: [s.store, "--apply", "--yes"],
    "undo": lambda s: [s.store],
    "undo --discard": lambda s: [s.store, 1, "--discard"],
    "topic create": lambda s: [s.store, "Fresh"],
    "topic alter --apply": lambda s: [s.store, "Topic0", "--perm", "r", "--apply"],
    "topic delete --apply": lambda s: [s.store, s.topic, "--apply"],
    "group create": lambda s: [s.store, "fresh"],
    "group alter --apply": lambda s: [s.store, "g", "--retries", 3, "--apply"],
    "group delete --apply": lambda s: [s.store, s.group, "--apply"],
    "offsets reset --apply": lambda s: [s.store, s.group, s.topic, "--to", 0, "--apply"],
    "offsets restore --apply": lambda s: [s.store, "--at", "2099-01-01", "--apply"],
    "retention run --apply": lambda s: [s.store, "--older-than", "1h", "--apply"],
    "retention unpark --apply": lambda s: [s.store, "--apply"],
    "dlq resend --apply": lambda s: [s.store, "--apply"],
    "skip --apply": lambda s: [s.store, s.group, s.topic, 0, "--apply"],
    "park --apply": lambda s: [s.store, s.message_id, "--group", s.group, "--apply"],
    "tx commit --apply": lambda s: [s.store, s.half_id, "--apply"],
    "tx rollback --apply": lambda s: [s.store, s.half_id, "--apply"],
    "erase --apply": lambda s: [s.store, s.key, "--apply", "--yes"],
    "branch create": lambda s: [s.store, "c"],
    "branch drop --apply": lambda s: [s.store, "b", "--apply"],
}
"""Commands that change the store."""

ALL: Final = {**READING, **WRITING}
NOT_HERE: Final = {
    "doctor": "prints what check, repair and undo print, in their order; it asks",
    "demo": "makes a store of its own",
    "bench": "works in a folder of its own, in one that need not be a store",
    "serve": "ends with a signal; of a store it shows the path that was typed",
    "clients": "asks a broker; tests/cli/admin/test_clients_and_top.py has one with such clients",
    "top": "as above",
    "inspect id": "takes no store",
    "version": "takes no store",
    "spark audit": "Spark has processes of its own; SECURITY.md says what holds for it",
    "spark reconcile": "as above",
    "spark compact": "as above",
    "spark retain": "as above",
    "spark archive": "as above",
    "spark restore": "as above",
    "spark sql": "as above",
}


def words_of(name: str, subject: Subject) -> list[str]:
    """Returns the words of a command line, without the program's name."""
    path = [word for word in name.split() if word != "NAME" and not word.startswith("--")]
    return [*path, *map(str, ALL[name](subject))]


def command_paths(group: click.Group = commands, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields every command that there is, such as ``offsets show``."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from command_paths(command, (*above, name))
        else:
            yield " ".join((*above, name))

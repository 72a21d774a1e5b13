"""``seglog put``: stores messages from an argument or from stdin.

Wrong arguments are refused before the store is opened, so that a bad name or a body that is too large does
not create a new store.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, Final

import click

from seglog.cli.ui import options, render
from seglog.errors import InvalidArgumentError, MessageIllegalError, SeglogError
from seglog.storage.format.names import check_queue_id, check_topic
from seglog.storage.format.record import encode_all_properties
from seglog.storage.format.record import properties as props
from seglog.storage.store import MessageStore
from seglog.storage.writes import BatchResult, Durability, NewMessage, PutResult

_MAX_BODY_BYTES: Final = 4 << 20
_READ_BYTES: Final = 1 << 18
_BATCH_MESSAGES: Final = 1000
_MAX_BATCH_BYTES: Final = 1 << 20
_RECORD_OVERHEAD_BYTES: Final = 256
_BATCH_PARTS: Final = 8
"""A batch must fit into one commit-log file: it takes at most this part of a file."""


@dataclass(frozen=True, slots=True)
class Target:
    """The queue for messages, and their common fields.

    Attributes:
        model: A message with all fields but the body.
        overhead_bytes: Most bytes that a record has in addition to its body.
    """

    topic: str
    queue_id: int
    model: NewMessage
    durability: Durability
    overhead_bytes: int


@click.command
@options.store
@click.argument("topic")
@click.argument("body", required=False)
@click.option("--queue", "queue_id", type=int, default=0, show_default=True, help="Queue of the topic.")
@click.option("--tags", help="Tag, by which readers filter.")
@click.option("--key", "keys", multiple=True, help="Key for look-ups, without blanks; may be repeated.")
@click.option(
    "--property", "pairs", metavar="NAME=VALUE", multiple=True, help="Property; may be given several times."
)
@click.option(
    "--sync", is_flag=True, help="Return once messages are on the disk, not only in the page cache."
)
@click.option("--lines", is_flag=True, help="Store each line of stdin as a message, in batches.")
@options.as_json
def command(
    *,
    path: Path,
    topic: str,
    body: str | None,
    queue_id: int,
    tags: str | None,
    keys: tuple[str, ...],
    pairs: tuple[str, ...],
    sync: bool,
    lines: bool,
    as_json: bool,
) -> None:
    """Store BODY as a message of TOPIC; without BODY, or with -, stdin is the body.

    Creates the store if STORE is missing or empty. With --json each message, or with --lines each batch,
    is acknowledged by a line of its own.
    """
    check_topic(topic)
    check_queue_id(queue_id)
    properties = parse_properties(pairs)
    overhead_bytes = check_size(properties, tags, keys)
    target = Target(
        topic,
        queue_id,
        NewMessage(b"", tags=tags, keys=keys or None, properties=properties),
        Durability.SYNC if sync else Durability.ASYNC,
        overhead_bytes + len(topic),
    )
    if not lines:
        _put_one(path, target, _body(body), as_json=as_json)
    elif body is None or body == "-":
        _put_lines(path, target, sys.stdin.buffer, as_json=as_json)
    else:
        raise InvalidArgumentError("--lines reads stdin, so there can be no BODY", help="leave BODY out")


def _body(argument: str | None) -> bytes:
    if argument is None or argument == "-":
        body = sys.stdin.buffer.read(_MAX_BODY_BYTES + 1)
    else:
        body = argument.encode("utf-8", "surrogateescape")
    if len(body) > _MAX_BODY_BYTES:
        raise MessageIllegalError(f"the body is larger than {_MAX_BODY_BYTES} bytes (4 MiB)")
    return body


def _put_one(path: Path, target: Target, body: bytes, *, as_json: bool) -> None:
    model = target.model
    with MessageStore.open(path, follow=options.followed(path)) as store:
        result = store.put(
            target.topic,
            body,
            queue_id=target.queue_id,
            tags=model.tags,
            keys=model.keys,
            properties=model.properties,
            durability=target.durability,
        )
    if as_json:
        render.emit(_fields(result))
    else:
        render.say(
            f"{result.topic}/{result.queue_id} offset {result.queue_offset}, {result.size_bytes} bytes at"
            f" {result.phy_offset}, {_reached(result.durability)}, id {result.message_id}"
        )


def parse_properties(pairs: Iterable[str]) -> dict[str, str]:
    """Returns the properties of ``NAME=VALUE`` arguments.

    Raises:
        InvalidArgumentError: An argument without ``=``, or a name that has an option or comes twice.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidArgumentError(f"--property {pair!r} has no '='", help="write --property NAME=VALUE")
        if name in (props.TAGS, props.KEYS):
            raise InvalidArgumentError(
                f"--property {name} sets the same as an option", help="use --tags and --key"
            )
        if name in found:
            raise InvalidArgumentError(
                f"--property {name} is given twice: {found[name]!r} and {value!r}", help="give each name once"
            )
        found[name] = value
    return found


def check_size(properties: Mapping[str, str], tags: str | None, keys: Sequence[str]) -> int:
    """Returns the most bytes that a record with such properties has in addition to body and topic.

    Raises:
        MessageIllegalError: No record can hold them.
        InvalidArgumentError: A key contains a blank.
    """
    raw, _code = encode_all_properties(tags or None, keys or None, properties)
    size = len(raw)
    if size > props.MAX_PROPERTIES_BYTES:
        raise MessageIllegalError(
            f"properties take {size} bytes, at most {props.MAX_PROPERTIES_BYTES}",
            help="move large values into the body",
        )
    return size + _RECORD_OVERHEAD_BYTES


def iter_lines(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Yields lines without their line ends, each time all lines that the stream has ready.

    Raises:
        MessageIllegalError: A line is longer than a body may be.
    """
    rest = b""
    while True:
        chunk = stream.read1(_READ_BYTES) if hasattr(stream, "read1") else stream.read(_READ_BYTES)
        if not chunk:
            break
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > _MAX_BODY_BYTES or any(len(line) > _MAX_BODY_BYTES for line in whole):
            raise MessageIllegalError(f"a line is longer than {_MAX_BODY_BYTES} bytes (4 MiB)")
        yield whole
    if rest:
        yield [rest]


def batches(lines: Iterable[bytes], overhead_bytes: int, max_bytes: int) -> Iterator[list[bytes]]:
    """Yields lines in groups that may be stored as one batch.

    Args:
        lines: Bodies.
        overhead_bytes: Most bytes that a record has in addition to its body.
        max_bytes: Most bytes of a batch; a longer line is a batch of its own.
    """
    group: list[bytes] = []
    held = 0
    for line in lines:
        size = len(line) + overhead_bytes
        if group and (len(group) == _BATCH_MESSAGES or held + size > max_bytes):
            yield group
            group, held = [], 0
        group.append(line)
        held += size
    if group:
        yield group


def _put_lines(path: Path, target: Target, stdin: IO[bytes], *, as_json: bool) -> None:
    count = 0
    ready = iter_lines(stdin)
    first = next(ready, [])  # before the store is opened, so that wrong input changes nothing
    with (
        MessageStore.open(path, follow=options.followed(path)) as store,
        render.progress("storing lines", unit="messages") as tell,
    ):
        max_bytes = min(_MAX_BATCH_BYTES, store.geometry.segment_size_bytes // _BATCH_PARTS)
        try:
            for lines in chain([first], ready):
                for group in batches(lines, target.overhead_bytes, max_bytes):
                    result = _put_group(store, target, group)
                    count += result.count
                    if as_json:
                        render.emit(_fields(result))
                        sys.stdout.flush()
                    tell(count, 0)
        except SeglogError:
            if count and not as_json:
                render.say(f"note: {render.count_text(count, 'line')} stored before the error", err=True)
            raise
    if not as_json:
        stored = render.count_text(count, "message")
        render.say(f"{target.topic}/{target.queue_id}: {stored}, {_reached(target.durability)}")


def _put_group(store: MessageStore, target: Target, group: list[bytes]) -> BatchResult:
    messages = [replace(target.model, body=line) for line in group]
    return store.put_batch(target.topic, messages, queue_id=target.queue_id, durability=target.durability)


def _fields(result: PutResult | BatchResult) -> dict[str, object]:
    return {
        "kind": "put",
        "topic": result.topic,
        "queueId": result.queue_id,
        "queueOffset": result.queue_offset,
        "count": result.count if isinstance(result, BatchResult) else 1,
        "commitLogOffset": result.phy_offset,
        "storeSize": result.size_bytes,
        "storeTimestamp": result.store_timestamp_ms,
        **({} if isinstance(result, BatchResult) else {"msgId": result.message_id}),
        "durability": result.durability.value,
    }


def _reached(durability: Durability) -> str:
    return "on the disk" if durability is Durability.SYNC else "in the page cache"

"""``seglog get``: reads messages of one queue, or of all queues of a topic, from a queue offset on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from seglog.cli.ui import messages, options, render
from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.names import check_queue_id, check_topic
from seglog.storage.format.record import Message
from seglog.storage.reads import GetResult, MessageFilter, make_filter
from seglog.storage.store import MessageStore
from seglog.text import shell_line

_STEP_MESSAGES: Final = 512
_TABLE_ROWS: Final = 1000
_GOES_ON: Final = frozenset(
    {
        GetStatus.FOUND,
        GetStatus.NO_MATCHED_MESSAGE,
        GetStatus.MESSAGE_WAS_REMOVING,
        GetStatus.OFFSET_FOUND_NULL,
    }
)


class QueueRead:
    """A read of one queue that ends when it has the requested number of messages, or at the queue's end.

    Args:
        store: The store.
        topic: Topic of the queue.
        queue_id: Queue id.
        queue_offset: First queue offset; None for the queue's first message.
        count: Most messages.
        wanted: Selects messages; None for all.

    Attributes:
        status: ``FOUND`` as soon as there was a message, else the status of the last step.
        next_offset: Queue offset at which to continue.
        found: Number of messages so far.
        lost: Queue offsets that were skipped because their messages are lost.
    """

    def __init__(
        self,
        store: MessageStore,
        topic: str,
        queue_id: int,
        queue_offset: int | None,
        count: int,
        wanted: MessageFilter | None,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self._store = store
        self._count = count
        self._wanted = wanted
        self.min_offset = store.min_offset(topic, queue_id)
        self.max_offset = store.max_offset(topic, queue_id)
        self.next_offset = self.min_offset if queue_offset is None else queue_offset
        self.status = GetStatus.NO_MESSAGE_IN_QUEUE
        self.found = 0
        self.lost: list[range] = []
        self.repairable: list[range] = []

    def __iter__(self) -> Iterator[Message]:
        """Yields the messages; the attributes are final afterwards."""
        while self.found < self._count:
            result = self._step(self._count - self.found)
            yield from result
            if result.status not in _GOES_ON or self.next_offset >= result.max_offset:
                return

    def _step(self, count: int) -> GetResult:
        result = self._store.get(
            self.topic, self.queue_id, self.next_offset, min(count, _STEP_MESSAGES), self._wanted
        )
        self.found += len(result)
        self.lost += result.lost
        self.repairable += result.repairable
        self.status = GetStatus.FOUND if self.found else result.status
        self.next_offset = result.next_offset
        self.min_offset, self.max_offset = result.min_offset, result.max_offset
        return result


@click.command
@options.store
@click.argument("topic")
@click.option("--queue", "queue_id", type=int, help="One queue of the topic.  [default: all of them]")
@click.option(
    "--offset", "queue_offset", type=int, help="Queue offset to start at.  [default: the first message]"
)
@click.option("--count", type=int, default=32, show_default=True, help="Messages at most, of each queue.")
@click.option("--filter", "expression", default="*", help="Tags, such as 'TagA || TagB'.")
@click.option(
    "--body",
    "form",
    type=click.Choice(messages.FORMS),
    default="text",
    show_default=True,
    help="Form of the body; raw prints nothing but bodies as they are, a newline between two.",
)
@options.as_json
def command(
    *,
    path: Path,
    topic: str,
    queue_id: int | None,
    queue_offset: int | None,
    count: int,
    expression: str,
    form: str,
    as_json: bool,
) -> None:
    """Read messages of TOPIC and say where to go on."""
    check_topic(topic)
    if queue_id is not None:
        check_queue_id(queue_id)
    check_range("--offset", queue_offset or 0)
    check_count("--count", count)
    if as_json and form == "raw":
        raise InvalidArgumentError("--body raw is no JSON", help="use --body base64 with --json")
    wanted = make_filter(expression)
    with MessageStore.open(path, create=False, read_only=True, follow=options.followed(path)) as store:
        queue_ids = [queue_id] if queue_id is not None else queues_of(store, topic)
        for number in queue_ids:
            read = QueueRead(store, topic, number, queue_offset, count, wanted)
            if as_json:
                _print_json(read, form)
            elif form == "raw":
                _print_raw(read)
            else:
                _print_table(read, form, path)


def check_range(option: str, value: int) -> None:
    """Refuses a negative number.

    Raises:
        InvalidArgumentError: The number is negative.
    """
    if value < 0:
        raise InvalidArgumentError(
            f"{option} {value} is negative",
            help="queue offsets and counts start at 0; `seglog info STORE` shows ranges",
        )


def check_count(option: str, value: int) -> None:
    """Refuses a count below 1.

    Raises:
        InvalidArgumentError: The count is below 1.
    """
    if value < 1:
        raise InvalidArgumentError(f"{option} {value} asks for nothing", help=f"give {option} 1 or more")


def queues_of(store: MessageStore, topic: str) -> list[int]:
    """Returns the queue ids of a topic in order.

    Raises:
        NotFoundError: The store has no such topic.
    """
    found = sorted(queue.queue_id for queue in store.queues() if queue.topic == topic)
    if not found:
        raise NotFoundError(f"the store has no topic {topic}")
    return found


def _print_json(read: QueueRead, form: str) -> None:
    for message in read:
        render.emit(messages.message_fields(message, form))
    render.emit(
        {
            "kind": "result",
            "topic": read.topic,
            "queueId": read.queue_id,
            "status": read.status.name,
            "count": read.found,
            "nextOffset": read.next_offset,
            "minOffset": read.min_offset,
            "maxOffset": read.max_offset,
            "lost": [[lost.start, lost.stop - 1] for lost in read.lost],
            "repairable": [[one.start, one.stop - 1] for one in read.repairable],
        }
    )


def _print_raw(read: QueueRead) -> None:
    for index, message in enumerate(read):
        click.echo(b"\n" + message.payload() if index else message.payload(), nl=False)
        messages.warn_of_body(message)


def _print_table(read: QueueRead, form: str, path: Path) -> None:
    rows: list[tuple[str, ...]] = []
    for message in read:
        rows.append(messages.message_cells(message, form))
        if len(rows) == _TABLE_ROWS:
            render.table(messages.COLUMNS, rows, numbers=("offset",))
            rows.clear()
    if rows:
        render.table(messages.COLUMNS, rows, numbers=("offset",))
    render.say(
        f"{read.topic}/{read.queue_id}: {read.status.name}, {render.count_text(read.found, 'message')},"
        f" next offset {read.next_offset} (the queue holds {read.min_offset}..{read.max_offset})"
    )
    for offsets, word, command in (
        (read.lost, "lost", ("info", "--verify")),
        (read.repairable, "repairable", ("repair",)),
    ):
        if offsets:
            ranges = ", ".join(f"{one.start}..{one.stop - 1}" for one in offsets)
            typed = shell_line(["seglog", *command, path])
            render.say(f"{read.topic}/{read.queue_id}: {word} on the way: {ranges}; see `{typed}`")

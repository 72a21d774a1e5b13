"""Open transactions: lists half messages without an outcome, and commits or rolls back one of them.

A commit writes the same as a broker's: a record in the message's own topic with the place of its half
message, then an op record that settles the half message, so that a broker no longer asks its producer. Both
are on the disk before the call returns. A crash in between leaves the message committed and not yet settled;
the next run finds the record and only settles.

Source: ``EndTransactionProcessor.java processRequest, endMessageTransaction``,
``TransactionalMessageBridge.java makeOpMessageInner``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from seglog.clock import Clock
from seglog.doctor.message.queue_messages import iter_from
from seglog.doctor.parts.transaction_check import named_offsets
from seglog.doctor.tables.offset_table import OffsetTable
from seglog.errors import InvalidArgumentError, InvalidNameError, NotFoundError
from seglog.storage.files import Files
from seglog.storage.format.names import HALF_TOPIC, OP_TOPIC, check_queue_id, check_topic
from seglog.storage.format.record import Message, tags_code
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.system_names import TRANSACTION_GROUP
from seglog.storage.store import MessageStore
from seglog.storage.writes import Durability
from seglog.text import shell_line, shell_text

_OP_TAG: Final = "d"
_TARGET: Final = (props.REAL_TOPIC, props.REAL_QUEUE_ID)
_DROPPED: Final = (*_TARGET, props.CRC32)
_PRODUCER_GROUP: Final = "PGROUP"


@dataclass(frozen=True, slots=True)
class OpenHalf:
    """A half message that was neither committed nor rolled back.

    Attributes:
        message: Its record in the half topic.
        topic: Its topic after a commit, empty if the record does not name it.
        queue_id: Its queue after a commit, -1 if the record does not name it.
        producer_group: The producer group that a broker would ask.
        checks: Number of times that a broker asked.
    """

    message: Message
    topic: str
    queue_id: int
    producer_group: str
    checks: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a commit or rollback.

    Attributes:
        half: The half message.
        committed_offset: Queue offset of the message in its topic; None if it was rolled back.
        committed_id: Its message id, empty if it was rolled back.
        was_committed: Whether the message existed already, from a run that did not complete.
        op_offset: Queue offset of the op record.
    """

    half: OpenHalf
    committed_offset: int | None
    committed_id: str
    was_committed: bool
    op_offset: int


def open_transactions(files: Files, root: Path) -> list[OpenHalf]:
    """Returns the half messages without an outcome, by queue and offset; also beside a broker.

    Raises:
        NotFoundError: There is no store.
    """
    with MessageStore.open(root, create=False, read_only=True, files=files) as store:
        return list(_open_in(store, OffsetTable(files, root)))


def count_open_transactions(store: MessageStore) -> int:
    """Returns the number of half messages without an outcome in an open store.

    Raises:
        ConfigError: Neither the table of offsets nor its backup can be read.
    """
    return sum(1 for _ in _open_in(store, OffsetTable(store.files, store.path)))


def end_transaction(files: Files, root: Path, clock: Clock, wanted: str, *, commit: bool) -> Ended:
    """Commits one half message, or rolls it back.

    Args:
        files: Access to the store.
        root: The store directory.
        clock: Time stamps for the records.
        wanted: Message id, unique key or transaction id of the half message.
        commit: Whether to commit; otherwise the half message is rolled back.

    Raises:
        NotFoundError: No half message of that name is open.
        InvalidArgumentError: Several are, or the record does not name its topic.
        StoreLockedError: A broker or another process has the store open.
        FullError: No space; the half message is still open.
    """
    with MessageStore.open(root, create=False, files=files, clock=clock) as store:
        half = _choose(root, list(_open_in(store, OffsetTable(files, root))), wanted)
        committed: Message | None = None
        committed_offset, committed_id = None, ""
        if commit:
            committed = _committed(store, half)
            committed_offset, committed_id = (
                (committed.queue_offset, committed.message_id)
                if committed is not None
                else _commit(store, half)
            )
        op = store.append(
            OP_TOPIC,
            half.message.queue_id,
            f"{half.message.queue_offset},".encode(),
            props.encode_properties({props.WAIT: "true", props.TAGS: _OP_TAG}),
            tags_code(_OP_TAG),
            durability=Durability.SYNC,
        )
    return Ended(half, committed_offset, committed_id, committed is not None, op.queue_offset)


def _open_in(store: MessageStore, offsets: OffsetTable) -> Iterator[OpenHalf]:
    for queue in store.queues():
        if queue.topic != HALF_TOPIC:
            continue
        first_op = offsets.of(TRANSACTION_GROUP, OP_TOPIC, queue.queue_id) or 0
        settled = {
            offset
            for op in iter_from(store, OP_TOPIC, queue.queue_id, first_op)
            for offset in named_offsets(op.body)
        }
        first = offsets.of(TRANSACTION_GROUP, HALF_TOPIC, queue.queue_id) or 0
        for message in iter_from(store, HALF_TOPIC, queue.queue_id, first):
            if message.queue_offset not in settled:
                yield _half_of(message)


def _half_of(message: Message) -> OpenHalf:
    given = message.properties
    return OpenHalf(
        message,
        given.get(props.REAL_TOPIC, ""),
        _number(given.get(props.REAL_QUEUE_ID), -1),
        given.get(_PRODUCER_GROUP, ""),
        _number(given.get(props.TRANSACTION_CHECK_TIMES), 0),
    )


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else default


def _choose(root: Path, waiting: list[OpenHalf], wanted: str) -> OpenHalf:
    named = [half for half in waiting if wanted in _names_of(half.message)]
    if not named:
        raise NotFoundError(
            f"no half message {wanted} waits for its end",
            help=f"`seglog tx ls {shell_text(root)}` lists those that do;"
            f" `{shell_line(['seglog', 'explain', root, wanted])}` shows the life of this one",
        )
    if len(named) > 1:
        places = ", ".join(f"@{half.message.queue_offset} {half.message.message_id}" for half in named)
        raise InvalidArgumentError(
            f"{wanted} names several half messages: {places}", help="give a message id"
        )
    return named[0]


def _names_of(message: Message) -> tuple[str | None, ...]:
    given = message.properties
    return message.message_id, given.get(props.UNIQ_KEY), given.get("__transactionId__")


def _committed(store: MessageStore, half: OpenHalf) -> Message | None:
    """Returns the record that an earlier run or a broker committed for a half message, None without one."""
    _check_target(half)
    queues = {(queue.topic, queue.queue_id) for queue in store.queues()}
    if (half.topic, half.queue_id) not in queues:
        return None
    view = store.queue(half.topic, half.queue_id)
    # It is after its half message in the log; times may have been set back, so places are compared.
    places = view.units()["phy_offset"]
    start = view.min_offset + int(np.searchsorted(places, half.message.phy_offset))
    del places  # shares memory with the store
    for message in iter_from(store, half.topic, half.queue_id, start):
        is_commit = message.sys_flag & flags.TRANSACTION_MASK == flags.TRANSACTION_COMMIT
        if is_commit and message.prepared_transaction_offset == half.message.phy_offset:
            return message
    return None


def _commit(store: MessageStore, half: OpenHalf) -> tuple[int, str]:
    message = half.message
    kept = {name: value for name, value in message.properties.items() if name not in _DROPPED}
    put = store.append(
        half.topic,
        half.queue_id,
        message.body,
        props.encode_properties(kept),
        tags_code(message.tags or ""),
        sys_flag=(message.sys_flag & ~flags.TRANSACTION_MASK) | flags.TRANSACTION_COMMIT,
        flag=message.flag,
        born_timestamp_ms=message.born_timestamp_ms,
        born_host=message.born_host,
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.phy_offset,
        durability=Durability.SYNC,
    )
    return put.queue_offset, put.message_id


def _check_target(half: OpenHalf) -> None:
    try:
        check_topic(half.topic)
        check_queue_id(half.queue_id)
    except InvalidNameError as error:
        raise InvalidArgumentError(
            f"half message {half.message.message_id} does not say where it belongs"
            f" (REAL_TOPIC {half.topic!r}, REAL_QID {half.queue_id})",
            help="it can only be rolled back",
        ) from error

"""Errors of consumers: wrong calls, refused commits, bodies that cannot be decoded."""

from __future__ import annotations

from typing import NamedTuple

from seglog.errors.tree import SeglogError


class ConsumerError(SeglogError):
    """A consumer was used in a way or at a time that it does not allow."""

    exit_code = 40
    help = "see the documentation of the consumer for what may be called when"


class FencedError(ConsumerError):
    """The progress of a consumer is not committed: another member has, or may have, the queue since."""

    exit_code = 53
    help = (
        "do not commit it again: the messages come again to the member that has the queue; where each must"
        " have an effect once, keep its unique_key with the effect"
    )


class Uncommitted(NamedTuple):
    """A queue in which a commit was refused, the queue offset of the commit, and the error."""

    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    error: SeglogError


class CommitError(ConsumerError):
    """The progress of a consumer is not committed in some of its queues: their brokers refused the commit.

    Attributes:
        failures: The queues, with the error of each; all others are committed.
        is_retryable: Whether each of these errors may pass, or means that another member has the queue.
    """

    exit_code = 54
    help = "commit again if is_retryable; what is not committed comes again to the group after a restart"

    def __init__(self, group: str, failures: tuple[Uncommitted, ...]) -> None:
        shown = "; ".join(
            f"queue {one.queue_id} of {one.topic} at {one.broker_name} up to {one.queue_offset}: {one.error}"
            for one in failures
        )
        super().__init__(f"group {group} is not committed everywhere: {shown}")
        self.failures = failures
        self.is_retryable = all(
            one.error.is_retryable or isinstance(one.error, FencedError) for one in failures
        )


class BodyError(SeglogError):
    """A message body cannot be returned as its producer sent it: it is damaged, or inflates too far."""

    exit_code = 46
    help = "read the body as it is stored, or send the message to the dead letters; those behind it are whole"


class CodecMissingError(BodyError):
    """The body of a message is compressed by a codec that is not installed here."""

    exit_code = 47
    help = "pip install 'seglog[compression]'"


class PayloadError(BodyError):
    """The ``decode`` function of a consumer does not accept the body of a message."""

    exit_code = 55
    help = "mend decode, or what sends such messages; with a listener it comes again, as one that failed"

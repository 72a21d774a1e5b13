"""Gives messages of a queue to a listener that takes batches or a context; runs in its pool.

Source: ``ConsumeMessageConcurrentlyService.java processConsumeResult``,
``ConsumeMessageOrderlyService.java processConsumeResult``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seglog.consumer.contexts import ConsumeConcurrentlyContext, ConsumeOrderlyContext, Context
from seglog.consumer.hands.failing import note_failure
from seglog.consumer.hands.form import Form
from seglog.consumer.hands.handed import Handed
from seglog.consumer.hands.one_by_one import is_gone
from seglog.consumer.listener import AGAIN, ENDS, SAID, Consume, end_of
from seglog.errors import BodyError, InvalidArgumentError
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message


async def hand_batches(
    form: Form, handed: Handed, queue: MessageQueue, may_go_on: Callable[[], bool]
) -> None:
    """Calls the listener with one batch after another, as long as it may.

    In order it stops at the first batch that fails or is rolled back.

    Args:
        form: Of the listener.
        handed: The messages; their results are stored there.
        queue: That they were pulled from.
        may_go_on: Asked before each call.
    """
    clock = form.clock
    began_ms = clock.monotonic_ms()
    hands = _Hands(form, handed, queue)
    while may_go_on() and (waiting := handed.next_batch(form.batch_size, is_of_one_topic=form.is_by_topic)):
        handed.is_begun = True
        handed.began_ms = clock.monotonic_ms()
        if not await hands.give(waiting) and form.is_in_order:
            break
        if handed.error is not None:
            break
    handed.is_ended = True
    handed.spent_ms = clock.monotonic_ms() - began_ms


@dataclass(frozen=True, slots=True)
class _Hands:
    """Gives batches one after another.

    Attributes:
        form: Of the listener.
        handed: Where it is put what became of them.
        queue: That they were pulled from.
    """

    form: Form
    handed: Handed
    queue: MessageQueue

    async def give(self, waiting: Sequence[Message]) -> bool:
        """Gives a batch; returns whether all of it is done."""
        form, handed = self.form, self.handed
        batch, given, has_failed = self._readable(waiting)
        if has_failed:  # no context says whether its end is one of a transaction
            handed.waits_for_commit = bool(handed.open)
        if not given:
            return not has_failed
        context, has_raised = form.context(self.queue), False
        traced = () if form.traces is None else form.traces.before(given)
        began_ms = form.clock.monotonic_ms()
        try:
            result = form.call(given, context)
            if form.is_async and not isinstance(result, SAID):
                result = await result  # type: ignore[misc]  # what an async listener returns
            said = end_of(result, is_in_order=form.is_in_order)
            context.check()
        except Exception as error:  # noqa: BLE001 - the application's code: on any error its messages come again
            note_failure(form, handed, self.queue, batch[0], error, was_given=True, others=len(batch) - 1)
            has_raised = True
            said, context = Consume.RECONSUME_LATER, self._checked(context)
        except BaseException as error:  # noqa: BLE001 - bookkeeping comes first; the pool knows what it is
            handed.error, has_raised = error, True
            said, context = Consume.RECONSUME_LATER, self._checked(context)
        if form.traces is not None and traced:
            took_ms = form.clock.monotonic_ms() - began_ms
            form.traces.after(traced, len(given), took_ms, said, has_raised=has_raised)
        self._end(batch, said, context)
        return not (has_failed or handed.is_rolled_back or said in AGAIN)

    def _readable(self, waiting: Sequence[Message]) -> tuple[list[Message], list[Message], bool]:
        """Returns messages as pulled and as given, and whether one of them cannot be given.

        In order a message that cannot be given fails after those before it, and nothing overtakes it.
        """
        form, handed = self.form, self.handed
        batch: list[Message] = []
        given: list[Message] = []
        has_failed = False
        for at, message in enumerate(waiting):
            if is_gone(form.clock, message):
                handed.expired += 1
                handed.done.append(message)
                continue
            try:
                given.append(form.read(message))
            except BodyError as error:
                if form.is_in_order and batch:
                    handed.waiting.extendleft(reversed(waiting[at:]))
                    return batch, given, False
                note_failure(form, handed, self.queue, message, error, was_given=False)
                handed.failed.append(message)
                has_failed = True
                if form.is_in_order:
                    handed.waiting.extendleft(reversed(waiting[at + 1 :]))
                    break
            except BaseException as error:  # noqa: BLE001 - as of a listener: bookkeeping comes first
                handed.error = error
                handed.failed.append(message)
                has_failed = True
                handed.waiting.extendleft(reversed(waiting[at + 1 :]))
                break
            else:
                batch.append(message)
        return batch, given, has_failed

    def _checked(self, context: Context) -> Context:
        """Returns the context to use after a failure: a new one if the listener set an invalid value."""
        try:
            context.check()
        except InvalidArgumentError:
            return self.form.context(self.queue)
        return context

    def _end(self, batch: Sequence[Message], said: Consume, context: Context) -> None:
        if isinstance(context, ConsumeConcurrentlyContext):
            self._end_side_by_side(batch, said, context)
        else:
            self._end_in_order(batch, said, context)

    def _end_side_by_side(
        self, batch: Sequence[Message], said: Consume, context: ConsumeConcurrentlyContext
    ) -> None:
        handed = self.handed
        done = 0 if said in AGAIN else min(context.ack_index, len(batch) - 1) + 1
        handed.done.extend(batch[:done])
        handed.failed.extend(batch[done:])
        if context.delay_level:
            failed = (message.queue_offset for message in batch[done:])
            handed.delay_levels.update(dict.fromkeys(failed, context.delay_level))

    def _end_in_order(self, batch: Sequence[Message], said: Consume, context: ConsumeOrderlyContext) -> None:
        handed = self.handed
        if said in AGAIN:
            handed.failed.extend(batch)
            handed.waits_for_commit = not context.auto_commit
            handed.suspend_ms = context.suspend_ms
        elif said is Consume.ROLLBACK and not context.auto_commit:
            handed.failed.extend((*handed.open, *batch))
            handed.open.clear()
            handed.is_rolled_back = True
            handed.suspend_ms = context.suspend_ms
        elif context.auto_commit or said is Consume.COMMIT:
            if context.auto_commit and said in ENDS:
                handed.acks = said
            handed.done.extend((*handed.open, *batch))
            handed.open.clear()
        else:
            handed.open.extend(batch)

"""Decides which failed sends are tried again, how often, and after which pause.

A broker that is down or busy has stored nothing: a send waits for it as long as its timeout allows. After any
other refusal that may pass, and after a lost answer, it is tried twice more, as in Java.

Source: ``DefaultMQProducerImpl.java sendDefaultImpl``, ``DefaultMQProducer.java retryResponseCodes``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Final

from seglog.client.links import Troubles
from seglog.errors import (
    AskLimitError,
    AskTimeoutError,
    CannotConnectError,
    ConnectionEndedError,
    RemoteProtocolError,
    SeglogError,
)
from seglog.logs import logger
from seglog.producer.pauses import Pauses
from seglog.remoting.codes import ResponseCode
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import properties as props
from seglog.storage.format.system_names import NOT_ALLOWED_TO_SEND

RETRIES: Final = 2
"""``retryTimesWhenSendFailed``."""
RETRIED: Final = frozenset(
    (
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    )
)
"""``retryResponseCodes``, and the answer of a stopping broker."""
AWAY: Final = frozenset((ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY))
"""Answers of a broker that did not process the request, but may do so soon."""
WAIT_MS: Final = 3_000
"""Longest wait of a send without a timeout: ``sendMsgTimeout``."""
FIRST_PAUSE_MS: Final = 20
LONGEST_PAUSE_MS: Final = 200
_LEAST_PAUSE_MS: Final = 5
_TRANSACTION: Final = "TRAN_MSG"
_TIMER_PREFIX: Final = "TIMER_"
_log = logger(__name__)


class Tries:
    """The state of a send after failures.

    Args:
        topic: Where the message is to go.
        raw: Its properties.
        now_ms: Monotonic time.
        began_ms: When the send began, before its first attempt.
        end_ms: Until when the call may take; None for a call without a time of its own, which waits for
            ``WAIT_MS`` from now on.
        pauses: Waits between attempts.
        troubles: Limits how often retries are logged.
    """

    def __init__(
        self,
        topic: str,
        raw: bytes,
        now_ms: Callable[[], float],
        began_ms: float,
        end_ms: float | None,
        pauses: Pauses,
        troubles: Troubles,
    ) -> None:
        self._topic = topic
        self._raw = raw
        self._now_ms = now_ms
        self._began_ms = began_ms
        self._end_ms = end_ms
        self._wait_end_ms = now_ms() + WAIT_MS if end_ms is None else end_ms
        self._pauses = pauses
        self._troubles = troubles
        self._can_wait = pauses.can_wait()
        self._left = RETRIES
        self._pause_ms = FIRST_PAUSE_MS
        self._tried: set[str] = set()
        self._unknown: SeglogError | None = None
        self._attempts = 0

    def elsewhere(self, queues: Sequence[MessageQueue]) -> Sequence[MessageQueue]:
        """Returns the queues of brokers that have not just failed; all queues if there are none."""
        return tuple(queue for queue in queues if queue.broker_name not in self._tried) or queues

    async def wait_after(
        self, error: SeglogError, broker_name: str | None, queues: Sequence[MessageQueue]
    ) -> None:
        """Waits until the next attempt.

        Args:
            error: The error of the last attempt.
            broker_name: The broker that was asked; None for a name server, which was asked for the route.
            queues: Other queues that the message may be sent to; none if its queue was chosen.

        Raises:
            SeglogError: There is no next attempt: this error, or an earlier one after which the message may
                be stored. After several attempts it has their number and duration.
        """
        self._attempts += 1
        if broker_name is not None and isinstance(error, AskTimeoutError | ConnectionEndedError):
            self._unknown = error
        pause_ms = self._pause(error, broker_name, queues)
        if pause_ms is not None:
            if pause_ms:
                await self._pauses.wait(pause_ms)
            if not self._is_late():
                return
        if self._unknown is None or self._unknown is error:
            waited_ms = self._now_ms() - self._began_ms
            if isinstance(error, CannotConnectError) and self._pause_ms > FIRST_PAUSE_MS:
                what = f"{error}; the send waited {waited_ms / 1000:.1f} s for it, and is not tried again"
                raise CannotConnectError(what, address=error.address) from error
            raise self._of_all(error)
        raise self._of_all(self._unknown) from error

    def _of_all(self, error: SeglogError) -> SeglogError:
        """Returns an error with the number of attempts and their total duration."""
        if self._attempts == 1:
            return error
        found = copy(error)  # other sends over the same connection may share it
        took_s = (self._now_ms() - self._began_ms) / 1_000
        found.args = (f"{error}; the send gave up after {self._attempts} attempts in {took_s:.1f} s",)
        return found

    def _pause(
        self, error: SeglogError, broker_name: str | None, queues: Sequence[MessageQueue]
    ) -> float | None:
        """Returns the pause in ms before the next attempt, None if there is none."""
        if broker_name is not None:
            self._tried.add(broker_name)
        is_elsewhere = any(queue.broker_name not in self._tried for queue in queues)
        if self._is_late() or not self._may_pass(error, broker_name, is_elsewhere=is_elsewhere):
            return None
        is_away = _is_away(error) and self._can_wait
        if not is_away:
            if not self._left:
                return None
            self._left -= 1
        pause_ms = 0.0
        if not is_elsewhere:
            self._tried = set() if broker_name is None else {broker_name}
            if self._can_wait and (is_away or _takes_time(error)):
                left_ms = self._wait_end_ms - self._now_ms()
                if left_ms < 2 * _LEAST_PAUSE_MS:
                    return None
                pause_ms = min(self._pause_ms, left_ms / 2)
                self._pause_ms = min(2 * self._pause_ms, LONGEST_PAUSE_MS)
        self._say(error)
        return pause_ms

    def _say(self, error: SeglogError) -> None:
        """Logs that the message is sent again; for many similar failures, only now and then."""
        if error is self._unknown:
            level = self._troubles.seldom(f"sends to {self._topic} without an answer")
            _log.log(
                level, "a message of topic %s is sent again, and may be stored twice: %s", self._topic, error
            )
        else:
            level = self._troubles.level(f"sends to {self._topic}", error)
            _log.log(level, "a message of topic %s is sent again: %s", self._topic, error)

    def _is_late(self) -> bool:
        return self._end_ms is not None and self._now_ms() >= self._end_ms

    def _may_pass(self, error: SeglogError, broker_name: str | None, *, is_elsewhere: bool) -> bool:
        if broker_name is None:
            return _is_away(error) or isinstance(error, ConnectionEndedError)
        if isinstance(error, RemoteProtocolError) and error.code == ResponseCode.NO_PERMISSION:
            return is_elsewhere  # this broker will refuse again, but another one may take writes
        return may_pass(error, self._topic, self._raw)


def may_pass(error: SeglogError, topic: str, raw: bytes) -> bool:
    """Returns whether a send with this error is tried again.

    Brokers also use codes that may pass for permanent refusals, after which Java's client tries again in
    vain: sends to a system topic, and messages whose properties ask for a missing feature.

    Args:
        error: The error.
        topic: Where it was to go.
        raw: Its properties.
    """
    if not isinstance(error, RemoteProtocolError):
        return error.is_retryable
    return error.code in RETRIED and not (topic in NOT_ALLOWED_TO_SEND or _asks_for_more(raw))


def _is_away(error: SeglogError) -> bool:
    """Returns whether the request was not carried out, but may be soon: a retry cannot store it twice."""
    if isinstance(error, RemoteProtocolError):
        return error.code in AWAY
    return isinstance(error, CannotConnectError | AskLimitError)


def _takes_time(error: SeglogError) -> bool:
    """Returns whether a retry should wait for a moment after this error."""
    if isinstance(error, RemoteProtocolError):
        return error.code == ResponseCode.SERVICE_NOT_AVAILABLE
    return error.is_retryable and not isinstance(error, AskTimeoutError)


def _asks_for_more(raw: bytes) -> bool:
    found = props.decode_properties(raw)
    if _TRANSACTION in found or any(name.startswith(_TIMER_PREFIX) for name in found):
        return True
    try:
        int(found.get(props.DELAY, 0))
    except ValueError:
        return True
    return False

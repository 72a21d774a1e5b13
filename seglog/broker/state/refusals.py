"""Turns errors into answers to clients, and logs some of them.

A seglog error has a response code, which the client gets; errors caused by the broker's machine are logged
too, for the operator. Any other exception is a bug of seglog: one line is logged, and the traceback at DEBUG.
"""

from __future__ import annotations

from seglog.broker.state.unsupported import KNOWN_RELEASE, UNSUPPORTED
from seglog.complaints import Complaints
from seglog.errors import FullError, SeglogError, StoreFailedError
from seglog.logs import logger
from seglog.remoting.codes import SENDS, ResponseCode
from seglog.remoting.command import Response, refuse

_log = logger(__name__)


def fenced(group: str, topic: str, queue_id: int) -> Response:
    """Returns the answer to a commit of a member that another member of the group has followed in a queue."""
    what = f"another member of group {group} has begun in queue {queue_id} of topic {topic} since"
    return refuse(ResponseCode.ILLEGAL_OPERATION, what)


class Refusals:
    """Turns errors into answers. Any thread may call it."""

    def __init__(self) -> None:
        self._complaints = Complaints(_log)
        self.failed_puts = 0
        """Number of sends that the store refused: there was no space, or it had failed."""

    def of(self, code: int, error: Exception) -> Response:
        """Returns the answer to a request that ended with an error.

        Args:
            code: The request code.
            error: The exception.
        """
        if isinstance(error, SeglogError):
            self.failed_puts += code in SENDS and isinstance(error, FullError | StoreFailedError)
            return self.of_error(error)
        _log.error("a request of code %s failed: %r", code, error)
        _log.debug("the same", exc_info=error)
        return refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")

    def not_supported(self, code: int) -> Response:
        """Returns the answer to a request code without a handler."""
        name, reason = UNSUPPORTED.get(
            code, ("", f"the requests that are known here are those of RocketMQ {KNOWN_RELEASE}")
        )
        kind = name or "unknown code"
        self._complaints.tell(kind, f"requests of code {code} ({kind}) are refused: {reason}")
        return refuse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {code} not supported")

    def of_error(self, error: SeglogError) -> Response:
        """Returns the answer for a seglog error."""
        if isinstance(error, FullError | StoreFailedError):
            self._complaints.tell(type(error).__name__, f"requests are refused: {error}; {error.help}")
        return refuse(ResponseCode(error.response_code), str(error))

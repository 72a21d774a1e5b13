"""How a client answers what a broker asks it, over any link."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from seglog.errors import SeglogError
from seglog.logs import logger
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.later import CancelledError, Deferred
from seglog.text import text_of

T = TypeVar("T")
OnNotice: TypeAlias = Callable[[Request], None]
"""Called with what a broker sends unasked, such as NOTIFY_CONSUMER_IDS_CHANGED; it returns at once."""
OnRequest: TypeAlias = Callable[[Request], Response | Deferred[Response]]
"""Called with what a broker asks a client; it returns the answer, or what that will come by."""
_log = logger(__name__)


def unsupported(request: Request) -> Response:
    """Answers as a client of RocketMQ does that is asked for what it does not know."""
    code = int(request.code)
    return refuse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {code} not supported")


def answer_of(request: Request, make: Callable[[], T]) -> T | Response:
    """Returns what a client answers; what it raises is logged, unless it says a code, and is a refusal.

    So is what is no answer, nor what one comes by.
    """
    try:
        return _checked(make())
    except SeglogError as error:
        return refuse(ResponseCode(error.response_code), str(error))
    except CancelledError:
        return refuse(ResponseCode.SYSTEM_ERROR, "the client has given up answering")
    except Exception as error:  # noqa: BLE001 - the broker is answered, and its thread goes on
        _log.exception("a client failed at a request of code %s", request.code)
        return refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {text_of(error)}")


def _checked(made: T) -> T:
    """Returns what is an answer, or what one comes by; else it would be found only where it is written."""
    if isinstance(made, Response):
        ResponseCode(made.code)
        if made.remark is not None and not isinstance(made.remark, str):
            raise TypeError(f"a remark is text, got {type(made.remark).__name__}")
    elif not isinstance(made, Deferred):
        raise TypeError(f"expected a Response or a Deferred, got {type(made).__name__}")
    return made

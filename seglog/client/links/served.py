"""Answers of a client to requests of a broker, over any link."""

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
"""Called with notices of a broker, such as NOTIFY_CONSUMER_IDS_CHANGED; it must return at once."""
OnRequest: TypeAlias = Callable[[Request], Response | Deferred[Response]]
"""Called with a request of a broker; it returns the answer or a deferred one."""
_log = logger(__name__)


def unsupported(request: Request) -> Response:
    """Returns the answer of a RocketMQ client to an unknown request."""
    code = int(request.code)
    return refuse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {code} not supported")


def answer_of(request: Request, make: Callable[[], T]) -> T | Response:
    """Returns a client's answer; an exception becomes a refusal, and is logged unless it has a response code.

    A value that is neither an answer nor a deferred one is refused too.
    """
    try:
        return _checked(make())
    except SeglogError as error:
        return refuse(ResponseCode(error.response_code), str(error))
    except CancelledError:
        return refuse(ResponseCode.SYSTEM_ERROR, "the client has given up answering")
    except Exception as error:  # noqa: BLE001 - the broker gets an answer, and its thread continues
        _log.exception("a client failed at a request of code %s", request.code)
        return refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {text_of(error)}")


def _checked(made: T) -> T:
    """Checks that a value is an answer or a deferred one: later only its encoding would fail."""
    if isinstance(made, Response):
        ResponseCode(made.code)
        if made.remark is not None and not isinstance(made.remark, str):
            raise TypeError(f"a remark is text, got {type(made.remark).__name__}")
    elif not isinstance(made, Deferred):
        raise TypeError(f"expected a Response or a Deferred, got {type(made).__name__}")
    return made

"""The tree of exceptions: its root, and all branches but that of consumers.

Every error that seglog raises on purpose is a :class:`SeglogError`. Its text is a whole sentence that states
what happened, where, what was expected and what was found; :attr:`SeglogError.help` states what to
do next. ``exit_code`` is the exit code of the command line, ``response_code`` the code of a broker's answer
(RocketMQ's ``ResponseCode``). Exit codes that stand for no error are in ``ending``.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from typing_extensions import override

from seglog.errors.advice import HELP_OF

_SYSTEM_ERROR = 1
_SYSTEM_BUSY = 2
_MESSAGE_ILLEGAL = 13
_SERVICE_NOT_AVAILABLE = 14
_NO_PERMISSION = 16
_INVALID_PARAMETER = 29
_QUERY_NOT_FOUND = 22
_PULL_OFFSET_MOVED = 21
_CONSUME_MSG_TIMEOUT = 207
_FLOW_CONTROL = 215
_GO_AWAY = 1500
_MAY_PASS = frozenset({_SYSTEM_BUSY, _SERVICE_NOT_AVAILABLE, _FLOW_CONTROL, _GO_AWAY})
"""Codes by which a broker states that it is busy or ends: it has not carried out the request."""


class SeglogError(Exception):
    """The base class of all errors of seglog."""

    exit_code: ClassVar[int] = 3
    response_code: ClassVar[int] = _SYSTEM_ERROR
    help: str = "run the command again with --help, or report this with its full text"
    is_retryable: bool = False
    """Whether the request may succeed later or elsewhere; if not: fatal, or fenced (:class:`FencedError`)."""

    __module__ = "seglog.errors"

    @override
    def __init_subclass__(cls) -> None:
        """Makes tracebacks and pickles name the room of an error, which exports it, instead of its module."""
        super().__init_subclass__()
        if cls.__module__.startswith("seglog.errors."):
            cls.__module__ = "seglog.errors"

    def __init__(self, message: str, *, help: str | None = None) -> None:  # noqa: A002 - it is the help line
        super().__init__(message)
        if help is not None:
            self.help = help

    @property
    @override
    def __notes__(self) -> list[str]:  # type: ignore[override]  # else an attribute that add_note() makes
        """Lines that tracebacks show below the text: the advice, and the notes of ``add_note``."""
        notes: list[str] = vars(self).setdefault("_notes", [""])
        notes[0] = f"help: {self.help}"
        return notes

    @override
    def __reduce__(self) -> tuple[object, ...]:
        # Exception would call the class with the complete sentence, which constructors with other arguments
        # refuse.
        return _restore, (type(self), self.args), vars(self)


class StoreError(SeglogError):
    """An error of the store directory, or of a request to it."""

    exit_code = 10
    help = "run `seglog info STORE` to see the state of the store"


class CorruptError(StoreError):
    """Bytes that cannot be what they should be.

    Attributes:
        file: The file, relative to the store if that is known; empty for a bare buffer.
        position_bytes: Position in the file or buffer.
        kind: Stable short word for the damage, such as ``body-crc``.
    """

    exit_code = 11
    help = "run `seglog dump STORE` to see what can still be read"

    def __init__(
        self,
        kind: str,
        *,
        file: str = "",
        position_bytes: int = 0,
        expected: object = None,
        found: object = None,
    ) -> None:
        self.kind = kind
        self.file = file
        self.position_bytes = position_bytes
        self.expected = expected
        self.found = found
        where = f"{file or 'buffer'} +{position_bytes}"
        detail = "" if expected is None and found is None else f": found {found}, expected {expected}"
        super().__init__(f"{where}: {kind}{detail}")


class TruncatedError(CorruptError):
    """The bytes end before the end of the structure that they should hold."""

    exit_code = 12


class NotFoundError(StoreError):
    """There is no such store, file or message."""

    exit_code = 13
    response_code = _QUERY_NOT_FOUND
    help = "check the path and the name; `seglog info STORE` lists topics and queues"


class NotAStoreError(StoreError):
    """The folder holds something other than a RocketMQ store."""

    exit_code = 14
    help = "give the folder that holds commitlog/ (storePathRootDir of broker.conf)"


class OffsetRangeError(StoreError):
    """An offset outside of the range of the queue or log.

    Attributes:
        min_offset: Smallest valid value.
        max_offset: Largest valid value.
    """

    exit_code = 15
    response_code = _PULL_OFFSET_MOVED
    help = "ask within the range; `seglog info STORE` shows the range of each queue"

    def __init__(self, message: str, *, min_offset: int, max_offset: int) -> None:
        super().__init__(message)
        self.min_offset = min_offset
        self.max_offset = max_offset


class StoreLockedError(StoreError):
    """Another process, seglog or a RocketMQ broker, has the store open for writing."""

    exit_code = 16
    response_code = _SERVICE_NOT_AVAILABLE
    help = "stop the other process, or read beside it with read_only=True or a reading command"


class FullError(StoreError):
    """The file system has no space for the next write; reads continue, writes resume when space returns."""

    exit_code = 17
    is_retryable = True
    response_code = _SERVICE_NOT_AVAILABLE
    help = "free space on the file system of this path, then try again"


class ReadOnlyError(StoreError):
    """A write to a store that is opened for reading, or to a directory that cannot be written."""

    exit_code = 18
    response_code = _SERVICE_NOT_AVAILABLE
    help = "reading works; to write, open it for writing, where the file system and its rights allow that"


class ClosedError(StoreError):
    """The store was closed."""

    exit_code = 19
    response_code = _SERVICE_NOT_AVAILABLE
    help = "open the store again"


class StoreFailedError(StoreError):
    """A flush failed; nothing more is acknowledged until the store is opened again."""

    exit_code = 20
    response_code = _SERVICE_NOT_AVAILABLE
    help = "look at the disk (dmesg), then open the store again: recovery finds what is really there"


class UnsupportedStoreError(StoreError):
    """A store of a kind that seglog does not read (DLedger, tiered storage) or does not write (RocksDB)."""

    exit_code = 21
    help = "seglog writes stores with storeType=default; nothing was changed"


class MessageIllegalError(StoreError):
    """A message that RocketMQ would refuse: body, properties or batch too large."""

    exit_code = 22
    response_code = _MESSAGE_ILLEGAL
    help = "send a smaller message: body up to 4 MiB, properties up to 32767 bytes"


class InvalidNameError(StoreError):
    """A topic, group or queue id that no store can hold."""

    exit_code = 23
    response_code = _INVALID_PARAMETER
    help = "use letters, digits, %, |, - and _; up to 255 bytes (brokers: 127, groups 120); queue ids from 0"


class InvalidArgumentError(SeglogError):
    """A value that the call does not accept, such as a negative offset or count."""

    exit_code = 24
    response_code = _INVALID_PARAMETER
    help = "see the documentation of the call for the range of each value"


class ConfigError(StoreError):
    """A file under config/ that can be read neither itself nor from its .bak."""

    exit_code = 25
    help = "run `seglog repair STORE`: it restores what the store proves; else restore the file from a backup"


class ViewHolder(NamedTuple):
    """Arrays of one queue that share memory with a store: their contents, and the number that are alive."""

    topic: str
    queue_id: int
    kind: str
    views: int


class StoreInUseError(StoreError):
    """A store cannot be closed while arrays that share its memory are alive.

    Attributes:
        holders: The arrays, by queue.
    """

    exit_code = 26
    response_code = _SERVICE_NOT_AVAILABLE
    help = "let go of the arrays or copy them, then close again; close(force=True) closes all the same"

    def __init__(self, store: str, holders: tuple[ViewHolder, ...]) -> None:
        self.holders = holders
        total = sum(holder.views for holder in holders)
        shown = ", ".join(
            f"{holder.kind} of {holder.topic}/{holder.queue_id} ({holder.views})" for holder in holders
        )
        shares = "view still shares" if total == 1 else "views still share"
        super().__init__(f"{total} {shares} memory with {store}: {shown}")


class UnsafePathError(StoreError):
    """A name that may lead out of the store directory: absolute, with ``..``, NUL or too long."""

    exit_code = 27
    help = "nothing was read or written there; do not trust what this store says, and check it first"


class FileKindError(StoreError):
    """A link, pipe, device, socket or folder where the store must have a file, or a link instead of a folder.

    Attributes:
        file: Its name, relative to the store.
        found: Its kind.
    """

    exit_code = 29
    help = "replace it by what belongs there; `seglog check STORE` names every one"

    def __init__(self, message: str, *, file: str = "", found: str = "", help: str | None = None) -> None:  # noqa: A002 - it is the help line
        super().__init__(message, help=help)
        self.file = file
        self.found = found


class UndoError(StoreError):
    """A repair cannot be undone: the store was changed since, or the undo pack lacks the former state."""

    exit_code = 28
    help = "nothing was changed; `seglog undo --list STORE` shows the repairs that can be taken back"


class LengthUnknownError(StoreError):
    """Nothing in the store shows the length of its log or queue files, so nothing is written to it."""

    exit_code = 33
    response_code = _SERVICE_NOT_AVAILABLE
    help = "nothing was changed; give the lengths: `seglog repair --broker-conf FILE STORE`"


class MisnamedFileError(StoreError):
    """A file of the log has the name of another file, and was not changed."""

    exit_code = 34
    response_code = _SERVICE_NOT_AVAILABLE
    help = "nothing was changed; `seglog repair STORE` gives each file its name, and reading works without"


class LogMissingError(StoreError):
    """There is no commit log, but other files refer to one: a disk is not mounted, or a folder is removed."""

    exit_code = 35
    response_code = _SERVICE_NOT_AVAILABLE
    help = (
        "nothing was changed; mount it, or put it back from a copy. To begin a new log, at offset 0, move"
        " what is named here away first"
    )


class DataLossError(StoreError):
    """Requested messages are lost, or a stretch of the log that may hold them cannot be read."""

    exit_code = 36
    response_code = _SERVICE_NOT_AVAILABLE
    help = "`seglog check STORE` says what is lost, and `seglog repair STORE` what can be saved"


class StoreMismatchError(StoreError):
    """A store is not the expected one: it does not continue the archived messages."""

    exit_code = 37
    help = "it was rolled back, or is another store: give it a name of its own"


class ProtocolError(SeglogError):
    """A request or an answer that the protocol does not allow."""

    exit_code = 30
    help = "check that both sides speak the RocketMQ remoting protocol"


class FrameError(ProtocolError):
    """Bytes of a connection that are no frame: the next frame cannot be found, so the connection ends.

    A header in which only fields are wrong is a ``ProtocolError``, and the connection continues.
    """

    exit_code = 38
    help = (
        "close the connection; check that the other side speaks the RocketMQ remoting protocol on this port"
    )


class LocalProtocolError(ProtocolError):
    """This side of a connection tried something that the protocol does not allow."""

    exit_code = 31


class RemoteProtocolError(ProtocolError):
    """The other side answered with a failure.

    Attributes:
        code: Its response code (RocketMQ's ``ResponseCode``).
        remark: Its explanation, possibly empty.
        is_retryable: Whether the code means that it is busy, or about to end.
    """

    exit_code = 32

    def __init__(self, code: int, remark: str, *, help: str | None = None) -> None:  # noqa: A002 - it is the help line
        super().__init__(
            f"the broker answered {code}: {remark or 'no remark'}", help=help or HELP_OF.get(code)
        )
        self.code = code
        self.remark = remark
        self.is_retryable = code in _MAY_PASS


class NoPermissionError(SeglogError):
    """The client may not do this; the check that a broker calls before each request raises it."""

    exit_code = 39
    response_code = _NO_PERMISSION
    help = "ask who runs the broker for the permission that the message names"


class AskTimeoutError(SeglogError):
    """The other end of a connection did not answer a request in time."""

    exit_code = 41
    is_retryable = True
    response_code = _CONSUME_MSG_TIMEOUT
    help = "ask again; a client that stays silent is busy, stuck, or cut off from the broker"


class ConnectionEndedError(SeglogError):
    """A connection ended before a request was answered; whether the request was carried out is not known."""

    exit_code = 42
    is_retryable = True
    help = "ask again once the other side is connected"


class AskLimitError(SeglogError):
    """The other end of a connection must answer some requests before it gets new ones."""

    exit_code = 43
    is_retryable = True
    response_code = _SYSTEM_BUSY
    help = "wait for some answers, then ask again"


class CannotConnectError(SeglogError):
    """There is no connection to a broker or name server, and none can be made now: nothing was sent.

    Attributes:
        address: The address that does not answer, "host:port".
    """

    exit_code = 44
    is_retryable = True
    help = "check the address, and that a broker or name server listens there; then ask again"

    def __init__(self, message: str, *, address: str = "") -> None:
        super().__init__(message)
        self.address = address


class BrokerNotFoundError(SeglogError):
    """No route names the address of a broker."""

    exit_code = 48
    is_retryable = True
    help = "check that the broker is registered at the name server; routes are asked for every 30 s"


class CannotListenError(SeglogError):
    """A server cannot bind its port: another process has it, or the host is no address of this machine."""

    exit_code = 49
    help = "choose another port, or end what has it; port 0 takes one that is free"


class ClientClosedError(SeglogError):
    """A client was used after it was closed, or in another process or event loop than its own."""

    exit_code = 45
    response_code = _SERVICE_NOT_AVAILABLE
    help = "make a new client; a process that was forked makes one of its own"


class MissingDependencyError(SeglogError):
    """Something outside of seglog is needed and missing, such as a JDK for Spark."""

    exit_code = 50
    help = "install what the message names"


class SparkJobError(SeglogError):
    """A Spark job failed: Spark does not understand a query, or the cluster is gone."""

    exit_code = 51
    help = "read what Spark says; --conf and --master change how it runs"


class OutputError(SeglogError):
    """Standard output could not be written: it is closed, or its disk is full."""

    exit_code = 52
    help = "what the command did stands, messages that it stored are stored; give it an output to write to"


class StoppedError(SeglogError):
    """A check was stopped before it was complete.

    Attributes:
        resume_file: File with the results so far; empty if it could not be written.
    """

    exit_code = 60
    help = "continue with `seglog check STORE --resume FILE`"

    def __init__(self, text: str, resume_file: str = "") -> None:
        super().__init__(text)
        self.resume_file = resume_file
        if not resume_file:
            self.help = "check again; name a file that can be written with --resume"


def _restore(kind: type[SeglogError], args: tuple[object, ...]) -> SeglogError:
    error = kind.__new__(kind)
    error.args = args
    return error


def error_classes() -> list[type[SeglogError]]:
    """Returns every class of the tree, parents first, each once."""
    found: list[type[SeglogError]] = []
    queue: list[type[SeglogError]] = [SeglogError]
    while queue:
        current = queue.pop(0)
        found.append(current)
        queue.extend(current.__subclasses__())
    return found

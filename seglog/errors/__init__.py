"""One tree of exceptions, and the one table that gives each its exit code, wire code and advice.

Every error that seglog raises on purpose is a :class:`SeglogError`. Its text is a whole sentence that states
what happened, where, what was expected and what was found; :attr:`SeglogError.help` states what to
do next. ``exit_code`` is the exit code of the command line, ``response_code`` the code of a broker's answer
(RocketMQ's ``ResponseCode``). :class:`Ending` has the exit codes that stand for no error.

Called by every room.
Truth: the classes themselves; ``docs/errors.md`` is written from them.
"""

from seglog.errors.consuming import BodyError as BodyError
from seglog.errors.consuming import CodecMissingError as CodecMissingError
from seglog.errors.consuming import CommitError as CommitError
from seglog.errors.consuming import ConsumerError as ConsumerError
from seglog.errors.consuming import FencedError as FencedError
from seglog.errors.consuming import PayloadError as PayloadError
from seglog.errors.consuming import Uncommitted as Uncommitted
from seglog.errors.ending import Ending as Ending
from seglog.errors.tree import AskLimitError as AskLimitError
from seglog.errors.tree import AskTimeoutError as AskTimeoutError
from seglog.errors.tree import BrokerNotFoundError as BrokerNotFoundError
from seglog.errors.tree import CannotConnectError as CannotConnectError
from seglog.errors.tree import CannotListenError as CannotListenError
from seglog.errors.tree import ClientClosedError as ClientClosedError
from seglog.errors.tree import ClosedError as ClosedError
from seglog.errors.tree import ConfigError as ConfigError
from seglog.errors.tree import ConnectionEndedError as ConnectionEndedError
from seglog.errors.tree import CorruptError as CorruptError
from seglog.errors.tree import DataLossError as DataLossError
from seglog.errors.tree import FileKindError as FileKindError
from seglog.errors.tree import FrameError as FrameError
from seglog.errors.tree import FullError as FullError
from seglog.errors.tree import InvalidArgumentError as InvalidArgumentError
from seglog.errors.tree import InvalidNameError as InvalidNameError
from seglog.errors.tree import LengthUnknownError as LengthUnknownError
from seglog.errors.tree import LocalProtocolError as LocalProtocolError
from seglog.errors.tree import LogMissingError as LogMissingError
from seglog.errors.tree import MessageIllegalError as MessageIllegalError
from seglog.errors.tree import MisnamedFileError as MisnamedFileError
from seglog.errors.tree import MissingDependencyError as MissingDependencyError
from seglog.errors.tree import NoPermissionError as NoPermissionError
from seglog.errors.tree import NotAStoreError as NotAStoreError
from seglog.errors.tree import NotFoundError as NotFoundError
from seglog.errors.tree import OffsetRangeError as OffsetRangeError
from seglog.errors.tree import OutputError as OutputError
from seglog.errors.tree import ProtocolError as ProtocolError
from seglog.errors.tree import ReadOnlyError as ReadOnlyError
from seglog.errors.tree import RemoteProtocolError as RemoteProtocolError
from seglog.errors.tree import SeglogError as SeglogError
from seglog.errors.tree import SparkJobError as SparkJobError
from seglog.errors.tree import StoppedError as StoppedError
from seglog.errors.tree import StoreError as StoreError
from seglog.errors.tree import StoreFailedError as StoreFailedError
from seglog.errors.tree import StoreInUseError as StoreInUseError
from seglog.errors.tree import StoreLockedError as StoreLockedError
from seglog.errors.tree import StoreMismatchError as StoreMismatchError
from seglog.errors.tree import TruncatedError as TruncatedError
from seglog.errors.tree import UndoError as UndoError
from seglog.errors.tree import UnsafePathError as UnsafePathError
from seglog.errors.tree import UnsupportedStoreError as UnsupportedStoreError
from seglog.errors.tree import ViewHolder as ViewHolder
from seglog.errors.tree import error_classes as error_classes

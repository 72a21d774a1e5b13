"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click
from typing_extensions import override

from seglog.cli.ui.store_paths import store_of
from seglog.errors import InvalidArgumentError

if TYPE_CHECKING:
    from seglog.storage.directory import LogPaths, LogRoot, ReadingRoot
    from seglog.storage.files import StoreRoot
    from seglog.storage.format.index import IndexGeometry


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
"""Passes ``as_json`` to the command."""

address = click.argument("address", metavar="ADDRESS")
"""Passes ``address``, that of a name server, to the command."""

force = click.option("--force", is_flag=True, help="Replace FILE if it exists.")
"""Passes ``force`` to a command that writes a file."""

EXISTS_ADVICE = "name a new file, or give --force to replace it"

_FOLLOW = "seglog.follow"
_LOG_PATHS = "seglog.log_paths"


class CommandFunction(Protocol):
    """The function of a command: click calls it with the values of its options and arguments, by name."""

    def __call__(self, *arguments: Any, **values: Any) -> object:  # noqa: ANN401 - each command has its own
        """Runs the command."""


Command = TypeVar("Command", bound=CommandFunction | click.Command)


class _StorePath(click.Path):
    """The type of a store argument: a store directory, or a path in a store, which stands for the store.

    An empty text, as from an unset variable, is an error and does not mean the current directory.
    """

    @override
    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        if value == "":
            self.fail("it is empty: name the store's directory; . is this one", param, ctx)
        return store_of(Path(os.fsdecode(value)))


def _keep_followed(ctx: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> None:
    ctx.meta[_FOLLOW] = parameter.opts[0], names


def store(command: Command) -> Command:
    """Passes ``path``, the store directory, to the command; the engine checks whether it is a store.

    The command gets the store's files from :func:`writing` or :func:`reading`.
    """
    return _take_store(command, "--follow")


def followed_store(command: Command) -> Command:
    """Does the same as :func:`store`, for a command that has a ``--follow`` option of another meaning."""
    return _take_store(command, "--follow-folder")


def store_path(command: Command) -> Command:
    """Passes ``path`` to the command, without a ``--follow`` option: Spark jobs follow no link in a store."""
    return click.argument("path", metavar="STORE", type=_StorePath(path_type=Path))(command)


def optional_store(command: Command) -> Command:
    """Does the same as :func:`store`, for a command whose store is optional; ``path`` is None without one."""
    argument = click.argument("path", metavar="[STORE]", required=False, type=_StorePath(path_type=Path))
    return _take_follow(argument(command), "--follow")


def _take_store(command: Command, option: str) -> Command:
    return _take_follow(store_path(command), option)


def _take_follow(command: Command, option: str) -> Command:
    follow = click.option(
        option,
        metavar="NAME",
        multiple=True,
        expose_value=False,
        callback=_keep_followed,
        help="A folder in STORE that may be a link to a folder elsewhere, such as commitlog.",
    )
    return follow(command)


def followed(path: Path) -> tuple[str, ...]:
    """Returns the folders of the store that may be links, as the command line names them.

    Raises:
        UsageError: The store has no folder of a given name, so the option would have no effect.
    """
    ctx = click.get_current_context(silent=True)
    option, names = ("", ()) if ctx is None else ctx.meta.get(_FOLLOW, ("", ()))
    for name in names:
        if not os.path.lexists(path / name):
            raise click.UsageError(f"{option} {name}: there is no {name} in {path}")
    return tuple(names)


def reading(path: Path) -> ReadingRoot:
    """Returns the files of a store for reading: names and file kinds that no store has count as absent."""
    from seglog.storage.directory import ReadingRoot

    return ReadingRoot(path, follow=followed(path), log=log_paths())


def writing(path: Path) -> LogRoot:
    """Returns the files of a store for changes: names and file kinds that no store has are refused."""
    from seglog.storage.directory import LogRoot

    return LogRoot(path, follow=followed(path), log=log_paths())


def undoing(path: Path) -> StoreRoot:
    """Returns the files of a store for an undo, each in the folder where it is, as undo packs name them.

    No configuration needs to state the folders of the log: no file gets a new place.
    """
    from seglog.storage.files import StoreRoot

    return StoreRoot(path, follow=followed(path))


def log_paths() -> LogPaths | None:
    """Returns the folders of the log that the configuration of the command line states."""
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(_LOG_PATHS)


_BROKER_CONF = click.option(
    "--broker-conf",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The broker's configuration: says how long files are where the store does not, and in which folders"
    " its log is.",
)


def segment_length(_ctx: click.Context, _option: click.Parameter, size_bytes: int | None) -> int | None:
    """Checks the length of a log file that an option states: a callback of click.

    Raises:
        BadParameter: No log file can have this length.
    """
    from seglog.storage.directory import MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES

    if size_bytes is not None and not MIN_SEGMENT_BYTES <= size_bytes <= MAX_SEGMENT_BYTES:
        raise click.BadParameter(
            f"{size_bytes}: a log file has a length of {MIN_SEGMENT_BYTES} to {MAX_SEGMENT_BYTES} bytes"
        )
    return size_bytes


def queue_file_length(_ctx: click.Context, _option: click.Parameter, size_bytes: int | None) -> int | None:
    """Checks the length of a queue file that an option states: a callback of click.

    Raises:
        BadParameter: No queue file can have this length.
    """
    from seglog.storage.directory import MAX_SEGMENT_BYTES
    from seglog.storage.format.queue import CQ_UNIT_BYTES

    if size_bytes is not None and (
        size_bytes % CQ_UNIT_BYTES or not CQ_UNIT_BYTES <= size_bytes <= MAX_SEGMENT_BYTES
    ):
        last = MAX_SEGMENT_BYTES // CQ_UNIT_BYTES * CQ_UNIT_BYTES
        raise click.BadParameter(
            f"{size_bytes}: a queue file has a length of {CQ_UNIT_BYTES} to {last} bytes,"
            f" a multiple of {CQ_UNIT_BYTES}"
        )
    return size_bytes


def _division(
    _ctx: click.Context, option: click.Parameter, counts: tuple[int, int] | None
) -> IndexGeometry | None:
    from seglog.storage.directory import checked_division

    try:
        return None if counts is None else checked_division(option.opts[0], *counts)
    except InvalidArgumentError as error:
        raise click.BadParameter(str(error).removeprefix(f"{option.opts[0]} ")) from error


_SEGMENT_BYTES = click.option(
    "--segment-bytes",
    type=int,
    metavar="BYTES",
    callback=segment_length,
    help="mappedFileSizeCommitLog, if the log does not show it.",
)
_QUEUE_FILE_BYTES = click.option(
    "--queue-file-bytes",
    type=int,
    metavar="BYTES",
    callback=queue_file_length,
    help="mappedFileSizeConsumeQueue, if no queue file shows it.",
)
_INDEX_DIVISION = click.option(
    "--index-division",
    type=(int, int),
    metavar="SLOTS ENTRIES",
    callback=_division,
    help="maxHashSlotNum and maxIndexNum, if no index file shows them.",
)


def file_sizes(command: CommandFunction) -> CommandFunction:
    """Passes ``given``, the lengths of files that the user states, to the command."""

    @wraps(command)
    def with_sizes(
        *,
        broker_conf: Path | None,
        segment_bytes: int | None,
        queue_file_bytes: int | None,
        index_division: IndexGeometry | None,
        **kwargs: object,
    ) -> object:
        # Imported here, because these modules load numpy and `seglog version` must not wait for that.
        from seglog.storage.directory import (
            NOTHING_KNOWN,
            FileSizes,
            broker_settings,
            read_broker_conf,
            stated_log_paths,
        )

        given = FileSizes(queue_file_bytes, index_division, segment_bytes)
        conf = NOTHING_KNOWN if broker_conf is None else read_broker_conf(broker_conf)
        if broker_conf is not None:
            ctx = click.get_current_context()
            ctx.meta[_LOG_PATHS] = stated_log_paths(broker_settings(broker_conf), str(broker_conf))
        path = kwargs.get("path")
        if isinstance(path, Path):
            # What a folder holds that is not here cannot be told to be lost.
            reading(path).stated_folders()
        return command(given=given.over(conf), **kwargs)

    return _BROKER_CONF(_SEGMENT_BYTES(_QUEUE_FILE_BYTES(_INDEX_DIVISION(with_sizes))))


def timestamp_ms(option: str, text: str | None, default_ms: int) -> int:
    """Returns the time that an option states, in ms since 1970 UTC.

    Args:
        option: Name of the option, for the error.
        text: Milliseconds since 1970, or a time in ISO 8601, local unless it names its zone.
        default_ms: The result if ``text`` is None.

    Raises:
        InvalidArgumentError: The text is neither of the two, or a time before 1970.
    """
    if text is None:
        return default_ms
    try:
        moment_ms = int(text) if text.isascii() and text.isdigit() else _iso_ms(datetime.fromisoformat(text))
    except (ValueError, OverflowError, OSError) as error:
        moment_ms, reason = -1, str(error)
    else:
        reason = "it is outside of what a store can hold"
    if not 0 <= moment_ms <= _MAX_TIMESTAMP_MS:
        raise InvalidArgumentError(
            f"{option} {text!r} is no time: {reason}",
            help="give milliseconds since 1970, or a time such as 2026-11-21T07:46:00 or 2026-11-21T07:46Z",
        )
    return moment_ms


def _iso_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


_MAX_TIMESTAMP_MS = 0x7FFF_FFFF_FFFF_FFFF

"""Standard output as the commands write to it: a failure of its own is no failure of the store.

It is what the shell gave: a file on a full disk, a closed descriptor. Messages that a command stored before
it could not say so are stored, so the error must not look like one of the store. A reader that went away
(:class:`BrokenPipeError`) stays what it is.
"""

from __future__ import annotations

import io
import os
import sys

from typing_extensions import Buffer, override

from seglog.errors import OutputError


class _Output(io.FileIO):
    """A descriptor whose errors are :class:`~seglog.errors.OutputError`."""

    @override
    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"standard output could not be written: {error.strerror}") from error


def take_standard_output() -> None:
    """Has what is printed by this process go through here, and gives it the streams that the shell closed."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the life of the process
    stream = sys.stdout
    if stream is None:
        # Writing to it fails, and its number is not given to a file of the store.
        descriptor, encoding, is_terminal = os.open(os.devnull, os.O_RDONLY), "utf-8", False
    else:
        stream.flush()
        descriptor, encoding, is_terminal = stream.fileno(), stream.encoding, stream.isatty()
    # A terminal or pipe that cannot show a character gets its escape, not a traceback.
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(descriptor, "w", closefd=False)),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=is_terminal,
    )

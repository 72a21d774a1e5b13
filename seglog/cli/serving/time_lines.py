"""Lines on standard input that move the time of a broker: ``advance 2h``.

A thread of its own reads them; each is answered by a line on standard output. When the input ends, time no
longer moves and the broker continues, unless it must end with the input.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.cli.serving.telling import Tell
from seglog.closing import Closing
from seglog.errors import SeglogError
from seglog.text import moment

_ADVANCE: Final = "advance"
_EXPECTED: Final = "expected `advance 2h`, with ms, s, m, h or d"
_MOST_BYTES: Final = 1_024
_SHOWN: Final = 40


class TimeLines(Closing):
    """Reads lines from a descriptor and carries them out; close it before the broker.

    Args:
        broker: The broker, which has a virtual clock.
        source: The descriptor.
        tell: Called with the result of each line.
        at_end: Called in the reading thread once the input has ended and all of its lines are done.
    """

    def __init__(
        self, broker: Broker, source: int, tell: Tell, at_end: Callable[[], None] | None = None
    ) -> None:
        self._broker = broker
        self._source = source
        self._tell = tell
        self._at_end = at_end
        self._is_over = False
        self._moving = threading.Lock()
        # A daemon thread: a thread that waits for input must not keep the process alive.
        threading.Thread(target=self._read, name="seglog-time", daemon=True).start()

    @override
    def close(self) -> None:
        """Returns when no line is being carried out; later lines are ignored."""
        with self._moving:
            self._is_over = True

    def _read(self) -> None:
        begun, is_long = b"", False
        while data := self._more():
            *lines, begun = (begun + data).split(b"\n")
            for line in lines:
                self._take(line, is_long=is_long)
                is_long = False
            if len(begun) > _MOST_BYTES:  # the answer shows its beginning; the line is not carried out
                begun, is_long = begun[:_MOST_BYTES], True
        if begun:  # the last line may end without a newline
            self._take(begun, is_long=is_long)
        if self._at_end is not None:
            self._at_end()

    def _take(self, line: bytes, *, is_long: bool) -> None:
        """Carries out a line, or refuses it: each line gets an answer, because programs wait for it."""
        text = line[:_MOST_BYTES].decode("utf-8", "replace").strip()
        if is_long or len(line) > _MOST_BYTES:
            self._refuse(f"{text[:_SHOWN]}...", f"a line has more than {_MOST_BYTES} bytes: {_EXPECTED}")
        elif not text:
            self._refuse(text, f"an empty line asks for nothing: {_EXPECTED}")
        else:
            self._do(text)

    def _refuse(self, line: str, problem: str) -> None:
        with self._moving:
            if not self._is_over:
                self._tell({"kind": "refused", "line": line, "error": problem}, problem)

    def _more(self) -> bytes:
        """Returns the next bytes, empty at the end."""
        try:
            # Not sys.stdin: a thread that waits in its buffer holds a lock that the interpreter's exit needs.
            return os.read(self._source, _MOST_BYTES)
        except OSError:  # the descriptor was closed, or never open
            return b""

    def _do(self, line: str) -> None:
        word, _, by = line.partition(" ")
        if word != _ADVANCE:
            self._refuse(line, f"{line!r} is no line that is known: {_EXPECTED}")
            return
        with self._moving:
            if self._is_over:
                return
            try:
                self._broker.advance(by.strip())
            except SeglogError as error:
                self._tell({"kind": "refused", "line": line, "error": str(error)}, f"{line}: {error}")
                return
            now_ms = self._broker.clock.now_ms()
            self._tell({"kind": "advanced", "by": by.strip(), "nowMs": now_ms}, f"it is {moment(now_ms)}")

"""Lines on standard input that move the time of a broker: ``advance 2h``.

They are read by a thread of their own; each is answered by a line on standard output. Once the input ends,
time stands and the broker goes on, unless that is its end too.
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
    """Reads lines from a descriptor and does what they say; close it before the broker.

    Args:
        broker: Whose time it is; it has a virtual clock.
        source: The descriptor.
        tell: Told of each line.
        at_end: Called in that thread once the input has ended and all of its lines are done.
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
        # A thread that waits for input ends with the process.
        threading.Thread(target=self._read, name="seglog-time", daemon=True).start()

    @override
    def close(self) -> None:
        """Returns once no line is carried out any more."""
        with self._moving:
            self._is_over = True

    def _read(self) -> None:
        begun, is_long = b"", False
        while data := self._more():
            *lines, begun = (begun + data).split(b"\n")
            for line in lines:
                self._take(line, is_long=is_long)
                is_long = False
            if len(begun) > _MOST_BYTES:  # what it begins with is shown; nothing of it is carried out
                begun, is_long = begun[:_MOST_BYTES], True
        if begun:  # the last line may end with the input
            self._take(begun, is_long=is_long)
        if self._at_end is not None:
            self._at_end()

    def _take(self, line: bytes, *, is_long: bool) -> None:
        """Carries out a line, or refuses it: each line has an answer, as programs wait for that."""
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
        """Returns what comes next, nothing at the end."""
        try:
            # Not sys.stdin: what waits in its buffer holds a lock that the end of the process needs.
            return os.read(self._source, _MOST_BYTES)
        except OSError:  # it was closed, or never open
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

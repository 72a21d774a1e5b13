"""Frames out of the bytes of a connection, in any pieces.

What is kept is one frame at most, and its length is checked before any of it is.

Source: ``NettyDecoder.java``.
"""

from __future__ import annotations

from collections.abc import Iterator

from seglog.errors import FrameError
from seglog.remoting.frames.binary_header import decode_binary_header
from seglog.remoting.frames.frame import Frame, Serialization
from seglog.remoting.frames.json_header import decode_json_header
from seglog.remoting.frames.limits import DEFAULT_LIMITS, Limits
from seglog.storage.format.layout import U32

_PREFIX_BYTES = 2 * U32.size


class FrameReader:
    """Reads frames. One thread at a time.

    Args:
        limits: Beyond them a frame is refused.
        of_answers: Whether headers may be as long as those of answers.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, of_answers: bool = False) -> None:
        self._limits = limits
        self._header_bytes = limits.answer_header_bytes if of_answers else limits.header_bytes
        self._begun = bytearray()
        self._due_bytes = _PREFIX_BYTES

    @property
    def begun_bytes(self) -> int:
        """How much of the next frame is here."""
        return len(self._begun)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields the frames that end in ``data``; bodies of whole ones are views of it.

        Take all of them before more is fed.

        Raises:
            FrameError: A frame is none, or too large. Nothing behind it can be read.
        """
        view = memoryview(data)
        at = 0
        while self._begun and at < len(view):
            taken = min(self._due_bytes - len(self._begun), len(view) - at)
            self._begun += view[at : at + taken]
            at += taken
            frame = self._finish()
            if frame is not None:
                yield frame
        while len(view) - at >= _PREFIX_BYTES:
            size_bytes = self._size_bytes(view, at)
            if len(view) - at < size_bytes:
                break
            yield self._decode(view[at : at + size_bytes])
            at += size_bytes
        self._begun += view[at:]
        if len(self._begun) >= _PREFIX_BYTES:
            self._due_bytes = self._size_bytes(memoryview(self._begun), 0)
        elif len(self._begun) >= U32.size:
            self._plausible_bytes(self._begun, 0)  # the other end may wait, and send nothing more

    def _finish(self) -> Frame | None:
        """Returns the frame that was begun if it is whole; else notes how much of it is due."""
        if len(self._begun) < self._due_bytes:
            return None
        if self._due_bytes == _PREFIX_BYTES:
            self._due_bytes = self._size_bytes(memoryview(self._begun), 0)
            if self._due_bytes > _PREFIX_BYTES:
                return None
        whole = memoryview(bytes(self._begun))
        self._begun.clear()
        self._due_bytes = _PREFIX_BYTES
        return self._decode(whole)

    def _size_bytes(self, view: memoryview, at: int) -> int:
        """Returns the size of a frame with its length, once that and the size of the header are plausible."""
        size_bytes = self._plausible_bytes(view, at)
        (word,) = U32.unpack_from(view, at + U32.size)
        header_bytes = word & 0xFFFFFF
        if header_bytes > min(size_bytes - U32.size, self._header_bytes):
            raise FrameError(f"a frame of {size_bytes} bytes says its header has {header_bytes}")
        if word >> 24 > Serialization.ROCKETMQ:
            raise FrameError(f"a header says it has form {word >> 24}; 0 is JSON, 1 ROCKETMQ")
        return U32.size + size_bytes

    def _plausible_bytes(self, view: memoryview | bytearray, at: int) -> int:
        """Returns what the length of a frame says, once that is plausible."""
        (size_bytes,) = U32.unpack_from(view, at)
        if not U32.size <= size_bytes <= self._limits.frame_bytes:
            raise FrameError(
                f"a frame says it has {size_bytes} bytes, not {U32.size} to {self._limits.frame_bytes}"
            )
        return int(size_bytes)

    def _decode(self, whole: memoryview) -> Frame:
        (word,) = U32.unpack_from(whole, U32.size)
        body_at = _PREFIX_BYTES + (word & 0xFFFFFF)
        header = bytes(whole[_PREFIX_BYTES:body_at])
        decode = decode_json_header if word >> 24 == Serialization.JSON else decode_binary_header
        return decode(header, whole[body_at:], self._limits)

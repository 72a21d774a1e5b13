"""Frames as bytes."""

from __future__ import annotations

from seglog.errors import FrameError
from seglog.remoting.frames.binary_header import encode_binary_header
from seglog.remoting.frames.frame import Frame, Serialization
from seglog.remoting.frames.json_header import encode_json_header
from seglog.remoting.frames.limits import DEFAULT_LIMITS, Limits
from seglog.storage.format.layout import U32


def encode_frame(frame: Frame, limits: Limits = DEFAULT_LIMITS, body_bytes: int | None = None) -> bytes:
    """Returns a frame's length and header, which its body follows as it is.

    Args:
        frame: What is sent.
        limits: What the other side accepts.
        body_bytes: Size of the body that follows, instead of that of the frame.

    Raises:
        FrameError: The frame is larger than the other side accepts, or has a number that no header can hold.
    """
    is_json = frame.serialization is Serialization.JSON
    header = encode_json_header(frame) if is_json else encode_binary_header(frame)
    size_bytes = U32.size + len(header) + (len(frame.body) if body_bytes is None else body_bytes)
    most_bytes = limits.answer_header_bytes if frame.is_response else limits.header_bytes
    if size_bytes > limits.frame_bytes or len(header) > most_bytes:
        raise FrameError(
            f"a frame of {size_bytes} bytes with a header of {len(header)} is too large: "
            f"at most {limits.frame_bytes} and {most_bytes}"
        )
    return U32.pack(size_bytes) + U32.pack(frame.serialization << 24 | len(header)) + header

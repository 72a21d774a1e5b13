"""Bodies as their producers gave them, of bodies that they compressed: zlib, lz4 or zstd, by ``sysFlag``.

RocketMQ's clients write a zlib stream, lz4 frames and zstd frames. What is inflated is bounded: a few bytes
can say that they are gigabytes. lz4 and zstd need packages, which the extra ``compression`` installs.

Source: ``CompressionType.java``, ``ZlibCompressor.java``, ``Lz4Compressor.java``, ``ZstdCompressor.java``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from seglog.errors import CorruptError, MissingDependencyError

MAX_INFLATED_BYTES: Final = 64 << 20
"""Bodies of 4 MiB inflate at most this far unless told otherwise; zlib alone can reach a thousandfold."""
_PIECE_BYTES: Final = 1 << 16


def inflate(body: bytes, codec: str = "zlib", most_bytes: int = MAX_INFLATED_BYTES) -> bytes:
    """Returns a body as its producer gave it.

    Args:
        body: As stored.
        codec: ``zlib``, ``lz4`` or ``zstd``.
        most_bytes: How long the result may be.

    Raises:
        CorruptError: It does not inflate, or inflates beyond ``most_bytes``.
        MissingDependencyError: The package of the codec is not installed.
    """
    if not body:
        raise _damage(codec, "nothing")
    return join_bounded(_PIECES[codec](body), most_bytes)


def join_bounded(pieces: Iterable[bytes], most_bytes: int = MAX_INFLATED_BYTES) -> bytes:
    """Returns what pieces make together, and asks for no more of them than the bound allows.

    Raises:
        CorruptError: They are longer than ``most_bytes``.
    """
    found: list[bytes] = []
    size_bytes = 0
    for piece in pieces:
        size_bytes += len(piece)
        if size_bytes > most_bytes:
            raise CorruptError("inflate", expected=f"at most {most_bytes} bytes", found="more")
        found.append(piece)
    return b"".join(found)


def _zlib_pieces(body: bytes) -> Iterator[bytes]:
    inflater = zlib.decompressobj()
    rest = body
    try:
        while not inflater.eof:
            piece = inflater.decompress(rest, _PIECE_BYTES)
            rest = inflater.unconsumed_tail
            if not piece and not rest and not inflater.eof:
                raise _damage("zlib", f"{len(body)} bytes of it")
            yield piece
    except zlib.error as error:
        raise CorruptError("inflate", expected="a zlib body", found=str(error)) from error


def _lz4_pieces(body: bytes) -> Iterator[bytes]:
    try:
        from lz4.frame import LZ4FrameDecompressor
    except ImportError as error:
        raise _missing("lz4", "lz4") from error
    rest = body
    try:
        while rest:
            inflater = LZ4FrameDecompressor()
            yield inflater.decompress(rest, _PIECE_BYTES)
            while not inflater.eof:
                if inflater.needs_input:
                    raise _damage("lz4", f"{len(body)} bytes of it")
                yield inflater.decompress(b"", _PIECE_BYTES)
            rest = inflater.unused_data
    except RuntimeError as error:
        raise CorruptError("inflate", expected="lz4 frames", found=str(error)) from error


def _zstd_pieces(body: bytes) -> Iterator[bytes]:
    try:
        from zstandard import ZstdDecompressor, ZstdError
    except ImportError as error:
        raise _missing("zstd", "zstandard") from error
    try:
        with ZstdDecompressor().stream_reader(body, read_across_frames=True) as stream:
            while piece := stream.read(_PIECE_BYTES):
                yield piece
        # The stream ends without a word where a frame is cut short. By now it is known how much there is.
        rest = body
        while rest:
            inflater = ZstdDecompressor().decompressobj()
            inflater.decompress(rest)
            if not inflater.eof:
                raise _damage("zstd", f"{len(body)} bytes of it")
            rest = inflater.unused_data
    except ZstdError as error:
        raise CorruptError("inflate", expected="zstd frames", found=str(error)) from error


_PIECES: Final[Mapping[str, Callable[[bytes], Iterator[bytes]]]] = {
    "zlib": _zlib_pieces,
    "lz4": _lz4_pieces,
    "zstd": _zstd_pieces,
}


def _damage(codec: str, found: str) -> CorruptError:
    return CorruptError("inflate", expected=f"a whole {codec} body", found=found)


def _missing(codec: str, package: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"{codec} bodies need the Python package {package}", help="pip install 'seglog[compression]'"
    )

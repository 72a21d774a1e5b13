"""Peers that speak another protocol to the port: detects the protocol, and has an answer for each.

Their first bytes show it: read as the length of a frame they are larger than any frame. Source of TLS and of
PROXY: ``NettyRemotingServer.java``, ``TlsModeHandler`` and ``HandshakeHandler``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from seglog.storage.format.layout import U32

HEAD_BYTES: Final = 8
"""The number of first bytes that are examined."""
_TLS_HANDSHAKE: Final = b"\x16\x03"
_PROXY: Final = (b"PROXY ", b"\r\n\r\n\x00\r\nQ")
_HTTP: Final = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC")
"""The beginnings of its methods."""
_HTTP_2: Final = b"PRI "
"""The beginning of ``PRI * HTTP/2.0``, the preface of HTTP/2 (RFC 9113, 3.4), which gRPC sends at once."""
_TEXT: Final = b"This port speaks Apache RocketMQ's remoting protocol, not HTTP.\n"
_NO_GRPC: Final = b"This port speaks Apache RocketMQ's remoting protocol, not gRPC."
_SETTINGS_TYPE: Final = 4
_GO_AWAY_TYPE: Final = 7
_PROTOCOL_ERROR: Final = 1
_NO_STREAM: Final = U32.pack(0)


class Stranger(NamedTuple):
    """The protocol of a peer.

    Attributes:
        kind: One word.
        why: The text for the log, with the remedy.
        answer: The bytes sent before the connection is closed; may be empty.
    """

    kind: str
    why: str
    answer: bytes = b""


_TLS: Final = Stranger(
    "tls",
    "a client speaks TLS; this server has none: have it connect without (tls.enable=false, useTLS=false)",
)
_PROXIED: Final = Stranger(
    "proxy", "a proxy sends PROXY lines, which this server does not read: turn them off there (send-proxy)"
)
_WEB: Final = Stranger(
    "http",
    "a client speaks HTTP; this port has RocketMQ's remoting protocol alone: name it to RocketMQ's clients",
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_TEXT), _TEXT),
)


def _http_2_frame(kind: int, payload: bytes) -> bytes:
    """Returns a frame of a whole connection without flags: 24 bits of length, its type, and its payload."""
    return U32.pack(len(payload))[1:] + bytes((kind, 0)) + _NO_STREAM + payload


_GRPC: Final = Stranger(
    "grpc",
    "a client speaks gRPC (HTTP/2); this port has RocketMQ's remoting protocol alone: run RocketMQ's proxy"
    " before it, or use a client of that protocol",
    _http_2_frame(_SETTINGS_TYPE, b"")
    + _http_2_frame(_GO_AWAY_TYPE, _NO_STREAM + U32.pack(_PROTOCOL_ERROR) + _NO_GRPC),
)
"""An answer in HTTP/2: empty SETTINGS, and GOAWAY with the reason (RFC 9113, 6.5 and 6.8)."""


def stranger_of(head: bytes) -> Stranger | None:
    """Returns the protocol of a peer whose first bytes are not a frame; None if it is unknown.

    Args:
        head: At most :data:`HEAD_BYTES` of them.
    """
    if head.startswith(_TLS_HANDSHAKE):
        return _TLS
    if any(head.startswith(one[: len(head)]) for one in _PROXY) and len(head) >= len(_HTTP[0]):
        return _PROXIED
    if head.startswith(_HTTP_2):
        return _GRPC
    return _WEB if head.startswith(_HTTP) else None

"""What is written arrives whole and in order, however little the other end reads at a time."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import suppress

import pytest
from typing_extensions import override

from seglog.server.outgoing import HANDED_BYTES, Outgoing


class Writer(asyncio.Protocol):
    """Writes on whenever the transport has written what it had."""

    def __init__(self, end: socket.socket) -> None:
        self.out = Outgoing(end)
        self.written_bytes = 0

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.out.open(transport)
        self.transport = transport

    @override
    def resume_writing(self) -> None:
        self.written_bytes += self.out.written()

    def flush(self) -> None:
        self.written_bytes += self.out.flush()


async def connected() -> tuple[Writer, socket.socket]:
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    near.setblocking(False)
    far.setblocking(False)
    loop = asyncio.get_running_loop()
    _, writer = await loop.connect_accepted_socket(lambda: Writer(near), near)
    return writer, far


@pytest.mark.parametrize("seed", range(5))
def test_pieces_of_any_size_arrive_in_order_at_a_slow_reader(seed):
    chance = random.Random(seed)
    pieces = [chance.randbytes(int(chance.paretovariate(0.5)) % 50_000) for _ in range(400)]

    async def scene() -> bytes:
        writer, far = await connected()
        read = bytearray()
        left = list(pieces)
        while len(read) < sum(map(len, pieces)):
            if left:
                writer.out.put([left.pop(0), memoryview(left.pop(0))])
                if chance.random() < 0.5:
                    writer.flush()
            else:
                writer.flush()
            await asyncio.sleep(0)
            if chance.random() < 0.7:
                with suppress(BlockingIOError):
                    read += far.recv(chance.randrange(1, 200_000))
            assert writer.written_bytes + writer.out.waiting_bytes == sum(map(len, pieces)) - sum(
                map(len, left)
            )
        await asyncio.sleep(0.01)
        assert writer.out.waiting_bytes == 0
        writer.transport.abort()
        far.close()
        return bytes(read)

    assert asyncio.run(scene()) == b"".join(pieces)


def test_views_are_not_copied_but_for_what_the_transport_is_handed():
    async def scene() -> None:
        writer, far = await connected()
        body = bytearray(8 << 20)
        writer.out.put([memoryview(body)])
        writer.flush()
        assert 0 < writer.transport.get_write_buffer_size() <= HANDED_BYTES
        assert writer.out.waiting_bytes + writer.written_bytes == len(body)
        with pytest.raises(BufferError):
            body.append(0)  # a view of it is still there
        writer.out.drop()
        assert writer.out.waiting_bytes == 0
        writer.transport.abort()
        await asyncio.sleep(0)
        far.close()

    asyncio.run(scene())


def test_a_connection_that_is_broken_is_an_error():
    async def scene() -> None:
        writer, far = await connected()
        far.close()
        writer.out.put([b"x" * 100_000])
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            writer.flush()
        writer.transport.abort()
        await asyncio.sleep(0)

    asyncio.run(scene())


def test_that_the_other_end_reads_is_known_before_the_socket_takes_more():
    async def scene() -> None:
        writer, far = await connected()
        writer.out.put([bytes(1 << 20)])
        writer.flush()
        full_bytes = writer.out.kernel_bytes()
        assert full_bytes > 0
        far.recv(1 << 20)
        assert writer.out.kernel_bytes() < full_bytes
        writer.transport.abort()
        await asyncio.sleep(0)
        far.close()

    asyncio.run(scene())

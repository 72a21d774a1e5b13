"""Hosts are shown as people write them and as Java prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import InvalidArgumentError
from seglog.storage.format.record.host import Host
from tests.support.rows import every_row


@pytest.mark.parametrize(
    ("text", "address", "java"),
    [
        ("10.1.2.3:40000", b"\x0a\x01\x02\x03", "/10.1.2.3:40000"),
        ("0.0.0.0:0", bytes(4), "/0.0.0.0:0"),
        ("[::1]:10911", bytes(15) + b"\x01", "/[0:0:0:0:0:0:0:1]:10911"),
        (
            "[1050::5:600:300c:326b]:1",
            bytes.fromhex("10500000000000000005 0600300c326b".replace(" ", "")),
            "/[1050:0:0:0:5:600:300c:326b]:1",
        ),
    ],
)
def test_host_reads_and_shows(text, address, java):
    host = Host.parse(text)
    assert (host.address, str(host), host.java_text()) == (address, text, java)
    assert host.is_ipv6 == (len(address) == 16)


@given(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16), st.integers(0, 65535))
def test_shown_host_reads_back(address, port):
    assert Host.parse(str(Host(address, port))) == Host(address, port)


NO_HOSTS = (
    "",
    ":",
    "10.1.2.3",
    "10.1.2.3:",
    "10.1.2:80",
    "host:80",
    "1.2.3.4:x",
    "1.2.3.4:-1",
    "1.2.3.4:65536",
    "[::1]",
)


def test_text_that_is_no_host_is_refused():
    with every_row() as row:
        for text in NO_HOSTS:
            with row(text), pytest.raises(InvalidArgumentError, match="no host and port"):
                Host.parse(text)


@given(st.integers(-(2**31), 2**31 - 1))
def test_any_stored_port_can_be_shown(port):
    assert str(Host(bytes(4), port)) == f"0.0.0.0:{port}"


@pytest.mark.parametrize(
    ("address", "port"), [(b"short", 5), ("1234", 5), (bytes(4), 2**31), (bytes(16), "5"), (bytes(4), True)]
)
def test_what_no_record_can_hold_is_no_host(address, port):
    with pytest.raises(InvalidArgumentError, match=r"^(address|port)="):
        Host(address, port)

"""A port is had before there is a broker, and only on loopback unless that is waived."""

from __future__ import annotations

import logging
import re
import socket

import pytest

from seglog.complaints import Complaints
from seglog.errors import CannotListenError, InvalidArgumentError
from seglog.server.limits import ServerLimits
from seglog.server.listening import Listener


def test_a_free_port_is_named_in_the_address():
    with Listener(port=0) as listener:
        host, port = listener.address.split(":")
        assert (host, int(port) > 0, listener.is_everywhere) == ("127.0.0.1", True, False)
        assert listener.socket.getsockname() == (host, int(port))
    with Listener("localhost", 0) as named:
        assert re.fullmatch(r"127\.0\.0\.1:\d+|\[::1\]:\d+", named.address)


def test_a_port_that_is_in_use_is_an_error_that_names_it():
    with Listener(port=0) as first:
        port = int(first.address.partition(":")[2])
        with pytest.raises(CannotListenError, match=f"127.0.0.1:{port}: Address already in use"):
            Listener(port=port)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
def test_another_interface_than_loopback_is_refused_before_it_is_bound(host):
    with pytest.raises(InvalidArgumentError, match="loopback"):
        Listener(host, 0)


def test_all_interfaces_are_had_where_that_is_wanted():
    with Listener("0.0.0.0", 0, insecure=True) as listener:
        assert listener.is_everywhere


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_a_host_that_is_none_of_this_machine_is_an_error(host):
    with pytest.raises(CannotListenError) as refused:
        Listener(host, 0, insecure=True)
    assert host in str(refused.value)


def test_the_advice_to_an_unknown_host_is_to_name_another_one_and_not_another_port():
    with pytest.raises(CannotListenError) as refused:
        Listener("no-such-host.invalid", 0)
    assert "127.0.0.1" in refused.value.help
    assert "port" not in refused.value.help


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_an_ipv6_address_has_brackets():
    try:
        listener = Listener("::1", 0)
    except CannotListenError:
        pytest.skip("no IPv6 loopback here")
    with listener:
        assert listener.address.startswith("[::1]:")


@pytest.mark.parametrize(
    ("name", "value"), [("connections", 0), ("answer_bytes", 1.5), ("stop_ms", -1), ("requests", True)]
)
def test_limits_are_whole_numbers_from_one_on(name, value):
    with pytest.raises(InvalidArgumentError, match=name):
        ServerLimits(**{name: value})


def test_a_complaint_of_a_kind_is_logged_once_a_minute_with_how_many_there_were(caplog):
    now_s = [0.0]
    complaints = Complaints(logging.getLogger(__name__), lambda: now_s[0])
    for second in range(150):
        now_s[0] = float(second)
        complaints.tell("frame", f"frame {second}")
        if second == 70:
            complaints.tell("idle", "idle 70")
    assert [record.getMessage() for record in caplog.records] == [
        "frame 0",
        "frame 60 (59 more of the kind before it)",
        "idle 70",
        "frame 120 (59 more of the kind before it)",
    ]

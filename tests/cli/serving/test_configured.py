"""A broker is started with RocketMQ's own configuration, at the ports that RocketMQ has."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from seglog import Producer
from seglog.cli.serving.configuring import notes_of, startup_of
from seglog.client.connect import make_client
from seglog.errors import CannotConnectError
from seglog.remoting.admin_bodies import KeyValuesBody
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, expect_body
from seglog.server.listening import VIP_DISTANCE, Listener
from seglog.storage.format.config import parse_java_properties
from tests.support.command_line import Seglog
from tests.support.machine.patience import patience_s

PR_CAPBSET_DROP: Final = 24
CAP_NET_BIND_SERVICE: Final = 10


def settings_of(address: str) -> dict[str, str]:
    """Returns the settings of a broker as tools see them."""
    with make_client(address) as client:
        answer = client.link.invoke(Request(RequestCode.GET_BROKER_CONFIG), 30_000, address)
    assert isinstance(answer.body, bytes | memoryview)
    return parse_java_properties(bytes(answer.body))


def test_a_broker_is_as_its_file_says_and_single_settings_win(serving, memory_path, tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text(
        "brokerName = broker-b\nflushDiskType=SYNC_FLUSH\nfileReservedTime=48\n"
        f"storePathRootDir={memory_path}/s\nmessageDelayLevel=1s 2s\nmappedFileSizeCommitLog=1048576\n"
        "namesrvAddr=10.0.0.1:9876\nbrokerNmae=x\n"
    )
    one = serving("--config", conf, "--set", "fileReservedTime=7", "--set", "autoCreateTopicEnable=false")
    found = settings_of(one.address)
    assert {name: found[name] for name in ("brokerName", "fileReservedTime", "messageDelayLevel")} == {
        "brokerName": "broker-b",
        "fileReservedTime": "7",
        "messageDelayLevel": "1s 2s",
    }
    assert (found["flushDiskType"], found["autoCreateTopicEnable"]) == ("SYNC_FLUSH", "false")
    assert (found["storePathRootDir"], found["mappedFileSizeCommitLog"]) == (f"{memory_path}/s", "1048576")
    one.process.send_signal(signal.SIGTERM)
    _, said = one.process.communicate(timeout=patience_s(60))
    assert one.process.returncode == 0
    assert f"change nothing: brokerNmae ({conf} line 8; brokerName?)" in said
    assert "change nothing here: namesrvAddr (this server is its own name server)" in said


def test_name_server_and_broker_have_ports_of_their_own(serving):
    one = serving("--ephemeral", "--broker-port", "0", "--compatible-with", "5.4.0")
    name_server, broker, vip = one.ready["addresses"]
    assert (one.address, one.ready["advertised"]) == (name_server, broker)
    assert int(vip.rpartition(":")[2]) == int(broker.rpartition(":")[2]) - VIP_DISTANCE
    for address in (name_server, broker, vip):
        assert settings_of(address)["brokerName"] == "broker-a"
    with make_client(broker) as client:
        answer = client.link.invoke(Request(RequestCode.GET_BROKER_RUNTIME_INFO), 30_000, broker)
    assert expect_body(answer, KeyValuesBody).values["brokerVersionDesc"] == "V5_4_0"
    with Producer(name_server) as producer:
        assert producer.send("T", b"x", queue_id=0).queue.queue_id == 0
    assert one.end(signal.SIGTERM)[0] == 0
    with pytest.raises(CannotConnectError), Producer(vip) as producer:
        producer.send("T", b"x")


def test_the_port_and_the_address_of_the_file_are_the_brokers(serving):
    with Listener(port=0) as free:
        port = free.port
    one = serving("--ephemeral", "--set", f"listenPort={port}", "--set", "brokerIP1=127.0.0.1")
    assert one.ready["advertised"] == f"127.0.0.1:{port}"
    assert len(one.ready["addresses"]) == 3


def test_an_ipv6_address_is_given_to_clients_in_brackets(serving):
    by_file = serving("--ephemeral", "--set", "brokerIP1=::1")
    assert by_file.ready["advertised"] == f"[::1]:{by_file.address.rpartition(':')[2]}"
    assert (
        serving("--ephemeral", "--advertise", "2001:db8::7:9876").ready["advertised"] == "[2001:db8::7]:9876"
    )


def test_a_vip_channel_is_named_only_where_it_is_the_one_that_is_taken(seglog: Seglog, tmp_path):
    with Listener(port=0) as taken:
        ran = seglog("serve", tmp_path / "s", "--port", "0", "--broker-port", taken.port)
    assert f"nothing can listen on 127.0.0.1:{taken.port}" in ran.stderr
    assert "VIP channel" not in ran.stderr


def test_a_vip_channel_that_is_taken_is_named_and_nothing_is_made(seglog: Seglog, tmp_path):
    with Listener(port=0) as taken:
        broker_port = taken.port + VIP_DISTANCE
        ran = seglog("serve", tmp_path / "s", "--port", "0", "--broker-port", broker_port)
    assert ran.exit_code == 49
    assert f"nothing can listen on 127.0.0.1:{taken.port}" in ran.stderr
    assert f"two below --broker-port {broker_port}" in ran.stderr
    assert "`--broker-port 0` take free ones" in ran.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "autoCreateTopicEnable"], "is no NAME=VALUE"),
        (["--set", "fileReservedTime=x"], "--set: fileReservedTime='x' is not valid"),
        (["--set", "messageDelayLevel=1x"], "--set: '1x' names no delay levels"),
        (["--set", "storePathCommitLog=/x"], "--set: storePathCommitLog cannot be chosen"),
        (["--set", "brokerIP1=here"], "--set: brokerIP1: "),
        (["--set", "deleteWhen=25"], "--set: deleteWhen: retention_delete_hours=25 is not valid"),
        (["--set", "maxMessageSize=99999999999"], "a whole number from 0, of at most 10 digits"),
        (["--config", "missing.conf"], "missing.conf cannot be read: No such file"),
        (["--broker-port", "2"], "broker_port"),
        (["--compatible-with", "4.9.0"], "'4.9.0' is not one of"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    seglog: Seglog, tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    ran = seglog("serve", "s", "--port", "0", *arguments)
    assert ran.exit_code in {2, 24}
    assert said in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_length_that_a_store_does_not_have_is_said_to_be_whose(seglog: Seglog, serving, tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=b\nmappedFileSizeCommitLog=1048576\n")
    one = serving(tmp_path / "s", "--config", conf)
    with Producer(one.address) as producer:
        producer.send("T", b"x")
    assert one.end(signal.SIGTERM)[0] == 0
    conf.write_text("brokerName=b\nmappedFileSizeCommitLog=2097152\n")
    ran = seglog("serve", tmp_path / "s", "--port", "0", "--config", conf)
    assert ran.exit_code == 24
    assert f"{conf} line 2: mappedFileSizeCommitLog=2097152, but the files of" in ran.stderr
    assert "leave mappedFileSizeCommitLog out" in ran.stderr


def test_of_many_names_that_are_not_known_the_log_has_some(tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{'x' * 200}{number}=1\n" for number in range(4_000)))
    (note,) = notes_of(startup_of(conf, ()))
    assert len(note) < 5_000 + 20 * len(str(conf))
    assert note.endswith(" and 3980 more")


def test_a_store_that_another_process_serves_is_named_with_what_to_do(
    serving, memory_path, seglog_process: Seglog
):
    one = serving(memory_path / "s")
    ran = seglog_process("serve", memory_path / "s", "--port", "0")
    assert ran.exit_code == 16
    assert f"process {one.process.pid} has {memory_path / 's'} open for writing" in ran.stderr
    assert "`seglog serve`" in ran.stderr
    assert "kill" not in ran.stderr  # the process may be the user's own application
    assert f"`seglog info {memory_path / 's'}`" in ran.stderr


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_no_store_is_left_alone(seglog: Seglog, tmp_path, kind):
    path = tmp_path / "s"
    if kind == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "letter.txt").write_text("mine")
    ran = seglog("serve", path, "--port", "0")
    assert ran.exit_code == 14
    assert str(path) in ran.stderr
    assert "commitlog/" in ran.stderr
    assert "mine" in {one.read_text() for one in tmp_path.rglob("*") if one.is_file()}


def give_up_ports_of_root() -> None:
    """Has what is executed next be without the right to listen below 1024, as root too."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_NET_BIND_SERVICE, 0, 0, 0)


@pytest.mark.skipif(
    int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80,
    reason="here each process may listen at port 80",
)
def test_a_port_that_is_roots_is_named(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "seglog.cli.main", "serve", tmp_path / "s", "--port", "80"],
        capture_output=True,
        check=False,
        text=True,
        timeout=patience_s(60),
        preexec_fn=give_up_ports_of_root,
    )
    assert ran.returncode == 49
    assert "ports below 1024 are for root" in ran.stderr

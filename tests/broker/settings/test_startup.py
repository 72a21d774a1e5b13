"""A configuration file of RocketMQ, and single settings over it, amount to how a broker is started."""

from __future__ import annotations

import time

import pytest

from seglog.broker.settings import Said, read_startup, said_in
from seglog.errors import InvalidArgumentError
from tests.support.rows import each_row

FILE = b"""
# as conf/broker.conf of a release, and more
brokerClusterName = DefaultCluster
brokerName=broker-b
brokerId = 0
deleteWhen = 04;16
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = SYNC_FLUSH
listenPort=20911
brokerIP1=192.0.2.7
namesrvAddr=10.0.0.1:9876;\\
    10.0.0.2:9876
storePathRootDir=/data/store
storePathCommitLog=/data/store/commitlog
autoCreateTopicEnable=false
messageDelayLevel=1s 2s
mappedFileSizeCommitLog=1048576
waitTimeMillsInSendQueue=200
"""


def read(text: bytes, *values: str):
    """Returns what a file amounts to, with settings over it."""
    said = said_in(text, "b.conf")
    for value in values:
        name, _, text_of_it = value.partition("=")
        said.append(Said(name, text_of_it, "--set"))
    return read_startup(said, {})


def test_a_file_of_rocketmq_is_taken_as_it_is():
    found = read(FILE)
    assert found.settings == {
        "cluster_name": "DefaultCluster",
        "broker_name": "broker-b",
        "retention_delete_hours": (4, 16),
        "retention_hours": 48,
        "auto_create_topics": False,
        "delay_levels": "1s 2s",
    }
    assert (found.ip, found.port, found.store, found.is_sync) == ("192.0.2.7", 20911, "/data/store", True)
    assert found.lengths == {"mappedFileSizeCommitLog": 1 << 20}
    assert found.waits == {"send_wait_ms": 200}
    assert found.unused == ["namesrvAddr"]
    assert found.unknown == []


def test_a_byte_order_mark_before_a_file_is_none_of_its_first_name():
    found = read(b"\xef\xbb\xbfbrokerName=broker-b\n")
    assert found.settings == {"broker_name": "broker-b"}
    assert found.unknown == []


def test_many_names_that_are_not_known_take_no_time():
    began_s = time.process_time()
    found = read(b"".join(b"brokerNmae%d=1\n" % number for number in range(4_000)) + b"x" * 40_000 + b"=1")
    assert time.process_time() - began_s < 2
    assert len(found.unknown) == 4_001
    assert [near for _, near in found.unknown[:2]] == ["brokerName"] * 2


def test_what_is_said_last_counts():
    found = read(FILE, "fileReservedTime=1", "fileReservedTime=2", "flushDiskType=ASYNC_FLUSH")
    assert (found.settings["retention_hours"], found.is_sync) == (2, False)


@each_row(
    "line, said",
    [
        (
            b"fileReservedTime=soon",
            "b.conf line 2: fileReservedTime='soon' is not valid: expected a whole number from 0",
        ),
        (b"mappedFileSizeCommitLog=5", "b.conf line 2: mappedFileSizeCommitLog=5: segment_size_bytes=5 is"),
        (b"mappedFileSizeConsumeQueue=7", "b.conf line 2: mappedFileSizeConsumeQueue=7: queue_file_size"),
        (b"brokerName=a\\u0001b", "b.conf line 2: brokerName: broker_name"),
        (b"brokerName=a/b", "b.conf line 2: brokerName: broker_name"),
        (b"brokerName=" + b"x" * 40_000, "b.conf line 2: brokerName: broker_name"),
        (b"brokerClusterName=" + b"x" * 116, "b.conf line 2: brokerClusterName: cluster_name"),
        (b"regionId=a\\u0002b", "b.conf line 2: regionId: region_id"),
        (b"regionId=" + b"x" * 256, "b.conf line 2: regionId: region_id"),
        (b"deleteWhen=25", "b.conf line 2: deleteWhen: retention_delete_hours"),
        (b"autoCreateTopicEnable=yes", "autoCreateTopicEnable='yes' is not valid: expected true or false"),
        (b"flushDiskType=SOMETIMES", "b.conf line 2: flushDiskType"),
        (b"listenPort=70000", "a port of 1..65535"),
        (b"listenPort=0", "b.conf line 2: listenPort='0'"),
        (b"brokerName=", "b.conf line 2: brokerName"),
        (b"brokerId=1", "this broker is a master"),
        (b"brokerRole=SLAVE", "brokerRole='SLAVE' is not valid: expected ASYNC_MASTER or SYNC_MASTER"),
        (b"aclEnable=true", "there are no access rules"),
        (b"authenticationEnabled=true", "no client is asked who it is"),
        (b"storePathRootDir=", "b.conf line 2: storePathRootDir='' is no folder"),
        (b"storeType=defaultRocksDB", "a store of another kind"),
        (b"storePathIndex=/elsewhere", "b.conf line 2: storePathIndex cannot be chosen"),
        (b"rocketmqHome=/opt", "b.conf line 2: rocketmqHome cannot be chosen"),
        (b"authConfigPath=/x", "authConfigPath cannot be chosen"),
        (
            b"storePathRootDir=/s\nstorePathCommitLog=/t",
            "line 3: storePathCommitLog=/t: expected /s/commitlog",
        ),
        (b"x=\xff", "b.conf: "),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(line, said):
    with pytest.raises(InvalidArgumentError) as met:
        read(b"# first\n" + line)
    assert said in f"{met.value} {met.value.help}"


def test_several_folders_of_the_log_are_kept_in_the_order_of_rocketmq():
    log = read(b"storePathCommitLog=/b/log,/a/log\nreadOnlyCommitLogStorePaths=/b/log\n").log
    assert log is not None
    assert log.paths == ("/a/log", "/b/log")
    assert log.read_only == {"/b/log"}
    assert "line 1" in log.where


def test_a_name_that_nobody_knows_is_kept_with_the_nearest():
    found = read(b"brokerNmae=x\nzz=1\n", "autoCreateTopicEnabled=true")
    assert [(one.name, one.where, near) for one, near in found.unknown] == [
        ("brokerNmae", "b.conf line 1", "brokerName"),
        ("zz", "b.conf line 2", None),
        ("autoCreateTopicEnabled", "--set", "autoCreateTopicEnable"),
    ]


def test_a_check_of_the_callers_names_the_line_too():
    def refuse(text: str) -> None:
        raise InvalidArgumentError(f"{text!r} is wrong")

    with pytest.raises(InvalidArgumentError, match=r"b\.conf line 1: 'x' is wrong"):
        read_startup(said_in(b"messageDelayLevel=x", "b.conf"), {"messageDelayLevel": refuse})

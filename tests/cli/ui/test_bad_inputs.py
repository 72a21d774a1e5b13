"""For any wrong input: a sentence, what to do, a documented exit code, and nothing changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from seglog.broker.broker import Broker
from seglog.doctor.check.check import check_store
from seglog.errors import (
    ConfigError,
    Ending,
    InvalidArgumentError,
    InvalidNameError,
    MessageIllegalError,
    NotAStoreError,
    NotFoundError,
    ReadOnlyError,
    StoreLockedError,
    UnsupportedStoreError,
)
from seglog.storage.files.files import MAX_WHOLE_BYTES, RealFiles
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.command_line import Seglog
from tests.support.machine.read_only_disk import on_read_only_disk
from tests.support.material import golden
from tests.support.material.stores import Lengths


def check_refused(ran, kind, *words):
    assert ran.exit_code == kind.exit_code
    assert ran.stderr.startswith("error: ")
    assert "\nhelp:  " in ran.stderr
    assert "Traceback" not in ran.stderr
    for word in words:
        assert word in ran.stderr


SMALL: Lengths = {"segment_size_bytes": 1 << 16, "queue_file_size_bytes": 2000}
READERS = (["info"], ["dump"], ["tail"], ["get", "t"])


def on(command, store):
    return [command[0], store, *command[1:]]


@pytest.mark.parametrize("command", [*READERS], ids=lambda command: command[0])
def test_reading_what_is_not_there_is_refused_and_makes_nothing(seglog: Seglog, tmp_path, command):
    check_refused(seglog(*on(command, tmp_path / "nothing")), NotFoundError, "nothing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [*READERS, ["put", "t", "x"]], ids=lambda command: command[0])
def test_a_folder_of_other_things_is_refused(seglog: Seglog, tmp_path, command):
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    before = golden.tree_digest(tmp_path)
    check_refused(seglog(*on(command, tmp_path)), NotAStoreError, "holiday.jpg")
    assert golden.tree_digest(tmp_path) == before


@pytest.mark.parametrize("command", [*READERS, ["put", "t", "x"]], ids=lambda command: command[0])
def test_a_file_in_place_of_a_folder_is_refused(seglog: Seglog, tmp_path, command):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    check_refused(seglog(*on(command, path)), NotAStoreError)
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("command", [*READERS, ["put", "t", "x"]], ids=lambda command: command[0])
@pytest.mark.parametrize("kind", ["dledger", "tiered", "tiered, before its first save"])
def test_s4_50_stores_of_another_kind_are_refused_and_left_alone(seglog: Seglog, tmp_path, command, kind):
    if kind.startswith("tiered"):
        with MessageStore.open(tmp_path, **SMALL) as store:
            store.put("t", b"x")
        make_tiered(tmp_path, ".bak" if "before" in kind else "")
    else:
        (tmp_path / "dledger-n0" / "data").mkdir(parents=True)
        (tmp_path / "dledger-n0" / "data" / "00000000000000000000").write_bytes(bytes(4096))
    before = golden.tree_digest(tmp_path)
    check_refused(seglog(*on(command, tmp_path)), UnsupportedStoreError)
    assert golden.tree_digest(tmp_path) == before


def make_tiered(root, ending=""):
    """Writes the table by which RocketMQ's plug-in finds what it has moved elsewhere."""
    (root / "config").mkdir(exist_ok=True)
    segment = {"path": "t", "baseOffset": 0, "status": 1, "size": 100, "type": 0}
    table = {"topicSerialNumber": 1, "commitLogFileSegmentTable": {"t/0": {0: segment}}}
    (root / "config" / f"tieredStoreMetadata.json{ending}").write_text(json.dumps(table))


def open_broker(path):
    with Broker.open(path):
        pass


def read_only(path):
    with MessageStore.open(path, create=False, read_only=True):
        pass


@pytest.mark.parametrize(
    "use",
    [
        open_broker,
        read_only,
        check_store,
        lambda path: survey(path, RealFiles()),
    ],
    ids=["broker", "reader", "check", "survey"],
)
def test_s4_50_a_store_with_tiered_storage_is_refused_in_every_way_and_a_copy_without_its_table_is_not(
    tmp_path, use
):
    with MessageStore.open(tmp_path / "s", **SMALL) as store:
        store.put("t", b"x")
    make_tiered(tmp_path / "s")
    with pytest.raises(UnsupportedStoreError, match="its older messages are elsewhere") as refused:
        use(tmp_path / "s")
    assert "a copy of the folder without config/tieredStoreMetadata.json" in refused.value.help
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    (tmp_path / "copy" / "config" / "tieredStoreMetadata.json").unlink()
    use(tmp_path / "copy")


def test_a_second_writer_is_refused_and_the_first_goes_on(seglog_process: Seglog, tmp_path):
    with MessageStore.open(tmp_path / "s", **SMALL) as first:
        first.put("t", b"x")
        first.flush()
        before = golden.tree_digest(tmp_path / "s")
        check_refused(seglog_process("put", tmp_path / "s", "t", "y"), StoreLockedError)
        assert golden.tree_digest(tmp_path / "s") == before
        assert first.put("t", b"z").queue_offset == 1


@pytest.mark.parametrize("topic", ["a/b", "../up", "a\nb", "a\n", "a\0b", "", "a.b", "x" * 256, "naïve"])
@pytest.mark.parametrize("command", ["put", "get", "tail"])
def test_a_topic_that_could_lead_anywhere_is_refused(seglog: Seglog, tmp_path, topic, command):
    body = ["x"] if command == "put" else []
    check_refused(seglog(command, tmp_path / "s", topic, *body), InvalidNameError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "stdin", "kind"),
    [
        pytest.param([], bytes((4 << 20) + 1), MessageIllegalError, id="body of 4 MiB + 1"),
        pytest.param(["--lines"], bytes((4 << 20) + 1), MessageIllegalError, id="line of 4 MiB + 1"),
        pytest.param(
            ["--property", "p=" + "x" * 32765], b"", MessageIllegalError, id="32,768 B of properties"
        ),
        pytest.param(["--tags", "x" * 32762], b"", MessageIllegalError, id="32,768 B with the tag"),
        pytest.param(["--property", "p=\x01\x02"], b"", MessageIllegalError, id="separator in a property"),
        pytest.param(["--property", "p"], b"", InvalidArgumentError, id="property without ="),
        pytest.param(["--queue", "-1"], b"", InvalidNameError, id="negative queue"),
        pytest.param(["--queue", "2147483648"], b"", InvalidNameError, id="queue of 32 bits"),
        pytest.param(["body", "--lines"], b"", InvalidArgumentError, id="body and lines"),
    ],
)
def test_what_no_record_can_hold_is_refused_and_an_existing_store_stays(
    seglog: Seglog, tmp_path, arguments, stdin, kind
):
    with MessageStore.open(tmp_path / "s", **SMALL) as store:
        store.put("t", b"x")
    before = golden.tree_digest(tmp_path / "s")
    check_refused(seglog("put", tmp_path / "s", "t", *arguments, stdin=stdin), kind)
    assert golden.tree_digest(tmp_path / "s") == before


def test_a_body_of_4_mib_and_32767_bytes_of_properties_are_taken(seglog: Seglog, tmp_path):
    assert seglog("put", tmp_path / "s", "t", stdin=bytes(4 << 20)).exit_code == 0
    # 20 of the 32,767 bytes go to __CRC32#.
    assert seglog("put", tmp_path / "s", "t", "x", "--property", "p=" + "x" * 32744).exit_code == 0
    over = seglog("put", tmp_path / "s", "t", "x", "--property", "p=" + "x" * 32745)
    check_refused(over, MessageIllegalError, "__CRC32#")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--offset", "-1"],
        ["--count", "-1"],
        ["--count", "0"],
        ["--queue", "-1"],
        ["--filter", "||"],
        ["--json", "--body", "raw"],
    ],
)
def test_get_refuses_what_makes_no_sense(seglog: Seglog, tmp_path, arguments):
    MessageStore.open(tmp_path / "s").close()
    ran = seglog("get", tmp_path / "s", "t", *arguments)
    assert ran.exit_code in (InvalidArgumentError.exit_code, InvalidNameError.exit_code)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--key", "a b"], "keys='a b'"),
        (["--key", "a\x01b"], "'KEYS'"),
        (["--tags", "a\x02b"], "'TAGS'"),
        (["--property", "p=a\x01b"], "'p'"),
    ],
)
@pytest.mark.parametrize("lines", [[], ["--lines"]])
def test_what_would_part_keys_or_properties_is_refused(seglog: Seglog, tmp_path, arguments, word, lines):
    ran = seglog("put", tmp_path / "s", "t", *(lines or ["x"]), *arguments, stdin=b"line\n")
    assert ran.exit_code in (InvalidArgumentError.exit_code, MessageIllegalError.exit_code)
    assert word in ran.stderr
    assert not (tmp_path / "s").exists()


def test_tail_refuses_a_negative_count(seglog: Seglog, tmp_path):
    check_refused(seglog("tail", tmp_path, "-n", "-1"), InvalidArgumentError)


def test_get_of_an_unknown_topic_says_so(seglog: Seglog, tmp_path):
    MessageStore.open(tmp_path / "s").close()
    check_refused(seglog("get", tmp_path / "s", "nosuch"), NotFoundError, "nosuch")


def test_a_read_only_disk_can_be_read_but_refuses_a_put(tmp_path, command_line: list[str], seglog: Seglog):
    with MessageStore.open(tmp_path / "s", **SMALL) as store:
        store.put("t", b"x")
    disk = tmp_path / "disk"
    for target in ("store", "new"):
        refused = on_read_only_disk(tmp_path, *command_line, "put", disk / target, "t", "y")
        assert refused.returncode == ReadOnlyError.exit_code
        assert b"Read-only file system" in refused.stderr
    for words in (["info", disk / "store"], ["get", disk / "store", "t"], ["dump", disk / "store"]):
        assert on_read_only_disk(tmp_path, *command_line, *words).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_must_not_be_written_refuses_a_put(tmp_path, seglog: Seglog):
    with MessageStore.open(tmp_path / "s") as store:
        store.put("t", b"x")
    (tmp_path / "s").chmod(0o500)
    (tmp_path / "s" / "lock").chmod(0o400)
    check_refused(seglog("put", tmp_path / "s", "t", "y"), ReadOnlyError)
    (tmp_path / "s").chmod(0o700)


def test_a_disk_that_fills_up_refuses_the_put_and_keeps_what_was_acknowledged(
    tmp_path, command_line: list[str]
):
    script = 'mount -t tmpfs -o size=24M none "$1" || exit 99; shift; exec "$@"'
    disk = tmp_path / "disk"
    disk.mkdir()
    program = """
import json, subprocess, sys
*seglog, store = sys.argv[1:]
lines = (b"x" * 1000 + b"\\n") * 40000
put = subprocess.run([*seglog, "put", store, "t", "--lines", "--json"], input=lines, capture_output=True)
acknowledged = sum(json.loads(line)["count"] for line in put.stdout.splitlines())
get = [*seglog, "get", store, "t", "--count", "99999", "--json"]
found = json.loads(subprocess.run(get, capture_output=True).stdout.splitlines()[-1])["count"]
print(put.returncode, 0 < acknowledged < 40000, found == acknowledged, put.stderr.decode())
"""
    words = ["unshare", "-rm", "sh", "-c", script, "sh", disk, sys.executable, "-c", program]
    try:
        done = subprocess.run([*words, *command_line, disk / "s"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare here to mount a disk with")
    if done.returncode in (1, 99) and not done.stdout:
        pytest.skip(f"no disk can be mounted here: {done.stderr.decode().strip()}")
    assert done.stdout.decode().startswith("17 True True ")
    assert '"kind": "FullError"' in done.stdout.decode()


@pytest.mark.parametrize(
    "name",
    ["config/topics.json", "config/consumerOffset.json", "config/timercheck", "checkpoint", "seglog/holes"],
)
def test_a_file_that_is_too_long_is_damage_that_a_repair_mends(seglog: Seglog, tmp_path, name):
    path = tmp_path / "s"
    with MessageStore.open(path, **SMALL) as store:
        store.put("TopicTest", b"x")
    (path / name).parent.mkdir(exist_ok=True)
    with (path / name).open("ab") as file:
        file.truncate(MAX_WHOLE_BYTES + 1)
    assert seglog("check", path).exit_code in {Ending.FINDINGS, Ending.LOSS}
    assert seglog("get", path, "TopicTest").exit_code == 0
    repaired = seglog("repair", path, "--apply", "--yes")
    assert repaired.exit_code == 0, repaired.stderr
    assert seglog("put", path, "t", "x").exit_code == 0
    assert seglog("info", path).exit_code == 0


def test_a_table_that_is_too_long_gives_way_to_its_backup(seglog: Seglog, tmp_path):
    path = tmp_path / "s"
    MessageStore.open(path, **SMALL).close()
    for topic in ("first", "second"):
        assert seglog("topic", "create", path, topic).exit_code == 0
    with (path / "config" / "topics.json").open("ab") as file:
        file.truncate(MAX_WHOLE_BYTES + 1)
    assert "first" in seglog("topic", "ls", path).stdout
    (path / "config" / "topics.json.bak").unlink()
    refused = seglog("topic", "ls", path)
    check_refused(refused, ConfigError, "file-too-long")
    assert str(MAX_WHOLE_BYTES) in refused.stderr

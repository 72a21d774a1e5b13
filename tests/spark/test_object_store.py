"""A store at an address is read, audited, asked and reconciled as the same store in a folder.

The gate has addresses of files, which take the same way through Arrow; the campaign has an object store too.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow.fs
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog.cli.main import commands
from seglog.doctor.check import check_store
from seglog.errors import NotFoundError
from seglog.spark.audit import audit_stores
from seglog.spark.reconcile.stores import reconcile_stores
from tests.spark.conftest import OBJECT_STORE_KEYS
from tests.support.machine.children import child
from tests.support.machine.patience import looks
from tests.support.material.golden import extract

_SERVER = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Address of an S3 server, a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", _SERVER, str(port)]
    with child(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in looks("the S3 server", idle_s=60, look_s=0.1):
            assert process.poll() is None, "the S3 server ended"
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
        yield f"127.0.0.1:{port}"


@pytest.fixture(params=["file", pytest.param("s3", marks=pytest.mark.campaign)])
def put(request, monkeypatch):
    """Returns the address of a folder; of an object store to which it is copied."""
    if request.param == "file":
        return lambda root: root.as_uri()
    server = request.getfixturevalue("server")
    for name, value in OBJECT_STORE_KEYS.items():
        monkeypatch.setenv(name, value)
    s3 = pyarrow.fs.S3FileSystem(endpoint_override=server, scheme="http", allow_bucket_creation=True)
    s3.create_dir("stores")

    def copy(root):
        place = f"stores/{root.parent.name}/{root.name}"
        pyarrow.fs.copy_files(str(root), place, destination_filesystem=s3)
        return f"s3://{place}?scheme=http&endpoint_override={server}"

    return copy


def content(report):
    return replace(report, root=None, address="", elapsed_ms=0, geometry=None)


@pytest.mark.spark
def test_an_audit_finds_what_a_check_finds(put, spark: SparkSession, tmp_path):
    roots = [
        extract(name, tmp_path) for name in ("roll", "d-bodyflip-first", "d-zeropage-last-halt", "d-nocq")
    ]
    addresses = [put(root) for root in roots]
    found = audit_stores(addresses, spark=spark, split_bytes=64 << 10)
    assert [report.address for report in found] == addresses
    wanted = [content(check_store(root, split_bytes=64 << 10)) for root in roots]
    assert [content(report) for report in found] == wanted


@pytest.mark.spark
def test_messages_are_rows(put, spark: SparkSession, tmp_path):
    root = extract("roll", tmp_path)
    rows = [
        spark.read.format("seglog").load(path).orderBy("physicalOffset") for path in (put(root), str(root))
    ]
    found, wanted = (frame.select("topic", "queueId", "queueOffset", "body").collect() for frame in rows)
    assert len(wanted) > 100
    assert found == wanted


@pytest.mark.spark
def test_groups_are_reconciled(put, spark: SparkSession, tmp_path):
    root = extract("roll", tmp_path)
    (root / "config").mkdir(exist_ok=True)
    (root / "config/consumerOffset.json").write_text('{"offsetTable": {"TopicA@readers": {"0": 3}}}')
    found, wanted = (
        [verdict.fields() | {"store": ""} for verdict in reconcile_stores([path], spark=spark).queues]
        for path in (put(root), str(root))
    )
    assert wanted
    assert found == wanted


@pytest.mark.spark
def test_commands_take_an_address(put, spark: SparkSession, tmp_path):
    address = put(extract("d-bodyflip-first", tmp_path))
    shown = CliRunner().invoke(commands, ["spark", "audit", address])
    assert shown.exit_code == 1, shown.output
    assert address.partition("?")[0] in shown.output.replace("\n", "")
    assert "COPY is a copy of the store on a file system" in shown.output
    asked = CliRunner().invoke(
        commands, ["spark", "sql", address, "select count(*) as messages from messages"]
    )
    assert "messages" in asked.output


def test_an_address_of_nothing_is_refused(put, tmp_path):
    address = put(extract("roll", tmp_path))
    with pytest.raises(NotFoundError, match="no store at"):
        audit_stores([address.replace("/roll", "/none")])

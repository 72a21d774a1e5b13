"""``seglog inspect log``: a place of the log, field by field."""

from __future__ import annotations

import pytest

from seglog.errors import InvalidArgumentError, NotFoundError, OffsetRangeError
from seglog.storage.format.record.record import FILLER_BYTES, MAGIC_BLANK
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.sealed import flip, segment
from tests.support.material.stores import Lengths

SMALL: Lengths = {"segment_size_bytes": 1 << 16, "queue_file_size_bytes": 2000}


@pytest.fixture
def store(tmp_path):
    with MessageStore.open(tmp_path / "s", **SMALL) as store:
        puts = [store.put("orders", b"body %d" % n, tags="fruit", keys=str(n)) for n in range(4)]
    return tmp_path / "s", puts


def fields_of(line):
    return {field["name"]: field for field in line["fields"]}


def test_a_record_is_shown_field_by_field_with_its_properties_and_checks(seglog: Seglog, store):
    path, puts = store
    ran = seglog("log", "show", path, "--at", puts[2].phy_offset, "--json", "--hex")
    assert ran.exit_code == 0
    (line,) = ran.lines
    fields = fields_of(line)
    assert (line["kind"], line["sound"], line["size"]) == ("record", True, puts[2].size_bytes)
    assert fields["phy_offset"]["value"] == puts[2].phy_offset
    assert fields["store_port"]["meaning"] == "127.0.0.1:10911"
    assert (fields["topic"]["value"], fields["body"]["value"]) == ("orders", "body 2")
    assert {entry["name"]: entry["value"] for entry in line["properties"]}["TAGS"] == "fruit"
    assert all(check["right"] for check in line["checks"])
    assert {"place", "body-crc", "record-crc"} <= {check["name"] for check in line["checks"]}
    # The fields follow each other without a gap, and their bytes are those of the file.
    stored = segment(path, 0).read_bytes()[puts[2].phy_offset :][: puts[2].size_bytes]
    assert "".join(field["hex"] for field in line["fields"]) == stored.hex()


def test_the_text_has_flags_hosts_and_a_hex_dump(seglog: Seglog, store):
    path, puts = store
    shown = seglog("log", "show", path, "--at", puts[1].phy_offset, "--hex").stdout
    assert "V1: one byte of topic length" in shown
    assert "127.0.0.1:10911" in shown
    assert "62 6f 64 79 20 31" in shown
    assert "record-crc  right" in shown


def test_a_flipped_bit_shows_as_the_check_that_fails(seglog: Seglog, store):
    path, puts = store
    flip(segment(path, 0), puts[1].phy_offset + 90)
    before = golden.tree_digest(path)
    ran = seglog("log", "show", path, "--at", puts[1].phy_offset, "--json")
    assert ran.exit_code == 1
    (line,) = ran.lines
    assert line["damage"]["why"] == "record-crc"
    assert [check["name"] for check in line["checks"] if not check["right"]] == ["body-crc", "record-crc"]
    assert line["previous"]["phyOffset"] == puts[0].phy_offset
    assert line["next"]["phyOffset"] == puts[2].phy_offset
    assert "DAMAGED: record-crc" in seglog("log", "show", path, "--at", puts[1].phy_offset).stdout
    assert golden.tree_digest(path) == before


def test_where_no_record_starts_its_neighbours_are_named(seglog: Seglog, store):
    path, puts = store
    ran = seglog("log", "show", path, "--at", puts[1].phy_offset + 3)
    assert ran.exit_code == 1
    assert f"byte 3 of the record at {puts[1].phy_offset}" in ran.stdout
    assert f"bytes at {puts[2].phy_offset}" in ran.stdout
    end = puts[3].phy_offset + puts[3].size_bytes
    ran = seglog("log", "show", path, "--at", end)
    assert "nothing was written here" in ran.stdout
    assert "next record: none" in ran.stdout


def test_places_outside_of_the_files_are_refused(seglog: Seglog, store, tmp_path):
    path, _puts = store
    assert seglog("log", "show", path, "--at", 1 << 40).exit_code == OffsetRangeError.exit_code
    assert seglog("log", "show", path, "--at", "-1").exit_code == InvalidArgumentError.exit_code
    assert seglog("log", "show", tmp_path / "nothing", "--at", 0).exit_code == NotFoundError.exit_code
    assert seglog("log", "show", path).exit_code == 2


@pytest.mark.parametrize("name", ["roll", "ipv6", "tx", "innerbatch", "propcrc", "big"])
def test_every_record_and_filler_of_a_real_store_is_explained_to_its_last_byte(
    seglog: Seglog, tmp_path, name
):
    path = golden.extract(name, tmp_path)
    before = golden.tree_digest(path)
    entries = [line for line in seglog("dump", path, "--log", "--json").lines if line["kind"] == "log"]
    fillers = [entry for entry in entries if entry["magic"] == f"{MAGIC_BLANK:08x}"]
    assert bool(fillers) == (name in {"roll", "propcrc", "big"})
    for entry in entries[:: max(1, len(entries) // 40)] + fillers:
        phy_offset = entry["pos"]
        (line,) = seglog("log", "show", path, "--at", phy_offset, "--json").lines
        assert line["sound"], line
        shown = sum(field["size"] for field in line["fields"])
        assert shown == (line["size"] if line["kind"] == "record" else FILLER_BYTES)
    assert golden.tree_digest(path) == before


def test_the_record_crc_of_another_place_shows_as_properties_that_no_writer_made(seglog: Seglog, store):
    path, puts = store
    end = puts[1].phy_offset + puts[1].size_bytes
    log = segment(path, 0)
    content = bytearray(log.read_bytes())
    content[end - 20 : end] = b"\x02" + content[end - 20 : end - 1]
    log.write_bytes(content)
    ran = seglog("log", "show", path, "--at", puts[1].phy_offset, "--json")
    (line,) = ran.lines
    assert (ran.exit_code, line["damage"]["why"]) == (1, "torn-properties")
    (wrong,) = [check for check in line["checks"] if not check["right"]]
    assert (wrong["name"], wrong["detail"]) == ("properties", "NULs, or a __CRC32# out of its place")

"""Files of lines that nest without end, or hold other things than rows, are refused with the line."""

from __future__ import annotations

import json

import pytest

from seglog.errors import CorruptError, InvalidArgumentError
from seglog.storage.format.config.json_line import decode_json_object
from tests.support.command_line import Seglog
from tests.support.damage.broker_damage import small_store
from tests.support.material.stores import fill

DEEP = b"[" * 100_000


@pytest.fixture
def store(tmp_path):
    with small_store(tmp_path / "store") as opened:
        fill(opened, 10)
    return tmp_path / "store"


@pytest.mark.parametrize("line", [DEEP, b"[]", b"7", b'{"topic":7}', b'{"a":' * 50_000, b"9" * 5000, b"\xff"])
def test_an_import_of_no_row_is_refused(line, store, tmp_path, seglog: Seglog):
    (tmp_path / "rows.jsonl").write_bytes(line + b"\n")
    refused = seglog("import", store, tmp_path / "rows.jsonl")
    assert refused.exit_code == InvalidArgumentError.exit_code
    assert "line 1" in refused.stderr


@pytest.mark.parametrize("line", [DEEP, b"[]", b"{}", b'{"parkedFor":[[]]}', b'{"parkedFor":{}}'])
@pytest.mark.parametrize("words", [["--apply"], []])
def test_parked_lines_that_are_no_rows_are_refused(line, words, store, seglog: Seglog):
    (store / "seglog/parked").mkdir(parents=True)
    (store / "seglog/parked" / f"{0:020d}.jsonl").write_bytes(line + b"\n")
    refused = seglog("retention", "unpark", store, *words)
    assert refused.exit_code == InvalidArgumentError.exit_code
    assert "line 1 is damaged" in refused.stderr


@pytest.mark.parametrize("line", [DEEP, b"[]", b"{}", b'{"key":7}', b'{"announced":"k","place":[]}'])
def test_receipts_that_are_none_are_damage(line, store, seglog: Seglog):
    (store / "seglog/receipts").mkdir(parents=True)
    (store / "seglog/receipts/parked.jsonl").write_bytes(line + b"\n")
    refused = seglog("retention", "unpark", store, "--apply")
    assert refused.exit_code == CorruptError.exit_code
    assert "seglog/receipts/parked.jsonl" in refused.stderr


def test_a_body_with_half_a_character_is_refused(store, tmp_path, seglog: Seglog):
    exported = tmp_path / "rows.jsonl"
    assert seglog("export", store, "--topic", "Topic0", "--output", exported).exit_code == 0
    row = json.loads(exported.read_text().splitlines()[0])
    exported.write_text(json.dumps({**row, "body": "\ud800", "bodyForm": "text"}) + "\n")
    assert seglog("import", store, exported).exit_code == InvalidArgumentError.exit_code


def test_an_object_is_an_object():
    assert decode_json_object(b'{"a":1}') == {"a": 1}
    with pytest.raises(CorruptError, match="an object"):
        decode_json_object("[]")

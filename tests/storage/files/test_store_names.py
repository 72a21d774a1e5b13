"""Names below a store: none leads out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from seglog.errors import UnsafePathError
from seglog.storage.files.store_names import parts_of, untrusted
from tests.support.rows import every_row

ROOT = Path("/stores/a")

LEADS_OUT = {
    "nothing": "",
    "absolute": "/etc/passwd",
    "absolute, below the root": "/stores/a/checkpoint",
    "the root": ".",
    "the parent": "..",
    "beside the store": "../home/authorized_keys",
    "out and in again": "config/../../a/checkpoint",
    "back within the store": "config/../checkpoint",
    "a dot on the way": "config/./topics.json",
    "an empty name on the way": "config//topics.json",
    "a slash at the end": "config/",
    "NUL": "config/topics\0.json",
    "a name of 256 bytes": "config/" + "x" * 256,
    "a name of 128 characters and 256 bytes": "config/" + "ü" * 128,
    "names without end": "/".join(["x"] * 4000),
    "the lock": "lock",
    "the undo packs": "seglog/undo/1/journal",
    "the folder of the undo packs": "seglog/undo",
}

STAYS_WITHIN: dict[str, str | bytes] = {
    "a file": "checkpoint",
    "a file in folders": "consumequeue/%RETRY%g/0/00000000000000000000",
    "dots in a name": "config/..topics..json",
    "255 bytes": "config/" + "x" * 255,
    "a name that is no UTF-8": b"consumequeue/\xff\xfe/0",
    "another lock": "config/lock",
    "ours": "seglog/holes",
}


def test_a_name_from_a_store_that_may_lead_out_of_it_is_refused_as_text_and_as_bytes():
    with every_row() as row:
        for what, name in LEADS_OUT.items():
            with row(what), pytest.raises(UnsafePathError):
                untrusted(ROOT, name)
            with row(what, "as bytes"), pytest.raises(UnsafePathError):
                untrusted(ROOT, name.encode())


def test_text_that_no_bytes_of_a_name_decode_to_is_refused():
    with pytest.raises(UnsafePathError):
        untrusted(ROOT, "config/\ud800")


def test_a_name_that_stays_within_the_store_becomes_a_path_below_it():
    with every_row() as row:
        for what, name in STAYS_WITHIN.items():
            with row(what):
                path = untrusted(ROOT, name)
                assert path.is_relative_to(ROOT)
                assert parts_of(ROOT, path) == path.parts[len(ROOT.parts) :]


def test_the_root_has_no_parts():
    assert parts_of(ROOT, ROOT) == ()


NOT_BELOW = (
    Path("/stores"),
    Path("/stores/ab"),
    Path("/etc/passwd"),
    Path("a"),
    ROOT / ".." / "b",
    ROOT / "x" / "..",
)


def test_a_path_that_is_not_below_the_root_is_refused():
    with every_row() as row:
        for path in NOT_BELOW:
            with row(path), pytest.raises(UnsafePathError):
                parts_of(ROOT, path)


def test_a_root_that_the_caller_gave_may_be_relative_or_have_dots():
    assert parts_of(Path("../a"), Path("../a/config/topics.json")) == ("config", "topics.json")

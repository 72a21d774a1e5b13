"""``seglog verify``: 0 for a log as it was written, 1 for any other."""

from __future__ import annotations

import pytest

from tests.support import golden
from tests.support.sealed import COUNT, flip, sealed_store, segment


@pytest.fixture
def store(tmp_path):
    sealed_store(tmp_path / "store")
    return tmp_path / "store"


def test_verify_of_a_sealed_store_says_how_it_looked(seglog, store):
    shown = seglog("verify", store)
    assert shown.exit_code == 0
    assert "4 by seal, 1 by records" in shown.stdout
    assert "every byte as it was written" in shown.stdout
    (facts,) = seglog("verify", store, "--json").lines
    assert (facts["clean"], facts["bySeal"], facts["byRecords"], facts["records"]) == (True, 4, 1, COUNT)


def test_verify_names_the_block_and_the_messages_and_ends_with_1(seglog, store):
    flip(segment(store, 1), 100_000)
    shown = seglog("verify", store)
    assert shown.exit_code == 1
    assert f"seal-rot commitlog/{segment(store, 1).name} +65536" in shown.stdout
    assert "1 damaged" in shown.stdout
    ran = seglog("verify", store, "--json")
    assert ran.exit_code == 1
    (facts,) = ran.lines
    assert [finding["code"] for finding in facts["findings"]] == ["seal-rot"]
    (message,) = facts["concerned"]
    assert (message["topic"], message["readable"]) == ("orders", False)


def test_verify_shows_the_first_of_many_messages(seglog, tmp_path):
    path = tmp_path / "plain"
    sealed_store(path, record_crc=False)
    flip(segment(path, 1), 100_000)
    shown = seglog("verify", path).stdout
    assert "0 damaged" in shown or "1 damaged" in shown
    assert "more; --json prints all" in shown


def test_verify_writes_only_when_told_to_seal(seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    before = golden.tree_digest(path)
    first = seglog("verify", path)
    assert first.exit_code == 0
    assert "seal-missing" in first.stdout
    assert golden.tree_digest(path) == before
    sealed = seglog("verify", path, "--seal")
    assert (sealed.exit_code, "sealed now" in sealed.stdout) == (0, True)
    changed = {name for name, digest in golden.tree_digest(path).items() if before.get(name) != digest}
    assert changed
    assert all(name.startswith("seglog/") for name in changed)
    assert "seal-missing" not in seglog("verify", path).stdout


def test_verify_of_nothing_is_an_error(seglog, tmp_path):
    assert seglog("verify", tmp_path / "nothing").exit_code == 13


def test_verify_claims_no_more_than_it_checked(seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    shown = seglog("verify", path).stdout
    assert "every byte" not in shown
    assert "heads and properties of 400 records have no checksum" in shown
    assert seglog("verify", path, "--json").lines[0]["bareRecords"] == 400
    assert "400 records" in seglog("verify", path, "--seal").stdout
    records = seglog("verify", path, "--json").lines[0]["bareRecords"]
    assert 0 < records < 400  # those of the last segment, which is not full

"""``seglog verify``: 0 for a log as it was written, 1 for any other; its other names say the same."""

from __future__ import annotations

import re
import shutil

import pytest

from seglog.errors import Ending
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.sealed import COUNT, flip, sealed_store, segment


@pytest.fixture
def store(tmp_path):
    sealed_store(tmp_path / "store")
    return tmp_path / "store"


def test_verify_of_a_sealed_store_says_how_it_looked(seglog: Seglog, store):
    shown = seglog("verify", store)
    assert shown.exit_code == 0
    assert "4 by seal, 1 by records" in shown.stdout
    assert "every byte as it was written" in shown.stdout
    (facts,) = seglog("verify", store, "--json").lines
    assert (facts["clean"], facts["bySeal"], facts["byRecords"], facts["records"]) == (True, 4, 1, COUNT)


def test_verify_names_the_block_and_the_messages_and_ends_with_5(seglog: Seglog, store):
    flip(segment(store, 1), 100_000)
    shown = seglog("verify", store)
    assert shown.exit_code == Ending.LOSS
    assert f"seal-rot commitlog/{segment(store, 1).name} +65536" in shown.stdout
    assert "1 damaged" in shown.stdout
    ran = seglog("verify", store, "--json")
    assert ran.exit_code == Ending.LOSS
    (facts,) = ran.lines
    assert [finding["code"] for finding in facts["findings"]] == ["record-repairable", "seal-rot"]
    (message,) = facts["concerned"]
    assert (message["topic"], message["readable"]) == ("orders", False)


def test_verify_shows_the_first_of_many_messages(seglog: Seglog, tmp_path):
    path = tmp_path / "plain"
    sealed_store(path, record_crc=False)
    flip(segment(path, 1), 100_000)
    shown = seglog("verify", path).stdout
    assert "0 damaged" in shown or "1 damaged" in shown
    assert "more; --json prints all" in shown


def test_verify_writes_only_when_told_to_seal(seglog: Seglog, tmp_path):
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


def test_verify_of_nothing_is_an_error(seglog: Seglog, tmp_path):
    assert seglog("verify", tmp_path / "nothing").exit_code == 13


def test_verify_claims_no_more_than_it_checked(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    shown = seglog("verify", path).stdout
    assert "every byte" not in shown
    assert "heads and properties of 400 records have no checksum" in shown
    assert seglog("verify", path, "--json").lines[0]["bareRecords"] == 400
    assert "400 records" in seglog("verify", path, "--seal").stdout
    records = seglog("verify", path, "--json").lines[0]["bareRecords"]
    assert 0 < records < 400  # those of the last segment, which is not full


def timeless(shown):
    """Returns what was shown without what differs from run to run."""
    return re.sub(r'in [0-9.]+ s, .*/s|"elapsedMs": ?[0-9.]+', "", shown)


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("name", ["roll", "d-bodyflip-first", "d-noindex", "d-nocq-halt"])
@pytest.mark.parametrize(
    ("new", "old"), [(["check", "--records-only"], ["verify"]), (["seal"], ["verify", "--seal"])]
)
def test_the_other_names_of_verify_do_and_say_the_same(new, old, name, words, seglog: Seglog, tmp_path):
    path, kept = golden.extract(name, tmp_path), tmp_path / "kept"
    shutil.copytree(path, kept)
    first = seglog(*new, path, *words)
    done = {file: size_bytes for file, (size_bytes, _sum) in golden.tree_digest(path).items()}
    shutil.rmtree(path)
    kept.rename(path)
    second = seglog(*old, path, *words)
    assert timeless(first.stdout) == timeless(second.stdout)
    assert (first.exit_code, first.stderr) == (second.exit_code, second.stderr)
    assert done == {file: size_bytes for file, (size_bytes, _sum) in golden.tree_digest(path).items()}


def test_records_only_reads_nothing_but_the_log(seglog: Seglog, tmp_path):
    store = golden.extract("d-noindex", tmp_path)
    assert seglog("check", store).exit_code == 1
    assert seglog("check", store, "--records-only").exit_code == 0


def test_records_only_takes_lengths_but_cannot_be_stopped(seglog: Seglog, store, tmp_path):
    assert seglog("check", store, "--records-only", "--segment-bytes", "4096").exit_code == 24
    for words in (["--max-duration", "1s"], ["--resume", tmp_path / "kept"]):
        ran = seglog("check", store, "--records-only", *words)
        assert (ran.exit_code, "cannot be stopped" in ran.stderr) == (2, True)

"""Values of findings have nouns and units where people read them, and none for programs."""

from __future__ import annotations

import pytest

from seglog.storage.findings import (
    Finding,
    counts_text,
    findings_fields,
    next_command,
    place_text,
)
from seglog.storage.findings.finding_text import finding_fields


@pytest.mark.parametrize(
    ("code", "expected", "found", "shown"),
    [
        ("log-file-size", "65536", "30000", "expected 65,536 bytes, found 30,000 bytes"),
        ("checkpoint-size", "4096", "1", "expected 4,096 bytes, found 1 byte"),
        (
            "offset-beyond-queue",
            "20 at most for T/0",
            "31",
            "expected 20 at most for T/0, found queue offset 31",
        ),
        ("log-hole", "5", "7", "expected 5, found 7"),
    ],
)
def test_a_bare_number_gets_its_unit(code, expected, found, shown):
    finding = Finding(code, "commitlog/0", expected=expected, found=found)
    assert place_text(finding).endswith(f": {shown}")
    assert (finding_fields(finding)["expected"], finding_fields(finding)["found"]) == (expected, found)


def test_times_of_the_checkpoint_are_shown_as_times(monkeypatch):
    finding = Finding("checkpoint-ahead", "checkpoint", 0, 0, "times up to 1795247389049", "1795247389059")
    assert "1795247389" not in place_text(finding)
    assert place_text(finding).count(":49.0") == 2


def test_findings_are_counted_the_worst_first():
    codes = ["tombstones", "log-hole", "queue-short", "log-hole"]
    shown = counts_text([Finding(code, "x") for code in codes])
    assert shown == "2 findings of loss, 1 warning, 1 note"
    assert counts_text([]) == "nothing"


def test_the_next_command_can_be_typed_whatever_the_store_is_called():
    findings = [Finding("log-hole", "commitlog/0")]
    assert next_command(findings, "a store") == "seglog repair 'a store'"
    assert next_command(findings, "o'd\x1b[31m") == r"seglog repair $'o\'d\x1b[31m'"
    assert next_command([Finding("tombstones", "x")], "s") == ""


def test_a_repair_that_needs_a_length_is_named_with_its_option_beside_each_finding():
    missing, unknown = (
        Finding("queue-missing", "consumequeue/T/0"),
        Finding("queue-length-unknown", "consumequeue"),
    )
    stale = Finding("seal-stale", "commitlog/0")
    wanted = "seglog repair --queue-file-bytes BYTES s"
    assert missing.command_for("s") == "seglog repair s"
    assert missing.command_for("s", [missing, unknown]) == wanted
    assert next_command([missing, unknown], "s") == wanted
    commands = [fields["command"] for fields in findings_fields([missing, stale, unknown])]
    assert commands == [unknown.command, stale.command, unknown.command]

"""The table of finding codes: each code that matters says what to do about it."""

from __future__ import annotations

import re

import pytest

from seglog.cli.main import COMMANDS
from seglog.storage.findings.code import Severity
from seglog.storage.findings.finding_codes import CODES, FAMILIES


@pytest.mark.parametrize("name", CODES)
def test_a_code_is_a_stable_word_with_a_meaning_and_a_way_out(name):
    code = CODES[name]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
    assert code.meaning
    assert code.for_messages
    assert code.severity is Severity.NOTE or code.fix
    if code.command:
        program, command, *_rest = code.command.split()
        assert program == "seglog"
        assert command in COMMANDS


def test_no_code_is_in_two_families():
    assert sum(map(len, FAMILIES.values())) == len(CODES)

"""The table of finding codes: each code that matters says what to do about it."""

from __future__ import annotations

import re

from seglog.cli.main import COMMANDS
from seglog.storage.directory import DEFAULT_SEGMENT_BYTES
from seglog.storage.findings import bytes_text
from seglog.storage.findings.code import Severity
from seglog.storage.findings.finding_codes import CODES, FAMILIES
from seglog.storage.format.queue.consume_queue import DEFAULT_QUEUE_FILE_BYTES
from tests.support.rows import every_row


def test_a_code_is_a_stable_word_with_a_meaning_and_a_way_out():
    with every_row() as row:
        for name, code in CODES.items():
            with row(name):
                assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
                assert code.meaning
                assert code.for_messages
                assert code.severity is Severity.NOTE or code.fix
                if code.command:
                    program, command, *_rest = code.command.split()
                    assert program == "seglog"
                    assert command in COMMANDS


def test_a_command_with_bytes_to_put_in_says_which_and_where_they_are_found():
    with every_row() as row:
        for name, code in CODES.items():
            if "BYTES" not in code.command:
                continue
            setting, default = (
                ("CommitLog", DEFAULT_SEGMENT_BYTES)
                if "--segment" in code.command
                else ("ConsumeQueue", DEFAULT_QUEUE_FILE_BYTES)
            )
            with row(name):
                assert bytes_text(code.command) == (
                    f"mappedFileSize{setting} of broker.conf; {default} if it is not set there"
                )


def test_a_command_that_can_be_pasted_has_nothing_to_put_in():
    assert bytes_text("seglog repair --queue-file-bytes 2000 STORE") == ""


def test_no_code_is_in_two_families():
    assert sum(map(len, FAMILIES.values())) == len(CODES)

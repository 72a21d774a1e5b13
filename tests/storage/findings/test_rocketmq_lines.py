"""Lines of RocketMQ's log belong to codes that exist, and a finding shows its own."""

from __future__ import annotations

from seglog.storage.findings import Finding
from seglog.storage.findings.finding_codes import CODES
from seglog.storage.findings.finding_text import finding_fields
from seglog.storage.findings.rocketmq_lines import LINES, codes_of_lines

VALUE = "…"


def test_each_line_belongs_to_a_code_of_a_finding():
    assert set(LINES) <= set(CODES)


def test_a_line_has_text_to_search_for_besides_its_values():
    assert not [line for line in codes_of_lines() if max(map(len, line.split(VALUE))) < 10]


def test_a_finding_has_what_rocketmq_logs_of_it_and_none_where_it_notices_nothing():
    size = Finding("log-file-size", "commitlog/00000000000000000000")
    assert size.rocketmq_logs == (
        "… length not matched message store config value, please check it manually",
    )
    assert finding_fields(size)["rocketmqLogs"] == list(size.rocketmq_logs)
    assert Finding("seal-rot", "commitlog/00000000000000000000").rocketmq_logs == ()


def test_a_line_has_all_codes_that_it_is_logged_for():
    codes = codes_of_lines()["… length not matched message store config value, please check it manually"]
    assert codes == [
        "log-file-size",
        "log-file-stray",
        "queue-file-size",
        "queue-file-stray",
        "timer-log-file",
    ]

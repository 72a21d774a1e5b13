"""Very many queues and groups, with the usual limit of open files."""

from __future__ import annotations

from perf.bench_many_queues import QUEUES_A_GROUP, in_child
from tests.support.scale import scaled

QUEUES = scaled(1_500, 10_000)
GROUPS = scaled(100, 1_000)


def test_more_queues_than_open_files_cost_little(tmp_path):
    """More than 1,024 queues, so that not all of their files can be open at once."""
    in_child("make", tmp_path / "store", QUEUES, GROUPS)
    figures = in_child("measure", tmp_path / "store", QUEUES, GROUPS)
    assert (figures["queues"], figures["offsets"]) == (QUEUES, GROUPS * QUEUES_A_GROUP)
    # A page for the units and one for the directory.
    assert figures["disk_bytes_a_queue"] < 3 * 4_096
    # Some MiB are what a broker takes with any number of queues.
    assert figures["bytes_a_queue"] * QUEUES < 10 * 1_024 * QUEUES + (8 << 20)
    # Of time that goes by, others on the machine and its disk take their share.
    assert figures["open_cpu_s"] < 2
    assert figures["commit_and_save_cpu_s"] < 1
